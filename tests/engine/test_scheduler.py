"""Admission, order, chunks, tries, preemption, aborts: what runs when, and no answer changes."""

import random
from collections.abc import Sequence

import pytest

from engine.blocks import BlockUsage
from engine.config import EngineConfig
from engine.limits import Limits
from engine.scheduler import PATIENCE
from engine.types import (
    ChoiceScores,
    EngineError,
    EngineOverloaded,
    InvalidRequest,
    Request,
    RequestAborted,
    RequestTooLarge,
    SamplingParams,
    StepPlan,
    TokenIds,
)

from .drive import Drive
from .fake_runner import FakeRunner, answer_alone, greedy_alone, scores_alone

VOCAB = 32
LONG = SamplingParams(max_tokens=12, ignore_eos=True)


def config(**settings: object) -> EngineConfig:
    return EngineConfig.from_dict({"model": "fake", **settings})


def prompt(seed: int, length: int) -> TokenIds:
    rng = random.Random(seed)
    return tuple(rng.randrange(1, VOCAB) for _ in range(length))


def free(name: str, tokens: TokenIds, max_tokens: int = 6, **fields: int) -> Request:
    params = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
    return Request(name, tokens, params, priority=fields.get("priority", 0))


def score(name: str, tokens: TokenIds, choices: Sequence[TokenIds]) -> Request:
    return Request(name, tokens, choices=tuple(choices), score=True)


def expected(drive: Drive, request: Request) -> TokenIds:
    """Free decoding that ignores the end token."""
    tokens = list(request.prompt)
    for _ in range(request.sampling.max_tokens):
        one = Request("x", tuple(tokens), SamplingParams(max_tokens=1))
        tokens += answer_alone(one, drive.runner.vocab_size, 10**9)
    return tuple(tokens[len(request.prompt) :])


def rows(plan: StepPlan) -> dict[str, int]:
    return {step.request_id: step.num_rows for step in plan.sequences}


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
    for _ in range(PATIENCE + 3):
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
    for _ in range(PATIENCE + 4):
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


def test_what_can_never_fit_is_refused_at_once() -> None:
    """EF19, EF32."""
    drive = Drive(FakeRunner(num_blocks=8, max_model_len=64), config(max_num_trie_tokens=20))
    with pytest.raises(RequestTooLarge, match="may need 9 KV blocks, the pool has 8"):
        drive.add(free("pool", prompt(1, 30), 4))
    drive.run(free("fits", prompt(1, 29), 4))
    assert drive.completion("fits").finish_reason == "length"
    with pytest.raises(RequestTooLarge, match="pass max_model_len"):
        drive.add(free("long", prompt(1, 64), 4))
    wide = [(i, j) for i in range(1, 22) for j in (1, 2)]
    with pytest.raises(RequestTooLarge, match="trie of 21 rows, more than max_num_trie_tokens"):
        drive.add(score("trie", prompt(1, 8), wide))
    assert drive.scheduler.request_ids == ()


