"""Two engines in one pool: together, in waves, with a model that is lost on the way."""

import asyncio
import time
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch

from engine.config import EngineConfig
from engine.engine import Engine
from engine.footprint import weights_bytes
from engine.model_config import ModelError, read_config
from engine.pool import Pool, PoolError, WeightsLost
from engine.types import (
    ChoiceScores,
    Completion,
    EngineError,
    Request,
    RequestAborted,
    SamplingParams,
    StepOutput,
    StepPlan,
)

from .fake_runner import EOS, FakeRunner, answer_alone
from .runner_kit import last_logits, logits_of, make_runner, part, tokens_of, write_checkpoint
from .small_model import small_model


class MovingRunner(FakeRunner):
    """Fails where it steps while its weights are away, or while another of its kind steps."""

    steppers: Sequence["MovingRunner"] = ()

    def __init__(self) -> None:
        super().__init__(num_blocks=200)
        self.is_here, self.is_stepping, self.is_lost = True, False, False

    def step(self, plan: StepPlan) -> StepOutput:
        assert self.is_here
        assert not any(other.is_stepping for other in self.steppers)
        self.is_stepping = True
        time.sleep(0.0005)
        try:
            return super().step(plan)
        finally:
            self.is_stepping = False

    def offload(self) -> None:
        self.is_here = False

    def reload(self) -> None:
        if self.is_lost:
            raise ModelError("model.safetensors is missing")
        self.is_here = True


def keep(runner: MovingRunner) -> MovingRunner:
    return runner


def engines(pool: Pool, count: int = 2) -> list[Engine]:
    runners = [MovingRunner() for _ in range(count)]
    made = []
    for i, runner in enumerate(runners):
        runner.steppers = runners
        seat = pool.join(f"model-{i}", 10)
        seat.enter(partial(keep, runner))
        config = EngineConfig(model="fake", max_num_seqs=8)
        made.append(Engine(runner, config, eos_token_ids=[EOS], seat=seat))
    return made


def requests(count: int) -> list[Request]:
    params = [SamplingParams(max_tokens=8, temperature=1.0, seed=i) for i in range(count)]
    return [Request(f"r{i}", (1, 2, i % 7), p) for i, p in enumerate(params)]


async def games(pair: Sequence[Engine], count: int, plies: int) -> list[list[tuple[int, ...]]]:
    """Each game asks both engines in turn, every other begins with the second."""

    async def game(number: int) -> list[tuple[int, ...]]:
        moves: list[tuple[int, ...]] = []
        for ply in range(plies):
            params = SamplingParams(max_tokens=6, temperature=1.0, seed=number * 100 + ply)
            prompt = (1, number % 7, *(move[0] for move in moves))
            request = Request(f"g{number}-{ply}", prompt, params)
            done = await pair[(number + ply) % 2].generate(request)
            moves.append(done.tokens)
        return moves

    return list(await asyncio.gather(*map(game, range(count))))


@pytest.mark.parametrize("limit", [None, 20, 10])
def test_engines_answer_as_alone_and_step_one_at_a_time(limit: int | None) -> None:
    pool = Pool(limit)
    a, b = engines(pool)
    wanted = requests(40)
    futures = [(a.submit(r), b.submit(r)) for r in wanted]
    for request, pair in zip(wanted, futures, strict=True):
        for future in pair:
            done = future.result(30)
            assert isinstance(done, Completion)
            assert done.tokens == answer_alone(request, 32, 128)
    a.close()
    b.close()
    assert pool.resident == ()
    assert (len(pool.swaps) > 0) == (limit == 10)


def test_games_are_the_same_together_and_in_waves_and_swaps_are_few() -> None:
    found = []
    for limit in (None, 10):
        pool = Pool(limit)
        pair = engines(pool)
        found.append(asyncio.run(games(pair, 32, 6)))
        for engine in pair:
            engine.close()
    assert found[0] == found[1]
    assert 6 <= len(pool.swaps) <= 8, "32 games of 6 plies, every other begun by each"
    # what was served before the first swap and after the last is in no or another count
    assert sum(swap.served for swap in pool.swaps) >= 32 * 5


def test_a_model_lost_at_a_swap_fails_its_own_requests_only() -> None:
    pool = Pool(10)
    a, b = engines(pool)
    assert isinstance(b.runner, MovingRunner)
    first = a.submit(requests(1)[0])
    first.result(30)
    assert pool.resident == ("model-0",)
    b.runner.is_lost = True
    lost = [b.submit(r) for r in requests(5)]
    for future in lost:
        with pytest.raises(WeightsLost, match=r"model-1 could not be loaded again: model\.safe"):
            future.result(30)
    with pytest.raises(EngineError, match="model-1 could not be loaded again"):
        b.submit(requests(1)[0])
    for future in [a.submit(r) for r in requests(20)]:
        future.result(30)
    a.close()
    b.close()


