"""What runs when: steps, chunks, the cache, tries, batching; and no answer changes."""

import pytest

from engine.limits import Limits
from engine.types import (
    ChoiceScores,
    EngineError,
    Request,
)

from .drive import Drive
from .fake_runner import FakeRunner, greedy_alone, scores_alone
from .requests import LONG, VOCAB, config, expected, free, prompt, rows, score


def test_many_share_steps_and_get_what_they_get_alone() -> None:
    """EF08: neighbours change nothing."""
    for neighbours in (0, 1, 7, 31):
        drive = Drive(FakeRunner(num_blocks=400), config(max_num_seqs=40))
        wanted = free("wanted", prompt(99, 9))
        others = [free(f"n{i}", prompt(i, 3 + i % 9), 1 + i % 6) for i in range(neighbours)]
        drive.run(*others[::2], wanted, *others[1::2])
        for request in (wanted, *others):
            assert drive.completion(request.request_id).tokens == expected(drive, request)
        assert max(len(plan.sequences) for plan in drive.runner.plans) == neighbours + 1


def test_decodes_go_first_and_prompts_fill_the_rest_in_chunks() -> None:
    drive = Drive(config=config(max_num_batched_tokens=10, max_num_seqs=4))
    drive.add(free("a", prompt(1, 4)))
    drive.step()
    drive.add(free("b", prompt(2, 25)))
    seen = []
    for _ in range(4):
        drive.step()
        seen.append(rows(drive.runner.plans[-1]))
    assert seen == [{"a": 1, "b": 9}, {"a": 1, "b": 9}, {"a": 1, "b": 7}, {"a": 1, "b": 1}]


def test_cold_warm_and_chunked_agree_and_the_cache_was_used() -> None:
    """EF07: the hit counter proves that the warm run was warm."""
    tokens = prompt(3, 30)
    answers = []
    for budget in (64, 5):
        drive = Drive(config=config(max_num_batched_tokens=budget, max_num_seqs=4))
        drive.run(free("cold", tokens))
        assert drive.completion("cold").stats.cached_tokens == 0
        drive.run(free("warm", tokens))
        assert drive.completion("warm").stats.cached_tokens == 29
        assert drive.scheduler.metrics.prefix_cache_hits == 29
        assert drive.scheduler.metrics.prefix_cache_queries == 60
        answers += [drive.completion("cold").tokens, drive.completion("warm").tokens]
    assert len(set(answers)) == 1


def test_one_prefix_admitted_at_once_is_never_found_too_early() -> None:
    """EF03: poison-filled memory, many requests with one prefix in one step."""
    drive = Drive(FakeRunner(num_blocks=200), config(max_num_seqs=20))
    shared = prompt(4, 17)
    requests = [free(f"r{i}", (*shared, i + 1)) for i in range(12)]
    drive.run(*requests)
    assert len(drive.runner.plans[0].sequences) == 12
    for request in requests:
        assert drive.completion(request.request_id).tokens == expected(drive, request)
        assert drive.completion(request.request_id).stats.cached_tokens == 0


def test_twins_of_one_step_end_up_on_the_same_blocks() -> None:
    drive = Drive(FakeRunner(num_blocks=40), config(max_num_seqs=8))
    drive.add(*(free(f"r{i}", (*prompt(4, 16), i + 1)) for i in range(4)))
    drive.step()
    tables = [drive.sequence(f"r{i}").block_table for i in range(4)]
    assert len({tuple(table[:4]) for table in tables}) == 1
    assert drive.scheduler.check_integrity().used == 4 + 4


@pytest.mark.parametrize("length", [3, 4, 5, 7, 8, 9, 31, 32, 33])
@pytest.mark.parametrize("is_score", [False, True])
def test_a_full_hit_computes_one_row_and_writes_no_shared_block(
    length: int, is_score: bool
) -> None:
    """EF04: one short of, equal to and one past a block multiple (Drive checks who is written)."""
    drive = Drive()
    tokens = prompt(length, length)
    choices = [(1, 2), (1, 3), (4,)]
    for name in ("first", "second"):
        request = score(name, tokens, choices) if is_score else free(name, tokens, 1)
        drive.run(request)
    one = drive.results["second"]
    assert not isinstance(one, EngineError)
    assert one.stats.cached_tokens == length - 1
    assert one.stats.computed_tokens == 1 + (1 if is_score else 0)
    first = drive.results["first"]
    if isinstance(one, ChoiceScores) and isinstance(first, ChoiceScores):
        assert one.logprobs == first.logprobs
    else:
        assert drive.completion("first").tokens == drive.completion("second").tokens