def test_the_length_limit_is_never_passed() -> None:
    """EF32: a token, a refusal and a refusal; scoring counts its longest choice."""
    drive = Drive(FakeRunner(num_blocks=64, max_model_len=32))
    drive.run(free("less one", prompt(1, 31), 9))
    assert len(drive.completion("less one").tokens) == 1
    assert drive.completion("less one").finish_reason == "length"
    for length in (32, 33):
        with pytest.raises(RequestTooLarge, match=f"a prompt of {length} tokens and 1 more"):
            drive.add(free("long", prompt(1, length), 1))
    drive.run(score("just", prompt(1, 29), [(1, 2, 3), (2,)]))
    assert drive.scores("just").logprobs
    with pytest.raises(RequestTooLarge, match="30 tokens and 3 more"):
        drive.add(score("over", prompt(1, 30), [(1, 2, 3), (2,)]))
    walk = Request("walk", prompt(1, 30), choices=((1, 2, 3), (2,)))
    with pytest.raises(RequestTooLarge, match="30 tokens and 3 more"):
        drive.add(walk)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("r", ()), "the prompt is empty"),
        (Request("r", (1, 99)), "prompt: token 99 is outside 0 … 31"),
        (Request("r", (-1,)), "prompt: token -1 is outside"),
        (Request("r", (1,), score=True), "score needs choices"),
        (Request("r", (1,), choices=()), "choices must be given"),
        (Request("r", (1,), choices=((1,), ())), "none may be empty"),
        (Request("r", (1,), choices=((1,), (1,))), "choices must be distinct"),
        (Request("r", (1,), choices=((1, 77),)), "choice: token 77 is outside"),
        (Request("r", (1,), timeout_s=0.0), "timeout_s: 0.0 is not above 0"),
        (Request("r", (1,), SamplingParams(temperature=-1.0)), "temperature: -1.0 is out of range"),
        (Request("r", (1,), SamplingParams(temperature=float("nan"))), "temperature: nan"),
        (Request("r", (1,), SamplingParams(top_p=0.0)), "top_p: 0.0"),
        (Request("r", (1,), SamplingParams(max_tokens=0)), "max_tokens: 0"),
        (Request("r", (1,), SamplingParams(repetition_penalty=0.0)), "repetition_penalty: 0.0"),
        (Request("r", (1,), SamplingParams(stop=("x",))), "stop strings need a tokenizer"),
        (Request("r", (1,), SamplingParams(stop=("",))), "stop: an empty string"),
    ],
)
def test_malformed_requests_are_refused_in_one_line(request_: Request, message: str) -> None:
    drive = Drive()
    with pytest.raises(InvalidRequest) as info:
        drive.add(request_)
    assert message in str(info.value)
    assert "\n" not in str(info.value)


def test_the_queue_has_an_end() -> None:
    drive = Drive(config=config(max_num_seqs=2, max_num_queued_reqs=3))
    drive.add(*(free(f"r{i}", prompt(i, 5)) for i in range(5)))
    with pytest.raises(EngineOverloaded, match="max_num_queued_reqs"):
        drive.add(free("r5", prompt(5, 5)))
    drive.run()
    drive.run(free("r5", prompt(5, 5)))
    assert len(drive.results) == 6


def test_an_id_in_use_is_refused() -> None:
    drive = Drive()
    drive.add(free("a", prompt(1, 5)))
    with pytest.raises(InvalidRequest, match="'a' is in use"):
        drive.add(free("a", prompt(2, 5)))


def test_without_chunks_a_prompt_is_one_piece() -> None:
    with pytest.raises(ValueError, match="enable_chunked_prefill"):
        Limits.of(FakeRunner(), config(enable_chunked_prefill=False, max_num_batched_tokens=127))
    drive = Drive(config=config(enable_chunked_prefill=False, max_num_batched_tokens=128))
    requests = [free(f"r{i}", prompt(i, 50)) for i in range(4)]
    drive.run(*requests)
    prefills = [n for plan in drive.runner.plans for n in rows(plan).values() if n > 1]
    assert prefills == [50] * 4


# Preemption and priority