def test_closing_while_others_compute_does_not_wait_for_the_turn() -> None:
    pool = Pool(10)
    a, b = engines(pool)
    long = Request("long", (1,), SamplingParams(max_tokens=100, temperature=1.0, seed=3))
    assert isinstance(b.runner, MovingRunner)
    b.runner.script = lambda context: 5  # never the end
    running, waiting = b.submit(long), a.submit(requests(1)[0])
    a.close()
    with pytest.raises(RequestAborted):
        waiting.result(1)
    running.result(30)
    b.close()


def test_a_waiting_request_can_be_aborted_and_expire() -> None:
    pool = Pool(10)
    a, b = engines(pool)
    assert isinstance(b.runner, MovingRunner)
    b.runner.script = lambda context: 5
    busy = [b.submit(Request(f"b{i}", (1,), SamplingParams(max_tokens=100))) for i in range(16)]
    late = a.submit(Request("late", (1,), timeout_s=0.01))
    gone = a.submit(Request("gone", (1,)))
    a.abort("gone")
    for future, words in ((late, "its time is over"), (gone, "aborted")):
        with pytest.raises(RequestAborted, match=words):
            future.result(30)
    assert not pool.swaps
    for future in busy:
        future.result(30)
    a.close()
    b.close()


CHOICES = tuple(tokens_of(50 + i, 1 + i % 4) for i in range(12))


def real_answers(folders: Sequence[Path], limit: int | None) -> tuple[list[object], int]:
    """Scores and sampled texts of two real models, eight requests at a time for each."""
    pool = Pool(limit)
    made = [
        Engine.load(EngineConfig(model=str(folder), num_gpu_blocks_override=200), pool)
        for folder in folders
    ]
    found: list[object] = []
    for turn in range(3):
        futures = []
        for i in range(16):
            prompt = tokens_of(i, 40) + tokens_of(1000 + turn, 5 * turn)
            params = SamplingParams(max_tokens=6, temperature=0.8, seed=i)
            is_score = i % 2 == 1
            request = Request(
                f"{turn}-{i}", prompt, params, choices=CHOICES if is_score else None, score=is_score
            )
            futures.append(made[(i // 2 + turn) % 2].submit(request))
        for future in futures:
            done = future.result(60)
            found.append(done.logprobs if isinstance(done, ChoiceScores) else done.tokens)
    for engine in made:
        engine.close()
    return found, len(pool.swaps)


def test_real_models_give_the_same_bits_in_waves(tmp_path: Path) -> None:
    folders = [small_model(tmp_path / name, seed) for seed, name in enumerate("ab")]
    together, none = real_answers(folders, None)
    waves, swaps = real_answers(folders, 600_000)
    assert none == 0
    assert swaps >= 3
    assert waves == together
    assert len({str(answer) for answer in together}) > 20


def test_weights_that_never_fit_are_refused_before_they_are_read(tmp_path: Path) -> None:
    folder = small_model(tmp_path / "a", 0)
    config = EngineConfig(model=str(folder))
    needed = weights_bytes(read_config(folder))
    with pytest.raises(PoolError, match=rf"weights of big alone; set it to {needed} or more"):
        Engine.load(config, Pool(needed - 1), "big")


def test_weights_leave_memory_and_come_back_with_the_same_bits(tmp_path: Path) -> None:
    runner = make_runner(write_checkpoint(tmp_path / "a", 0))
    tokens = tokens_of(1, 50)
    before = last_logits(runner, tokens)
    leaves = [weakref.ref(tensor) for tensor in (runner.model.head.data, runner.model.embedding)]
    runner.offload()
    runner.offload()
    assert [leaf() for leaf in leaves] == [None, None]
    runner.reload()
    assert torch.equal(last_logits(runner, tokens), before)
    tail = part(tokens, 49, 50, 0)  # what the pool kept is still right
    assert torch.equal(logits_of(runner, [tail])[0][0], before)


def test_other_weights_in_their_place_are_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a", 0)
    runner = make_runner(folder)
    runner.offload()
    write_checkpoint(folder, 1)
    with pytest.raises(ModelError, match="has changed since it was loaded: start the run again"):
        runner.reload()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="has changed"):
        runner.reload()
    runner.close()
