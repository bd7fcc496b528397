"""One pass over a trie against plain passes, one a choice."""

import random
from pathlib import Path

import pytest
import torch

from engine.hub import models_dir
from engine.runner import ModelRunner
from engine.trie import ChoiceTrie
from engine.types import StepPlan, TokenIds
from tests.engine.runner_kit import logits_of, make_runner, part, tokens_of, write_checkpoint

TOLERANCE = 1e-4
REAL = models_dir() / "smollm2-135m"


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> ModelRunner:
    return make_runner(write_checkpoint(tmp_path_factory.mktemp("model")))


def choices_of(count: int, letters: int, seed: int) -> list[TokenIds]:
    """Distinct choices of 1 … 5 tokens; many begin others."""
    rng = random.Random(seed)
    found: dict[TokenIds, None] = {}
    while len(found) < count:
        found[tuple(rng.randrange(letters) for _ in range(rng.randint(1, 5)))] = None
    return list(found)


def one_pass(runner: ModelRunner, prompt: TokenIds, choices: list[TokenIds], start: int = 0):  # type: ignore[no-untyped-def]
    trie = ChoiceTrie.build(choices)
    output = runner.step(StepPlan(0, (part(prompt, start, len(prompt), 0, trie=trie),)))
    edges = output.sequences[0].edge_logprobs
    assert edges is not None
    return [sum(edges[e] for e in path) for path in trie.paths]


def each_alone(runner: ModelRunner, prompt: TokenIds, choice: TokenIds) -> float:
    """Plain passes over prompt + choice[:i], no trie: the sum of log-softmax terms."""
    total = 0.0
    for i, token in enumerate(choice):
        tokens = prompt + choice[:i]
        start = 0 if i == 0 else len(tokens) - 1  # the rest is in the pool
        row = logits_of(runner, [part(tokens, start, len(tokens), 1)])[0][0]
        total += float(torch.log_softmax(row.double(), -1)[token])
    return total


@pytest.mark.parametrize(("count", "letters"), [(1, 8), (2, 3), (69, 20), (218, 9)])
@pytest.mark.parametrize("length", [1, 45, 509])
def test_equals_plain_passes(runner: ModelRunner, count: int, letters: int, length: int) -> None:
    prompt = tokens_of(count, length)
    choices = choices_of(count, letters, count)
    found = one_pass(runner, prompt, choices)
    tried = range(count) if count < 10 else range(0, count, 9 if length == 45 else 31)
    for i in tried:
        assert found[i] == pytest.approx(each_alone(runner, prompt, choices[i]), abs=TOLERANCE)


def test_choices_that_begin_one_another(runner: ModelRunner) -> None:
    prompt = tokens_of(5, 33)
    choices: list[TokenIds] = [(4,), (4, 7), (4, 7, 7), (4, 8), (5, 1)]
    for choice, score in zip(choices, one_pass(runner, prompt, choices), strict=True):
        assert score == pytest.approx(each_alone(runner, prompt, choice), abs=TOLERANCE)


def test_cold_partial_and_full_hits(runner: ModelRunner) -> None:
    prompt, choices = tokens_of(6, 130), choices_of(40, 12, 3)
    cold = one_pass(runner, prompt, choices)
    for start in (64, 77, 129):
        assert one_pass(runner, prompt, choices, start) == cold


def test_a_full_hit_writes_only_the_slot_it_recomputes(runner: ModelRunner) -> None:
    prompt, choices = tokens_of(7, 100), choices_of(30, 12, 4)
    one_pass(runner, prompt, choices)
    before = runner.cache.entries.clone()
    one_pass(runner, prompt, choices, 99)
    torch.testing.assert_close(runner.cache.entries, before, rtol=0, atol=0, equal_nan=True)


def test_probabilities_of_all_first_tokens_sum_to_one(runner: ModelRunner) -> None:
    """Nothing is renormalised: over the whole vocabulary the mass is 1, over half of it less."""
    every: list[TokenIds] = [(t,) for t in range(runner.vocab_size)]
    scores = torch.tensor(one_pass(runner, tokens_of(8, 20), every), dtype=torch.float64)
    assert float(scores.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    half = one_pass(runner, tokens_of(8, 20), every[::2])
    assert half == scores.tolist()[::2]


@pytest.mark.skipif(not REAL.exists(), reason="skipped: `arena model pull smollm2-135m` first")
def test_real_model_equals_plain_passes() -> None:
    real = make_runner(REAL, max_model_len=1024)
    prompt = tokens_of(9, 80, 49152)
    choices = [tuple(1000 + 7 * t for t in choice) for choice in choices_of(12, 9, 12)]
    found = one_pass(real, prompt, choices)
    for choice, score in zip(choices, found, strict=True):
        assert score == pytest.approx(each_alone(real, prompt, choice), abs=TOLERANCE)


def test_an_empty_pool_needs_no_trie_slots(tmp_path: Path) -> None:
    """A trie takes no block: the pool holds the prompt and not one slot more."""
    small = make_runner(write_checkpoint(tmp_path), num_gpu_blocks_override=2, poison=False)
    trie = ChoiceTrie.build(choices_of(60, 10, 5))
    step = part(tokens_of(10, 32), 0, 32, 0, trie=trie)
    step = type(step)("s", step.tokens, 0, (1, 0), trie=trie)
    output = small.step(StepPlan(0, (step,))).sequences[0]
    assert output.edge_logprobs is not None
    assert len(output.edge_logprobs) == len(trie.edges)