def test_a_quarter_of_the_memory_is_enough_with_few_preemptions() -> None:
    """EF18: everything finishes, preemptions are bounded, the recomputed share is known."""
    requests = [free(f"r{i}", prompt(i, 8), 25) for i in range(16)]
    needed = 16 * 8
    drive = Drive(FakeRunner(num_blocks=needed // 4), config(max_num_seqs=16))
    drive.run(*requests)
    stats = [drive.completion(r.request_id).stats for r in requests]
    assert sum(s.num_preemptions for s in stats) == drive.scheduler.metrics.num_preemptions > 0
    assert max(s.num_preemptions for s in stats) <= 3
    computed = sum(s.computed_tokens for s in stats)
    assert computed == drive.scheduler.metrics.computed_tokens
    assert computed <= 1.5 * 16 * (8 + 24)
    for request in requests:
        assert drive.completion(request.request_id).tokens == expected(drive, request)


def test_the_first_to_come_is_never_preempted() -> None:
    drive = Drive(FakeRunner(num_blocks=9), config(max_num_seqs=6))
    requests = [free(f"r{i}", prompt(i, 5), 24) for i in range(6)]
    drive.run(*requests)
    assert drive.completion("r0").stats.num_preemptions == 0
    ends = [drive.completion(r.request_id).stats.times.e2e for r in requests]
    assert ends == sorted(ends)


def test_the_victim_is_the_one_with_least_work_to_lose() -> None:
    drive = Drive(FakeRunner(num_blocks=13), config(max_num_seqs=3, enable_prefix_caching=False))
    drive.add(free("old", prompt(1, 16), 20), free("small", prompt(3, 5), 20))
    drive.add(free("big", prompt(2, 17), 20))
    while drive.scheduler.metrics.num_preemptions == 0:
        drive.step()
    assert [s.request_id for s in drive.scheduler._waiting] == ["small"]


def test_a_higher_priority_starts_first_and_ahead_of_running_ones() -> None:
    """EF20: the batch is full; the policy promises both."""
    drive = Drive(config=config(max_num_seqs=2, scheduling_policy="priority"))
    drive.add(
        free("low0", prompt(1, 6), 20, priority=5), free("low1", prompt(2, 6), 20, priority=4)
    )
    drive.step()
    drive.add(free("low2", prompt(3, 6), 20, priority=5))
    drive.add(free("high", prompt(4, 6), 3, priority=0), free("mid", prompt(5, 6), 3, priority=4))
    drive.step()
    assert set(rows(drive.runner.plans[-1])) == {"high", "low1"}, "the lowest class gave way"
    drive.run()
    times = {name: drive.completion(name).stats.times for name in ("high", "mid", "low0", "low1")}
    assert times["high"].queue == 0
    assert drive.completion("low1").stats.num_preemptions == 0, "same class as mid: not preempted"
    assert drive.completion("low0").stats.num_preemptions == 1
    assert times["mid"].e2e < times["low0"].e2e


def test_a_higher_priority_takes_blocks_from_lower_ones() -> None:
    """EF20: memory, not places, is short."""
    drive = Drive(FakeRunner(num_blocks=10), config(scheduling_policy="priority"))
    drive.add(
        free("low0", prompt(1, 16), 8, priority=1), free("low1", prompt(2, 16), 4, priority=1)
    )
    drive.step()
    drive.add(free("high", prompt(3, 20), 4))
    drive.step()
    assert "high" in rows(drive.runner.plans[-1])
    drive.run()
    assert drive.completion("high").stats.times.queue == 0


def test_no_one_is_preempted_for_nothing_or_by_a_lower_class() -> None:
    drive = Drive(FakeRunner(num_blocks=10), config(scheduling_policy="priority"))
    drive.add(free("high", prompt(1, 24), 12), free("low", prompt(2, 6), 2, priority=9))
    drive.step()
    drive.add(free("mid", prompt(3, 24), 4, priority=5))
    drive.step()
    assert drive.scheduler.metrics.num_preemptions == 0, "preempting low would not let mid in"
    drive.run()
    assert drive.completion("high").stats.num_preemptions == 0


def test_fcfs_ignores_priorities() -> None:
    drive = Drive(config=config(max_num_seqs=1))
    drive.run(free("a", prompt(1, 4), priority=9), free("b", prompt(2, 4), priority=0))
    assert drive.completion("a").stats.times.e2e < drive.completion("b").stats.times.e2e


# Batching


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


# Aborts, deadlines, failures


def abort_states() -> list[str]:
    return ["waiting", "prefill", "decoding", "scoring", "preempted", "copying"]


@pytest.mark.parametrize("state", abort_states())
def test_an_abort_in_any_state_frees_everything(state: str) -> None:
    """EF17: free blocks and holders are back at their starting values."""
    drive = Drive(FakeRunner(num_blocks=10), config(max_num_seqs=2, max_num_batched_tokens=6))
    if state == "waiting":
        drive.add(free("o1", prompt(1, 4), 2), free("o2", prompt(2, 4), 2), free("x", prompt(3, 9)))
        drive.step()
    elif state == "prefill":
        drive.add(free("x", prompt(3, 20)))
        drive.step()
    elif state == "decoding":
        drive.add(free("x", prompt(3, 4), 20))
        for _ in range(7):
            drive.step()
        assert drive.sequence("x").is_decoding
    elif state == "scoring":
        drive.add(score("x", prompt(3, 13), [(i, j) for i in range(1, 6) for j in (1, 2)]))
        drive.step()
        drive.step()
    elif state == "preempted":
        drive.add(free("o1", prompt(1, 6), 30), free("x", prompt(3, 6), 30))
        while drive.sequence("x").num_preemptions == 0:
            drive.step()
    else:
        drive.run(free("o1", prompt(3, 10), 1))
        drive.add(free("x", prompt(3, 10), 5))
        plan = drive.plan()
        assert plan is not None
        assert plan.copies
    drive.abort("x")
    assert isinstance(drive.results["x"], RequestAborted)
    drive.run()
    usage = drive.scheduler.check_integrity()
    assert usage.used == 0
    assert usage.free + usage.cached == 10
    drive.abort("x")  # again: nothing


def test_an_aborted_copy_is_not_found_as_if_it_had_been_done() -> None:
    drive = Drive()
    drive.run(free("a", prompt(1, 10), 1))
    drive.add(free("b", (*prompt(1, 9), 7, 7), 5))
    assert drive.plan() is not None
    drive.abort("b")
    drive.check_cached()
    request = free("c", (*prompt(1, 9), 7, 7, 7), 5)
    drive.run(request)
    assert drive.completion("c").tokens == expected(drive, request)


def test_deadlines_end_requests_waiting_or_running() -> None:
    drive = Drive(config=config(max_num_seqs=1))
    late = [
        Request(name, prompt(i, 4), SamplingParams(max_tokens=50, ignore_eos=True), timeout_s=5.0)
        for i, name in enumerate(("running", "waiting"))
    ]
    drive.add(*late, free("patient", prompt(9, 4), 3))
    for _ in range(20):
        drive.take(drive.scheduler.expire(drive.now))
        drive.step() if drive.scheduler.request_ids else None
    for name in ("running", "waiting"):
        assert isinstance(drive.results[name], RequestAborted)
        assert "its time is over" in str(drive.results[name])
    assert len(drive.completion("patient").tokens) == 3


def test_a_corrupted_request_fails_alone_and_leaves_the_cache() -> None:
    """EF27: counted, its blocks not found again, neighbours unchanged."""
    drive = Drive(config=config(max_num_batched_tokens=12, max_num_seqs=4))
    good = free("good", prompt(1, 9))
    bad = free("bad", prompt(2, 21))
    drive.runner.corrupt.add("bad")
    drive.run(good, bad)
    assert isinstance(drive.results["bad"], EngineError)
    assert "NaN" in str(drive.results["bad"])
    assert drive.scheduler.metrics.corrupted_requests == 1
    assert drive.completion("good").tokens == expected(drive, good)
    drive.runner.corrupt.clear()
    drive.run(free("again", prompt(2, 21)))
    assert drive.completion("again").stats.cached_tokens == 0, "chunk blocks were still found"
    drive.run(free("good again", prompt(1, 9)))
    assert drive.completion("good again").stats.cached_tokens == 8


def test_a_corrupted_full_hit_forgets_what_it_copied() -> None:
    """EF27: the bad values may come from the cache itself."""
    drive = Drive()
    drive.run(free("first", prompt(2, 10), 1))
    drive.runner.corrupt.add("bad")
    drive.run(free("bad", prompt(2, 10), 1))
    drive.run(free("third", prompt(2, 10), 1))
    assert drive.completion("third").stats.cached_tokens == 0


def test_a_failed_step_fails_its_requests_and_keeps_nothing_of_it() -> None:
    drive = Drive(config=config(max_num_seqs=2, max_num_batched_tokens=16))
    drive.add(*(free(f"r{i}", prompt(i, 12)) for i in range(3)))
    plan = drive.plan()
    assert plan is not None
    drive.take(drive.scheduler.fail(plan, EngineError("gone")))
    drive.scheduler.check_integrity()
    drive.run()
    assert {name for name, r in drive.results.items() if isinstance(r, EngineError)} == set(
        rows(plan)
    )
    assert drive.scheduler.check_integrity() == BlockUsage(
        free=64 - drive.pool.usage().cached, cached=drive.pool.usage().cached, used=0
    )
    drive.run(free("again", prompt(0, 12)))
    assert drive.completion("again").stats.cached_tokens == 0


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
