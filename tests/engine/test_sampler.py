"""What each setting leaves, and that draws depend on (seed, position) and the row alone."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.sampler import draw, sample_allowed, sample_rows
from engine.types import SampleSpec, SamplingParams

VOCAB = 700


def spec(position: int = 5, **params: object) -> SampleSpec:
    return SampleSpec(SamplingParams(**params), position)  # type: ignore[arg-type]


def logits_of(seed: int, rows: int = 1) -> torch.Tensor:
    return torch.randn(rows, VOCAB, generator=torch.Generator().manual_seed(seed)) * 3


def drawn(row: torch.Tensor, count: int, **params: object) -> Counter[int]:
    return Counter(
        sample_rows(row, [spec(position=i, temperature=1.0, **params)])[0].token or 0
        for i in range(count)
    )


def test_greedy_takes_the_best_and_the_smaller_of_two() -> None:
    row = torch.zeros(1, VOCAB)
    row[0, [9, 4]] = 2.0
    assert sample_rows(row, [spec()])[0].token == 4
    assert sample_rows(row, [spec(logprobs=2)])[0].token == 4
    assert sample_rows(row, [replace(spec(), allowed=(7, 9))])[0].token == 9


def test_a_draw_depends_on_its_row_seed_and_position_only() -> None:
    rows = logits_of(1, 40)
    specs = [spec(position=i, temperature=0.8, seed=i * 7, top_p=0.9) for i in range(40)]
    together = [o.token for o in sample_rows(rows, specs)]
    alone = [sample_rows(rows[i : i + 1], [specs[i]])[0].token for i in range(40)]
    assert together == alone
    moved = sample_rows(rows, [replace(s, position=s.position + 1) for s in specs])
    reseeded = [replace(s, params=replace(s.params, seed=s.params.seed + 1)) for s in specs]
    assert [o.token for o in moved] != together
    assert [o.token for o in sample_rows(rows, reseeded)] != together


def test_draws_follow_the_softmax() -> None:
    row = torch.full((1, VOCAB), -30.0)
    row[0, [3, 80, 600]] = torch.tensor([1.0, 0.0, 2.0])
    counts = drawn(row, 3000)
    weights = np.exp([1.0, 0.0, 2.0])
    for token, expected in zip((3, 80, 600), weights / weights.sum(), strict=True):
        error = 5 * math.sqrt(expected * (1 - expected) / 3000)
        assert counts[token] / 3000 == pytest.approx(expected, abs=error)


def test_temperature_sharpens() -> None:
    row = torch.full((1, VOCAB), -30.0)
    row[0, [3, 80]] = torch.tensor([1.0, 0.0])
    cold = Counter(
        sample_rows(row, [spec(position=i, temperature=0.2)])[0].token for i in range(400)
    )
    assert cold[3] > 380


@pytest.mark.parametrize(
    ("params", "left"),
    [
        ({"top_k": 2}, {10, 11}),
        ({"top_k": 1}, {10}),
        ({"top_p": 0.5}, {10}),
        ({"top_p": 0.75}, {10, 11}),
        ({"top_p": 1e-9}, {10}),
        ({"min_p": 0.45}, {10, 11}),
        ({"min_p": 0.2}, {10, 11, 12}),
        ({"top_k": 3, "top_p": 0.99, "min_p": 0.45}, {10, 11}),
    ],
)
def test_what_filters_leave(params: dict[str, float], left: set[int]) -> None:
    row = torch.full((1, VOCAB), -50.0)
    row[0, 10:14] = torch.tensor([0.52, 0.26, 0.14, 0.08]).log()
    assert set(drawn(row, 200, **params)) == left


def test_top_k_does_not_change_which_noise_a_token_gets() -> None:
    row = logits_of(3)
    free = [sample_rows(row, [spec(position=i, temperature=1.0)])[0].token for i in range(60)]
    best = set(row[0].topk(20).indices.tolist())
    capped = [
        sample_rows(row, [spec(position=i, temperature=1.0, top_k=20)])[0].token for i in range(60)
    ]
    assert all(a == b for a, b in zip(free, capped, strict=True) if a in best)
    assert sum(a in best for a in free) > 20


def test_repetition_penalty() -> None:
    row = torch.full((1, VOCAB), -5.0)
    row[0, [3, 4, 5]] = torch.tensor([2.0, 1.9, -1.0])
    history = replace(spec(repetition_penalty=1.5), history=(3, 3, 9))
    assert sample_rows(row, [spec()])[0].token == 3
    assert sample_rows(row, [history])[0].token == 4
    assert sample_rows(-row, [replace(history, history=tuple(range(VOCAB)))])[0].token == 0


def test_logprobs_are_raw_and_over_the_whole_vocabulary() -> None:
    row = logits_of(4)
    expected = torch.log_softmax(row[0].double(), -1)
    found = sample_rows(row, [replace(spec(logprobs=4, temperature=0.3), allowed=(8, 9))])[0]
    assert found.token in (8, 9)
    assert found.logprob == pytest.approx(float(expected[found.token]), abs=1e-5)
    top = expected.topk(4)
    assert [t for t, _ in found.top_logprobs] == top.indices.tolist()
    assert [p for _, p in found.top_logprobs] == pytest.approx(top.values.tolist(), abs=1e-5)
    assert sample_rows(row, [spec()])[0].logprob is None


def test_masked_rows_agree_with_full_rows() -> None:
    row, allowed = logits_of(5), (3, 77, 200, 201, 650)
    for position in range(30):
        asked = replace(spec(position, temperature=1.3, seed=9), allowed=allowed)
        few = sample_allowed(row[0, list(allowed)].double().numpy(), asked)
        assert few.token == sample_rows(row, [asked])[0].token


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_broken_logits_are_reported_and_stay_with_their_row(value: float) -> None:
    rows = logits_of(6, 3)
    rows[1, 44] = value
    outputs = sample_rows(rows, [spec(), spec(temperature=1.0), spec(logprobs=2)])
    assert [o.corrupted for o in outputs] == [False, True, False]
    assert outputs[1].token is None
    scores = np.array([1.0, value])
    assert sample_allowed(scores, replace(spec(), allowed=(1, 2))).corrupted


def test_noise_is_the_same_for_few_and_many_candidates() -> None:
    tokens = np.arange(VOCAB)
    scores = np.zeros(VOCAB)
    for position in range(20):
        asked = spec(position, temperature=1.0)
        best = draw(tokens, scores, asked)
        few = tokens[max(0, best - 100) : best + 100]
        assert draw(few, scores[: len(few)], asked) == best