def test_a_constant_hash_changes_no_answer() -> None:
    """EF02: collisions everywhere."""
    drive = Drive(config=config(max_num_seqs=4), hash_function=lambda parent, tokens: 0)
    requests = [free(f"r{i}", (*prompt(i % 3, 9), *prompt(i, 4))) for i in range(12)]
    drive.run(*requests)
    for request in requests:
        assert drive.completion(request.request_id).tokens == expected(drive, request)
    assert drive.scheduler.metrics.prefix_cache_hits > 0


def test_salts_never_share() -> None:
    """EF01: the same tokens under different salts hit nothing."""
    drive = Drive()
    for name, salt in [("a", ""), ("b", "x"), ("c", "y"), ("d", "x")]:
        drive.run(Request(name, prompt(1, 13), LONG, cache_salt=salt))
    hits = [drive.completion(name).stats.cached_tokens for name in "abcd"]
    assert hits == [0, 0, 0, 12]


def test_a_partial_trim_leaves_no_answer_changed() -> None:
    """EF31: freed memory is overwritten by Drive; a prefix is reused in the middle of a block."""
    drive = Drive(FakeRunner(num_blocks=12))
    base = prompt(6, 14)
    for i, cut in enumerate([14, 10, 13, 6, 9, 1]):
        request = free(f"r{i}", (*base[:cut], *prompt(50 + i, 5)))
        drive.run(request)
        assert drive.completion(f"r{i}").tokens == expected(drive, request)
    assert drive.scheduler.metrics.prefix_cache_hits >= 10 + 6 + 9


def test_hits_are_counted_once_and_never_for_recomputed_work() -> None:
    """EF06: prompts that differ from the first token, preempted and resumed: zero hits."""
    drive = Drive(FakeRunner(num_blocks=10), config(max_num_seqs=6))
    requests = [free(f"r{i}", (i + 1, *prompt(i, 7)), 12) for i in range(6)]
    drive.run(*requests)
    assert drive.scheduler.metrics.num_preemptions > 0
    assert drive.scheduler.metrics.prefix_cache_hits == 0
    assert drive.scheduler.metrics.prefix_cache_queries == 6 * 8
    assert all(drive.completion(r.request_id).stats.cached_tokens == 0 for r in requests)


def test_scoring_runs_the_prompt_once() -> None:
    """EF12: k choices, one pass over the prompt, by the token counter; EF11, EF16: and the scores
    do not move with order or with what is cached."""
    choices = [(5, 6, 7), (5, 6, 8), (5, 9), (10,), (11, 12), (11, 13, 14), (5,)]
    tokens = prompt(8, 21)
    drive = Drive()
    cold = score("cold", tokens, choices)
    drive.run(cold)
    inner = len({c[:i] for c in choices for i in range(1, len(c))})
    assert drive.scores("cold").stats.computed_tokens == 21 + inner
    assert len(drive.runner.plans) == 1
    assert drive.scores("cold").logprobs == pytest.approx(scores_alone(cold, VOCAB), abs=1e-12)
    assert drive.scores("cold").greedy == greedy_alone(cold, VOCAB)
    for cached in (1, 4, 7, 8, 13, 20):
        warm = Drive()
        warm.run(free("before", (*tokens[:cached], 31), 1))
        warm.run(score("warm", tokens, choices[::-1]))
        assert warm.scores("warm").stats.cached_tokens == cached
        assert warm.scores("warm").logprobs[::-1] == drive.scores("cold").logprobs


def test_the_chunk_shrinks_to_make_room_for_the_trie() -> None:
    choices = [(i, j) for i in range(1, 8) for j in range(1, 3)]  # 7 rows
    drive = Drive(config=config(max_num_batched_tokens=12, max_num_seqs=4))
    drive.run(score("s", prompt(9, 15), choices))
    assert [rows(plan)["s"] for plan in drive.runner.plans] == [12, 3 + 7]
    drive = Drive(config=config(max_num_batched_tokens=12, max_num_seqs=4))
    drive.run(score("s", prompt(9, 10), choices))
    assert [rows(plan)["s"] for plan in drive.runner.plans] == [9, 1 + 7]


