"""The engine's thread and its callers: futures, streams, cancellation, failures, the end."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import engine.limits
from engine.choices import ChoiceSet
from engine.config import EngineConfig
from engine.engine import Engine
from engine.types import (
    Completion,
    EngineError,
    EngineOverloaded,
    InvalidRequest,
    Request,
    RequestAborted,
    RequestTooLarge,
    SamplingParams,
    StepPlan,
    TextStream,
    TokenIds,
)

from .fake_runner import EOS, FakeRunner, answer_alone, scores_alone
from .test_text import Utf8


class Bytes:
    """A tokenizer whose token i > 0 is the byte i."""

    def stream(self) -> TextStream:
        return Utf8()

    def decode(self, token_ids: object) -> str:
        raise AssertionError("not needed")


def config(**settings: object) -> EngineConfig:
    return EngineConfig.from_dict({"model": "fake", **settings})


@contextmanager
def running(runner: FakeRunner | None = None, **settings: object) -> Iterator[Engine]:
    """An engine whose blocks are all free again at the end."""
    with Engine(runner or FakeRunner(), config(**settings), eos_token_ids=[EOS]) as engine:
        yield engine
        assert engine.check_integrity().used == 0
    assert engine.runner.is_closed  # type: ignore[attr-defined]
    assert "madang-engine" not in [thread.name for thread in threading.enumerate()]


def request(name: str, *prompt: int, max_tokens: int = 8, **fields: int) -> Request:
    params = SamplingParams(max_tokens=max_tokens, temperature=1.0, seed=fields.get("seed", 0))
    return Request(name, prompt, params)


class Gate:
    """Holds the runner before a step until it is opened."""

    def __init__(self, runner: FakeRunner) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        runner.before_step = self.wait

    def wait(self, plan: StepPlan) -> None:
        self.reached.set()
        assert self.open.wait(20)


def scripted(answer: bytes) -> FakeRunner:
    """Answers the prompt (1,) with these bytes and then the end token."""

    def script(context: TokenIds) -> int | None:
        done = len(context) - 1
        return answer[done] if done < len(answer) else EOS

    return FakeRunner(vocab_size=257, script=script)


def bytes_engine(answer: bytes) -> Engine:
    return Engine(scripted(answer), config(), eos_token_ids=[EOS], tokenizer=Bytes())


def test_each_call_returns_all_results_in_order() -> None:
    """EF30: twice in one process; EF08 again, through the thread."""

    async def twice() -> None:
        with running(FakeRunner(num_blocks=200), max_num_seqs=8) as engine:
            for call in range(2):
                requests = [request(f"{call}-{i}", 1, 2, i + 1, seed=i) for i in range(20)]
                found = await asyncio.gather(*map(engine.generate, requests))
                assert [f.request_id for f in found] == [r.request_id for r in requests]
                assert [f.tokens for f in found] == [answer_alone(r, 32, 128) for r in requests]

    asyncio.run(twice())


def test_scores_through_both_ways_of_asking() -> None:
    choices = ((4, 5), (4, 6), (7,), (4,))

    async def ask() -> None:
        with running() as engine:
            a = await engine.score((1, 2, 3), choices, terminator="newline")
            whole = Request("r", (1, 2, 3), choices=choices, terminator="eos")
            b = await engine.score(whole)
            assert a.logprobs == b.logprobs == pytest.approx(scores_alone(whole, 32), abs=1e-12)
            assert (a.terminator, b.terminator, b.request_id) == ("newline", "eos", "r")
            c = await engine.score((1, 2, 3), choices[::-1])
            assert c.logprobs[::-1] == a.logprobs
            with pytest.raises(InvalidRequest, match="score needs choices"):
                await engine.score((1, 2, 3))
            with pytest.raises(InvalidRequest, match=r"goes to Engine\.score"):
                await engine.generate(Request("s", (1,), choices=choices, score=True))

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("answer", "stop", "text", "reason"),
    [
        ("한국 장기 👩‍👧 ok".encode(), (), "한국 장기 👩‍👧 ok", "stop"),
        (b"tail \xf0\x9f", (), "tail \ufffd", "stop"),
        (b"move: e2e4\nBecause", ("\n",), "move: e2e4", "stop"),
        (b"ab\xea\xb0\x80STOP", ("가S",), "ab", "stop"),
    ],
)
def test_streams_join_to_the_text(
    answer: bytes, stop: tuple[str, ...], text: str, reason: str
) -> None:
    """EF21, EF22, through the engine."""

    async def collect() -> list[str | Completion]:
        with bytes_engine(answer) as engine:
            params = SamplingParams(max_tokens=100, stop=stop)
            return [piece async for piece in engine.stream(Request("r", (1,), params))]

    *pieces, last = asyncio.run(collect())
    assert isinstance(last, Completion)
    assert (last.text, last.finish_reason) == (text, reason)
    assert "".join(str(piece) for piece in pieces) == text
    assert all("\ufffd" not in str(piece) for piece in pieces[:-1])


def test_leaving_a_stream_aborts_its_request() -> None:
    async def leave() -> None:
        with bytes_engine(b"abcdefgh" * 12) as engine:
            stream = engine.stream(Request("r", (1,), SamplingParams(max_tokens=90)))
            assert await anext(stream) == "a"
            await stream.aclose()  # type: ignore[attr-defined]
            assert engine.check_integrity().used == 0
            assert engine.snapshot().num_requests_running == 0

    asyncio.run(leave())


def test_cancelling_the_task_aborts_the_request() -> None:
    """EF17, through asyncio."""

    async def cancel() -> None:
        runner = FakeRunner()
        gate = Gate(runner)
        with running(runner) as engine:
            task = asyncio.create_task(engine.generate(request("r", 1, 2, max_tokens=90)))
            other = asyncio.create_task(engine.generate(request("o", 1, 2, max_tokens=5)))
            await asyncio.to_thread(gate.reached.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gate.open.set()
            assert (await other).tokens == answer_alone(request("o", 1, 2, max_tokens=5), 32, 128)
            assert len(runner.plans) <= 6, "the cancelled one went on"

    asyncio.run(cancel())


def test_an_abort_fails_the_future_and_unknown_ids_pass() -> None:
    runner = FakeRunner()
    gate = Gate(runner)
    with running(runner, max_num_seqs=1) as engine:
        futures = [engine.submit(request(f"r{i}", 1, i + 1)) for i in range(3)]
        assert gate.reached.wait(20)
        for name in ("r0", "r2", "nobody"):
            engine.abort(name)
        gate.open.set()
        for i in (0, 2):
            with pytest.raises(RequestAborted, match=f"request r{i}: aborted"):
                futures[i].result(20)
        assert futures[1].result(20)


def test_refusals_come_at_once_from_submit() -> None:
    runner = FakeRunner(num_blocks=8)
    gate = Gate(runner)
    with running(runner, max_num_seqs=1, max_num_queued_reqs=1) as engine:
        with pytest.raises(RequestTooLarge):
            engine.submit(request("big", *([1] * 40)))
        with pytest.raises(InvalidRequest, match="prompt is empty"):
            engine.submit(request("empty"))
        first = engine.submit(request("a", 1))
        assert gate.reached.wait(20)
        second = engine.submit(request("b", 1))
        with pytest.raises(EngineOverloaded, match="max_num_queued_reqs is 1"):
            engine.submit(request("c", 1))
        with pytest.raises(EngineOverloaded):
            engine.submit(request("d", 1))
        gate.open.set()
        assert first.result(20).stats.completion_tokens > 0
        assert second.result(20).stats.completion_tokens > 0
        gate.open.clear()
        again = engine.submit(request("e", 1))
        with pytest.raises(InvalidRequest, match="'e' is in use"):
            engine.submit(request("e", 1))
        gate.open.set()
        assert again.result(20)


def test_a_runner_that_raises_fails_that_step_alone() -> None:
    runner = FakeRunner()
    with running(runner) as engine:
        runner.fails = True
        with pytest.raises(
            EngineError, match=r"failed in step 1: RuntimeError\('the device is"
        ) as info:
            engine.submit(request("a", 1)).result(20)
        assert isinstance(info.value.__cause__, RuntimeError)
        runner.fails = False
        assert engine.submit(request("b", 1)).result(20)
        assert not engine.is_dead
        assert engine.snapshot().failed_requests == 1


def test_corrupted_output_fails_its_request_and_is_counted() -> None:
    """EF27, through the thread."""
    runner = FakeRunner()
    runner.corrupt.add("bad")
    with running(runner) as engine:
        bad, good = engine.submit(request("bad", 1, 2)), engine.submit(request("good", 3, 4))
        with pytest.raises(EngineError, match="NaN"):
            bad.result(20)
        found = good.result(20)
        assert isinstance(found, Completion)
        assert found.tokens == answer_alone(request("good", 3, 4), 32, 128)
        assert engine.snapshot().corrupted_requests == 1


def test_a_broken_plan_ends_the_engine_and_says_so() -> None:
    runner = FakeRunner()
    gate = Gate(runner)
    engine_ = Engine(runner, config(max_num_seqs=1), eos_token_ids=[EOS])
    futures = [engine_.submit(request(f"r{i}", 1, i + 1)) for i in range(3)]
    assert gate.reached.wait(20)

    def broken(*args: object) -> None:
        raise KeyError("our own bug")

    engine_._scheduler.commit = broken  # type: ignore[assignment, method-assign]
    gate.open.set()
    for future in futures:
        with pytest.raises(EngineError, match="the engine is dead: KeyError") as info:
            future.result(20)
        assert isinstance(info.value.__cause__, KeyError)
    assert engine_.is_dead
    with pytest.raises(EngineError, match="the engine is dead"):
        engine_.submit(request("late", 1))
    engine_.close()
    assert runner.is_closed


@pytest.mark.parametrize("drain", [True, False])
def test_closing_drains_or_aborts_and_leaves_no_thread(drain: bool) -> None:
    runner = FakeRunner()
    gate = Gate(runner)
    engine_ = Engine(runner, config(max_num_seqs=1), eos_token_ids=[EOS])
    futures = [engine_.submit(request(f"r{i}", 1, i + 1)) for i in range(3)]
    assert gate.reached.wait(20)
    closer = threading.Thread(target=engine_.close, kwargs={"drain": drain})
    closer.start()
    while not engine_.is_dead:
        time.sleep(0.001)
    with pytest.raises(EngineError, match="the engine is closed"):
        engine_.submit(request("late", 1))
    gate.open.set()
    closer.join(20)
    assert not closer.is_alive()
    for future in futures:
        if drain:
            assert future.result(0)
        else:
            with pytest.raises(RequestAborted, match="the engine is closed"):
                future.result(0)
    engine_.close()
    assert engine_.check_integrity().used == 0
    assert runner.is_closed
    assert "madang-engine" not in [thread.name for thread in threading.enumerate()]


def test_a_callback_that_raises_hurts_only_its_request() -> None:
    def bad(text: str) -> None:
        raise ZeroDivisionError

    with bytes_engine(b"hello") as engine:
        params = SamplingParams(max_tokens=9)
        failing = engine.submit(Request("a", (1,), params), on_text=bad)
        with pytest.raises(EngineError, match="on_text of request a failed"):
            failing.result(20)
        found = engine.submit(Request("b", (1,), params)).result(20)
        assert isinstance(found, Completion)
        assert found.text == "hello"
        assert engine.check_integrity().used == 0


def test_the_clock_is_injected() -> None:
    """Deadlines and times follow it."""
    now = [100.0]
    runner = FakeRunner()
    runner.before_step = lambda plan: now.__setitem__(0, now[0] + 1.0)
    with Engine(runner, config(), eos_token_ids=[EOS], clock=lambda: now[0]) as engine:
        params = SamplingParams(max_tokens=3, ignore_eos=True)
        times = engine.submit(Request("a", (1,), params)).result(20).stats.times
        assert (times.queue, times.prefill, times.decode, times.e2e) == (0.0, 1.0, 2.0, 3.0)
        long = SamplingParams(max_tokens=90, ignore_eos=True)
        with pytest.raises(RequestAborted, match="its time is over"):
            engine.submit(Request("b", (1,), long, timeout_s=5.0)).result(20)
        assert engine.snapshot().time == now[0]


def test_constraints_are_built_on_the_callers_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """EF28: a new position's trie touches no running request."""
    threads: list[str] = []

    class Watched(ChoiceSet):
        @classmethod
        def build(cls, choices: object) -> ChoiceSet:
            threads.append(threading.current_thread().name)
            return ChoiceSet.build(choices)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.limits, "ChoiceSet", Watched)
    with running() as engine_:
        walk = Request("w", (1, 2), choices=((3, 4), (5, 6)))
        assert engine_.submit(walk).result(20)
        score = Request("s", (1, 2), choices=((3, 4), (5, 6)), score=True)
        assert engine_.submit(score).result(20)
    assert threads == [threading.current_thread().name] * 2


def test_threads_may_submit_at_once() -> None:
    with running(FakeRunner(num_blocks=300), max_num_seqs=16) as engine:
        found: dict[str, TokenIds] = {}

        def work(k: int) -> None:
            for i in range(15):
                one = request(f"{k}-{i}", k + 1, i + 1, seed=i)
                result = engine.submit(one).result(20)
                assert isinstance(result, Completion)
                found[one.request_id] = result.tokens

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == 90
        for k in range(6):
            for i in range(15):
                one = request("x", k + 1, i + 1, seed=i)
                assert found[f"{k}-{i}"] == answer_alone(one, 32, 128)
        assert engine.snapshot().finished_requests == 90
