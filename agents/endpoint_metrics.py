"""A server's Prometheus page → `Telemetry`. Pure.

Names are vLLM's, SGLang's and llama.cpp's own; where a page lists one for several workers they are
added, shares of a cache are the fullest worker's.
"""

import re
from collections.abc import Mapping

from .base import Telemetry

_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{[^}]*\})?\s+(\S+)(?:\s+\d+)?\s*")
_COUNTS: Mapping[str, tuple[str, ...]] = {
    "num_requests_waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "llamacpp:requests_deferred",
    ),
    "num_requests_running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "llamacpp:requests_processing",
    ),
    "steps": ("llamacpp:n_decode_total",),
    "prompt_tokens": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "llamacpp:prompt_tokens_total",
    ),
    "completion_tokens": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "llamacpp:tokens_predicted_total",
    ),
    "prefix_cache_queries": ("vllm:prefix_cache_queries_total",),
    "prefix_cache_hits": ("vllm:prefix_cache_hits_total",),
    "num_preemptions": ("vllm:num_preemptions_total",),
}
_SHARES = (
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
    "llamacpp:kv_cache_usage_ratio",
)


def read_metrics(model: str, text: str) -> Telemetry:
    """How the server stands; what its page does not tell is 0. Raises nothing."""
    sums: dict[str, float] = {}
    most: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name, value = match[1], _number(match[2])
        sums[name] = sums.get(name, 0.0) + value
        most[name] = max(most.get(name, 0.0), value)
    counts = {
        field: int(next((sums[name] for name in names if name in sums), 0))
        for field, names in _COUNTS.items()
    }
    share = next((most[name] for name in _SHARES if name in most), 0.0)
    return Telemetry(model, loading=False, kv_cache_usage_perc=min(1.0, share), **counts)


def _number(text: str) -> float:
    """A finite number of at least 0; anything else is 0."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value < 2**63 else 0.0