def test_a_trie_above_the_budget_runs_alone_and_soon() -> None:
    choices = [(i, j) for i in range(1, 16) for j in range(1, 3)]  # 15 rows
    drive = Drive(config=config(max_num_batched_tokens=12, max_num_seqs=4))
    drive.add(free("a", prompt(1, 2), 40), free("b", prompt(2, 2), 40))
    drive.step()
    drive.add(score("s", prompt(9, 8), choices))
    for _ in range(8):
        drive.step()
    assert drive.scores("s").logprobs
    (alone,) = [plan for plan in drive.runner.plans if plan.num_rows > 12]
    assert rows(alone) == {"s": 16}


def test_a_trie_that_needs_most_of_a_step_is_not_starved_by_decodes() -> None:
    """EF19: a unit of 11 rows beside ten decodes in steps of 12."""
    choices = [(i, j) for i in range(1, 11) for j in range(1, 3)]  # 10 rows
    drive = Drive(FakeRunner(num_blocks=200), config(max_num_batched_tokens=12, max_num_seqs=12))
    drive.add(*(free(f"d{i}", prompt(i, 1), 60) for i in range(10)))
    drive.step()
    drive.add(score("s", prompt(9, 4), choices))
    for _ in range(8):
        drive.step()
    assert drive.scores("s").logprobs


def test_a_cold_request_among_endless_hot_ones_starts_in_time() -> None:
    """EF19: cache-friendly arrivals never pass it."""
    drive = Drive(FakeRunner(num_blocks=30), config(max_num_seqs=2, max_num_batched_tokens=16))
    hot = prompt(1, 12)
    drive.run(free("warm up", hot, 1))
    for i in range(40):
        drive.add(free(f"hot{2 * i}", hot, 3), free(f"hot{2 * i + 1}", hot, 3))
        if i == 3:
            drive.add(free("cold", prompt(2, 40), 1))
            ahead = drive.scheduler.num_waiting + drive.scheduler.num_running
        drive.step()
        if "cold" in drive.results:
            break
    assert i <= 3 + 3 * ahead
    assert drive.scheduler.num_waiting > ahead, "hot ones still wait behind"


def test_without_chunks_a_prompt_is_one_piece() -> None:
    with pytest.raises(ValueError, match="enable_chunked_prefill"):
        Limits.of(FakeRunner(), config(enable_chunked_prefill=False, max_num_batched_tokens=127))
    drive = Drive(config=config(enable_chunked_prefill=False, max_num_batched_tokens=128))
    requests = [free(f"r{i}", prompt(i, 50)) for i in range(4)]
    drive.run(*requests)
    prefills = [n for plan in drive.runner.plans for n in rows(plan).values() if n > 1]
    assert prefills == [50] * 4


def test_static_waits_for_the_slowest_and_serial_for_each() -> None:
    def requests() -> list[Request]:
        return [free(f"r{i}", prompt(i, 4), 2 if i % 2 else 10) for i in range(6)]

    steps = {}
    for batching in ("continuous", "static", "serial"):
        drive = Drive(config=config(max_num_seqs=2, batching=batching))
        drive.run(*requests())
        steps[batching] = len(drive.runner.plans)
        for request in requests():
            assert drive.completion(request.request_id).tokens == expected(drive, request)
    assert steps["serial"] == 3 * (2 + 10)
    assert steps["static"] == 3 * 10
    assert steps["continuous"] == 22  # 10 + 2 + 10: the last long one starts at 12


def test_a_sequence_wastes_less_than_a_block() -> None:
    """Paging: at most block_size − 1 slots a sequence, checked by Drive at every step."""
    drive = Drive(FakeRunner(num_blocks=64, block_size=8), config(max_num_seqs=8))
    drive.run(*(free(f"r{i}", prompt(i, 3 + i), 11) for i in range(8)))
    assert len(drive.results) == 8


def test_times_split_the_life_of_a_request() -> None:
    drive = Drive(config=config(max_num_seqs=1, max_num_batched_tokens=8))
    drive.run(free("a", prompt(1, 8), 3), free("b", prompt(2, 20), 4))
    a, b = (drive.completion(name).stats.times for name in "ab")
    assert (a.queue, a.prefill, a.decode, a.ttft, a.e2e) == (0, 1, 2, 1, 3)
    assert (b.queue, b.prefill, b.decode, b.ttft, b.e2e) == (3, 3, 3, 6, 9)
    seen = drive.scheduler.snapshot(drive.now)
    assert seen.inter_token_latency_seconds.count == 2 + 3
    assert seen.request_queue_time_seconds.total == 3
    assert seen.iteration_tokens_total.total == seen.computed_tokens == 8 + 2 + 20 + 3
    assert seen.num_steps == len(drive.runner.plans)
