"""Counts under vLLM's names."""

import math

from engine.metrics import EngineMetrics, Histogram
from engine.types import RequestStats, RequestTimes


def test_histograms_count_and_add() -> None:
    histogram = Histogram([1.0, 2.0, 4.0])
    assert histogram.snapshot().quantile(0.5) is None
    assert histogram.snapshot().mean is None
    for value in (0.5, 1.0, 1.5, 3.0, 9.0):
        histogram.observe(value)
    seen = histogram.snapshot()
    assert seen.counts == (2, 1, 1, 1)
    assert (seen.count, seen.total, seen.mean) == (5, 15.0, 3.0)
    assert [seen.quantile(q) for q in (0.0, 0.4, 0.5, 0.8, 1.0)] == [1.0, 1.0, 2.0, 4.0, math.inf]
    histogram.observe(1.0)
    assert seen.count == 5, "a snapshot does not move"


def test_queue_time_is_kept_beside_ttft() -> None:
    metrics = EngineMetrics()
    metrics.step(num_rows=12, num_sequences=3, seconds=0.5)
    times = RequestTimes(queue=2.0, prefill=0.25, decode=1.0, ttft=2.25, e2e=3.25)
    metrics.finished(RequestStats(10, 4, 5, 12, 1, 0, times))
    metrics.prefix_cache_queries, metrics.prefix_cache_hits = 10, 4
    seen = metrics.snapshot(7.0, waiting=1, running=2, num_blocks=8, used=2, cached=3)
    assert seen.request_queue_time_seconds.total == 2.0
    assert seen.time_to_first_token_seconds.total == 2.25
    assert seen.request_prefill_time_seconds.total == 0.25
    assert seen.request_decode_time_seconds.total == 1.0
    assert seen.e2e_request_latency_seconds.total == 3.25
    assert seen.iteration_tokens_total.total == 12
    assert seen.iteration_sequences.total == 3
    assert (seen.num_requests_waiting, seen.num_requests_running) == (1, 2)
    assert (seen.kv_cache_usage_perc, seen.num_blocks_cached) == (0.25, 3)
    assert seen.prefix_cache_hit_rate == 0.4
    assert (seen.computed_tokens, seen.generation_tokens, seen.forced_tokens) == (12, 5, 1)
    assert (seen.num_steps, seen.step_seconds, seen.finished_requests) == (1, 0.5, 1)
