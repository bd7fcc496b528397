"""What the engine counts, under vLLM's names. Updated on the engine's thread, read from any.

Times are in seconds. Histograms keep counts per bucket, never single values. Prefix-cache numbers
are in tokens, once per request: what a preempted request recomputes or finds again is not counted.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.types import RequestStats

TIME_BUCKETS = tuple(m * 10.0**e for e in range(-4, 3) for m in (1.0, 1.5, 2.5, 4.0, 6.5))
TOKEN_BUCKETS = tuple(float(2**e) for e in range(15))


@dataclass(frozen=True, slots=True)
class HistogramSnapshot:
    """`counts[i]` values are at most `bounds[i]`, above the bound before; the last: above all."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def quantile(self, q: float) -> float | None:
        """Upper bound of the bucket that holds the q-quantile; None if empty, inf past the last."""
        rank, seen = q * self.count, 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            if count and seen >= rank:
                return bound
        return None


class Histogram:
    """Counts of observed values in fixed buckets."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def snapshot(self) -> HistogramSnapshot:
        return HistogramSnapshot(self._bounds, tuple(self._counts), self._total)


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """The engine at one moment. Counters run from its start; `time` is its clock's."""

    time: float
    num_requests_waiting: int
    num_requests_running: int
    kv_cache_usage_perc: float  # 0 … 1: blocks that somebody holds
    num_blocks: int
    num_blocks_cached: int
    prefix_cache_queries: int
    prefix_cache_hits: int
    num_preemptions: int
    num_steps: int
    computed_tokens: int
    forced_tokens: int
    generation_tokens: int
    corrupted_requests: int
    finished_requests: int
    failed_requests: int
    step_seconds: float
    time_to_first_token_seconds: HistogramSnapshot
    inter_token_latency_seconds: HistogramSnapshot
    request_queue_time_seconds: HistogramSnapshot
    request_prefill_time_seconds: HistogramSnapshot
    request_decode_time_seconds: HistogramSnapshot
    e2e_request_latency_seconds: HistogramSnapshot
    iteration_tokens_total: HistogramSnapshot
    iteration_sequences: HistogramSnapshot

    @property
    def prefix_cache_hit_rate(self) -> float | None:
        queries = self.prefix_cache_queries
        return self.prefix_cache_hits / queries if queries else None


def _times() -> Histogram:
    return Histogram(TIME_BUCKETS)


def _tokens() -> Histogram:
    return Histogram(TOKEN_BUCKETS)


@dataclass(slots=True)
class EngineMetrics:
    """The running counts."""

    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    num_preemptions: int = 0
    num_steps: int = 0
    computed_tokens: int = 0
    forced_tokens: int = 0
    generation_tokens: int = 0
    corrupted_requests: int = 0
    finished_requests: int = 0
    failed_requests: int = 0
    step_seconds: float = 0.0
    time_to_first_token_seconds: Histogram = field(default_factory=_times)
    inter_token_latency_seconds: Histogram = field(default_factory=_times)
    request_queue_time_seconds: Histogram = field(default_factory=_times)
    request_prefill_time_seconds: Histogram = field(default_factory=_times)
    request_decode_time_seconds: Histogram = field(default_factory=_times)
    e2e_request_latency_seconds: Histogram = field(default_factory=_times)
    iteration_tokens_total: Histogram = field(default_factory=_tokens)
    iteration_sequences: Histogram = field(default_factory=_tokens)

    def step(self, num_rows: int, num_sequences: int, seconds: float) -> None:
        self.num_steps += 1
        self.computed_tokens += num_rows
        self.step_seconds += seconds
        self.iteration_tokens_total.observe(num_rows)
        self.iteration_sequences.observe(num_sequences)

    def finished(self, stats: RequestStats) -> None:
        times = stats.times
        self.finished_requests += 1
        self.forced_tokens += stats.forced_tokens
        self.generation_tokens += stats.completion_tokens
        self.time_to_first_token_seconds.observe(times.ttft)
        self.request_queue_time_seconds.observe(times.queue)
        self.request_prefill_time_seconds.observe(times.prefill)
        self.request_decode_time_seconds.observe(times.decode)
        self.e2e_request_latency_seconds.observe(times.e2e)

    def snapshot(
        self, time: float, *, waiting: int, running: int, num_blocks: int, used: int, cached: int
    ) -> EngineSnapshot:
        counts: dict[str, Any] = {
            name: value.snapshot() if isinstance(value, Histogram) else value
            for name in self.__slots__
            for value in [getattr(self, name)]
        }
        return EngineSnapshot(
            time=time,
            num_requests_waiting=waiting,
            num_requests_running=running,
            kv_cache_usage_perc=used / num_blocks if num_blocks else 0.0,
            num_blocks=num_blocks,
            num_blocks_cached=cached,
            **counts,
        )
