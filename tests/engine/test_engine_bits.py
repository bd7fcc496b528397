"""Planner and model together: the same request gives the same bits, whatever else runs.

A small random Llama in float32 on memory that is NaN where nothing was written. EF07, EF08, EF09,
EF11, EF16, EF18 on the real runner.
"""

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.config import EngineConfig
from engine.limits import Limits
from engine.model_config import expected_shapes, read_config
from engine.runner import ModelRunner
from engine.scheduler import Scheduler
from engine.types import ChoiceScores, Completion, EngineError, Request, SamplingParams, TokenIds

from .model_kit import llama_config, write_json

VOCAB = 64
Bits = tuple[object, ...]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_json(
        folder / "config.json",
        llama_config(vocab_size=VOCAB, hidden_size=32, max_position_embeddings=160),
    )
    generator = torch.Generator().manual_seed(4)
    tensors = {
        name: torch.randn(shape, generator=generator) * 0.4
        for name, shape in expected_shapes(read_config(folder)).items()
        if name != "lm_head.weight"
    }
    save_file(tensors, str(folder / "model.safetensors"))
    return folder


class Bench:
    """One runner and its scheduler, stepped by hand."""

    def __init__(self, folder: Path, **settings: object) -> None:
        sizes: dict[str, object] = {"num_gpu_blocks_override": 200, "max_num_seqs": 40}
        config = EngineConfig.from_dict({"model": "tiny", **sizes, **settings})
        self.runner = ModelRunner.load(folder, config)
        with torch.inference_mode():
            self.runner.cache.poison()
        self.scheduler = Scheduler(config, Limits.of(self.runner, config), eos_token_ids=[2])
        self.results: dict[str, Completion | ChoiceScores | EngineError] = {}

    def run(self, *requests: Request) -> None:
        for request in requests:
            self.scheduler.add(self.scheduler.prepare(request, 0.0), 0.0)
        while (plan := self.scheduler.plan(0.0)) is not None:
            for update in self.scheduler.commit(plan, self.runner.step(plan), 0.0):
                if update.result is not None:
                    self.results[update.request_id] = update.result
            self.scheduler.check_integrity()

    def bits(self, name: str) -> Bits:
        """Tokens and every log-probability as hexadecimal floats."""
        result = self.results[name]
        if isinstance(result, ChoiceScores):
            return tuple(value.hex() for value in result.logprobs)
        assert isinstance(result, Completion), result
        return (result.tokens, *(None if v is None else v.hex() for v in result.logprobs))


def tokens(rng: random.Random, low: int, high: int) -> TokenIds:
    return tuple(rng.randrange(3, VOCAB) for _ in range(rng.randint(low, high)))


CHOICES = tuple((a, b, *c) for a in (3, 4) for b in (5, 6, 7) for c in ((8, 9), (8,), (10,)))
PROMPT = tokens(random.Random(1), 70, 70)
SAMPLED = SamplingParams(temperature=0.9, seed=11, max_tokens=24, ignore_eos=True, logprobs=1)
WANTED = (
    Request("free", PROMPT, SAMPLED),
    Request("walk", PROMPT, SamplingParams(logprobs=1), choices=CHOICES),
    Request("score", PROMPT, choices=CHOICES, score=True),
)


def neighbour(rng: random.Random, i: int) -> Request:
    prompt = PROMPT[: rng.choice([0, 16, 37])] + tokens(rng, 1, 60)
    params = SamplingParams(rng.choice([0.0, 1.0]), max_tokens=rng.randint(1, 12), seed=i)
    kind = rng.randrange(3)
    return Request(f"n{i}", prompt, params, CHOICES if kind else None, score=kind == 2)


@pytest.fixture(scope="module")
def alone(model_dir: Path) -> dict[str, Bits]:
    found = {}
    for request in WANTED:
        bench = Bench(model_dir, enable_prefix_caching=False)
        bench.run(request)
        found[request.request_id] = bench.bits(request.request_id)
    return found


@pytest.mark.parametrize("neighbours", [0, 1, 7, 31])
def test_among_neighbours_cold_and_warm(
    model_dir: Path, alone: dict[str, Bits], neighbours: int
) -> None:
    rng = random.Random(neighbours)
    bench = Bench(model_dir)
    for call in range(2):
        mixed = [*WANTED, *(neighbour(rng, 100 * call + i) for i in range(neighbours))]
        rng.shuffle(mixed)
        bench.run(*mixed)
        for name, bits in alone.items():
            assert bench.bits(name) == bits, (call, name)
    last = bench.results["score"]
    assert isinstance(last, ChoiceScores)
    assert last.stats.cached_tokens == len(PROMPT) - 1, "the second call was not warm"


@pytest.mark.parametrize("budget", [3, 17, 64])
def test_in_chunks(model_dir: Path, alone: dict[str, Bits], budget: int) -> None:
    bench = Bench(model_dir, max_num_batched_tokens=budget, max_num_seqs=3)
    bench.run(*WANTED)
    assert {name: bench.bits(name) for name in alone} == alone


def test_after_preemption(model_dir: Path, alone: dict[str, Bits]) -> None:
    """EF18: the pool holds a part of what the requests need."""
    bench = Bench(model_dir, num_gpu_blocks_override=13, max_num_seqs=8)
    others = [Request(f"o{i}", tokens(random.Random(i), 20, 20), SAMPLED) for i in range(5)]
    bench.run(*others[:3], *WANTED, *others[3:])
    assert bench.scheduler.metrics.num_preemptions > 0
    assert {name: bench.bits(name) for name in alone} == alone


def test_from_every_length_of_cached_prefix(model_dir: Path, alone: dict[str, Bits]) -> None:
    """EF16: none, part and all of the prefix, also in the middle of a block."""
    for cached in (1, 15, 16, 17, 40, 69):
        bench = Bench(model_dir)
        bench.run(Request("before", (*PROMPT[:cached], 63), SamplingParams(max_tokens=1)))
        bench.run(WANTED[2])
        result = bench.results["score"]
        assert isinstance(result, ChoiceScores)
        assert result.stats.cached_tokens == cached
        assert bench.bits("score") == alone["score"]


def test_the_walk_ends_where_scoring_says(model_dir: Path) -> None:
    bench = Bench(model_dir)
    for i in range(8):
        prompt = tokens(random.Random(i), 5, 20)
        bench.run(
            Request(f"s{i}", prompt, choices=CHOICES, score=True),
            Request(f"w{i}", prompt, choices=CHOICES),
        )
        score, walk = bench.results[f"s{i}"], bench.results[f"w{i}"]
        assert isinstance(score, ChoiceScores)
        assert isinstance(walk, Completion)
        assert walk.choice == score.greedy


def repeat_under_load(folder: Path, alone: dict[str, Bits], times: int) -> None:
    rng = random.Random(3)
    bench = Bench(folder, num_gpu_blocks_override=60, max_num_batched_tokens=96)
    for call in range(times):
        load = [neighbour(rng, 50 * call + i) for i in range(rng.randrange(6))]
        bench.run(*load, *WANTED)
        assert {name: bench.bits(name) for name in alone} == alone, call


def test_repeats_under_load(model_dir: Path, alone: dict[str, Bits]) -> None:
    repeat_under_load(model_dir, alone, 3)


@pytest.mark.drill
@pytest.mark.timeout(3600)
def test_a_thousand_repeats_under_load(model_dir: Path, alone: dict[str, Bits]) -> None:
    repeat_under_load(model_dir, alone, 1000)
