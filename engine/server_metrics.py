"""The page a Prometheus server reads, from an engine's snapshot. Pure.

Names and meanings are vLLM's where it has them, prefix included, so that its dashboards and our own
remote players read the page as it is; what only this engine counts begins with `madang:`.
"""

from collections.abc import Iterator
from dataclasses import fields

from engine.metrics import EngineSnapshot, HistogramSnapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
GAUGES = {
    "num_requests_running": "vllm:num_requests_running",
    "num_requests_waiting": "vllm:num_requests_waiting",
    "kv_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "num_blocks": "madang:num_blocks",
    "num_blocks_cached": "madang:num_blocks_cached",
}
COUNTERS = {
    "prefix_cache_queries": "vllm:prefix_cache_queries",
    "prefix_cache_hits": "vllm:prefix_cache_hits",
    "num_preemptions": "vllm:num_preemptions",
    "generation_tokens": "vllm:generation_tokens",
    "corrupted_requests": "vllm:corrupted_requests",
    "finished_requests": "madang:finished_requests",
    "failed_requests": "madang:failed_requests",
    "num_steps": "madang:num_steps",
    "computed_tokens": "madang:computed_tokens",
    "forced_tokens": "madang:forced_tokens",
    "step_seconds": "madang:step_seconds",
}
OWN_HISTOGRAMS = frozenset({"iteration_sequences"})


def page(model: str, now: EngineSnapshot, num_refused: int) -> str:
    """`num_refused`: requests answered with 503 since the server's start."""
    label = f'model_name="{_escaped(model)}"'
    lines: list[str] = []
    for field, name in GAUGES.items():
        lines += [f"# TYPE {name} gauge", f"{name}{{{label}}} {getattr(now, field)}"]
    counts = {name: getattr(now, field) for field, name in COUNTERS.items()}
    counts["vllm:prompt_tokens"] = now.prefix_cache_queries  # both count a prompt when admitted
    counts["madang:refused_requests"] = num_refused
    for name, value in counts.items():
        lines += [f"# TYPE {name}_total counter", f"{name}_total{{{label}}} {value}"]
    for item in fields(now):
        value = getattr(now, item.name)
        if isinstance(value, HistogramSnapshot):
            lines += _histogram(item.name, value, label)
    return "\n".join(lines) + "\n"


def _histogram(field: str, found: HistogramSnapshot, label: str) -> Iterator[str]:
    """`le` of a bucket counts everything up to its bound."""
    name = f"{'madang' if field in OWN_HISTOGRAMS else 'vllm'}:{field}"
    yield f"# TYPE {name} histogram"
    total = 0
    for bound, count in zip(found.bounds, found.counts, strict=False):
        total += count
        yield f'{name}_bucket{{{label},le="{bound:g}"}} {total}'
    yield f'{name}_bucket{{{label},le="+Inf"}} {found.count}'
    yield f"{name}_count{{{label}}} {found.count}"
    yield f"{name}_sum{{{label}}} {found.total}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
