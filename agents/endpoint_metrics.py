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
    "prefix_cache_queries": (
        "vllm:prefix_cache_queries_total",
        "sglang:prompt_tokens_total",
        "llamacpp:prompt_tokens_total",
    ),
    "prefix_cache_hits": (
        "vllm:prefix_cache_hits_total",
        "sglang:cached_tokens_total",
        "llamacpp:prompt_tokens_cached_total",
    ),
    "num_preemptions": ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total"),
}
_LESS_CACHED = "llamacpp:prompt_tokens_total"
"""Counts computed tokens only; those from the cache are added, as the others count them."""
_SHARES = (
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
    "llamacpp:kv_cache_usage_ratio",
)


def read_metrics(model: str, text: str) -> Telemetry:
    """How the server stands; what its page does not tell is 0. Raises nothing."""
    sums, most = _values(text)
    counts = {field: int(_first(sums, names) or 0) for field, names in _COUNTS.items()}
    share = _first(most, _SHARES) or 0.0
    return Telemetry(model, loading=False, kv_cache_usage_perc=min(1.0, share), **counts)


def told(text: str) -> tuple[str, ...]:
    """The fields of `Telemetry` that a page tells."""
    sums, most = _values(text)
    fields = [field for field, names in _COUNTS.items() if _first(sums, names) is not None]
    return (*fields, "kv_cache_usage_perc") if _first(most, _SHARES) is not None else (*fields,)


def _values(text: str) -> tuple[dict[str, float], dict[str, float]]:
    """The sum and the greatest of every metric's values."""
    sums: dict[str, float] = {}
    most: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name, value = match[1], _number(match[2])
        sums[name] = sums.get(name, 0.0) + value
        most[name] = max(most.get(name, 0.0), value)
    if _LESS_CACHED in sums:
        sums[_LESS_CACHED] += sums.get("llamacpp:prompt_tokens_cached_total", 0.0)
    return sums, most


def _first(values: Mapping[str, float], names: tuple[str, ...]) -> float | None:
    return next((values[name] for name in names if name in values), None)


def _number(text: str) -> float:
    """A finite number of at least 0; anything else is 0."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value < 2**63 else 0.0
