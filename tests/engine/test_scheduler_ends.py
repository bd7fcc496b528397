"""Refusals, aborts, deadlines, failures: nothing leaks and the rest goes on."""

import pytest

from engine.blocks import BlockUsage
from engine.types import (
    EngineError,
    EngineOverloaded,
    InvalidRequest,
    Request,
    RequestAborted,
    RequestTooLarge,
    SamplingParams,
)

from .drive import Drive
from .fake_runner import FakeRunner
from .requests import config, expected, free, prompt, rows, score


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
    """EF17, EF27: not even where its source has been forgotten meanwhile."""
    drive = Drive()
    drive.run(free("a", prompt(1, 10), 1))
    drive.add(free("b", (*prompt(1, 9), 7, 7), 5))
    plan = drive.plan()
    assert plan is not None
    drive.pool.forget([copy.source for copy in plan.copies])
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


@pytest.mark.parametrize("length", [3, 10])
@pytest.mark.parametrize("budget", [4, 64])
def test_a_corrupted_hit_forgets_what_it_copied(length: int, budget: int) -> None:
    """EF27: the bad values may come from the cache itself, also chunks ago."""
    drive = Drive(config=config(max_num_batched_tokens=budget, max_num_seqs=2))
    drive.run(free("first", prompt(2, length), 1))
    drive.runner.corrupt.add("bad")
    drive.run(free("bad", (*prompt(2, length), *prompt(3, 7)), 1))
    drive.run(free("third", prompt(2, length), 1))
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
