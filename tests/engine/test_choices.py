"""From edges to the distribution over choices."""

import math
import random

import pytest

from engine.choices import ChoiceSet, log_rest, pick, tempered
from engine.rng import uniform
from engine.types import EngineError, SamplingParams, TokenIds

from .fake_runner import log_softmax

GREEDY = SamplingParams()
VOCAB = 16


def edges_of(choices: ChoiceSet, prompt: TokenIds = (1, 2, 3)) -> tuple[float, ...]:
    """The fake model's log-probabilities of the trie's edges."""
    trie, contexts = choices.trie, [prompt]
    for token, parent in zip(trie.tokens, trie.parents, strict=True):
        contexts.append((*contexts[parent + 1], token))
    return tuple(float(log_softmax(contexts[r + 1], VOCAB)[t]) for r, t in trie.edges)


def random_choices(rng: random.Random, count: int) -> list[TokenIds]:
    found: set[TokenIds] = set()
    while len(found) < count:
        found.add(tuple(rng.randrange(VOCAB) for _ in range(rng.randint(1, 4))))
    return rng.sample(sorted(found), count)


def test_the_best_move_is_not_where_the_greedy_walk_ends() -> None:
    """EF13: argmax of whole-sequence probability on a model that misleads a greedy walk."""
    choices = ChoiceSet.build([(1, 3), (1, 4), (2, 5)])
    probability = {(-1, 1): 0.6, (-1, 2): 0.4, (0, 3): 0.5, (0, 4): 0.5, (1, 5): 1.0}
    edges = tuple(math.log(probability[edge]) for edge in choices.trie.edges)
    found = choices.distribution(edges, GREEDY, 3)
    assert found.argmax == found.choice == 2
    assert found.greedy == 0
    assert found.legal_mass == pytest.approx(1.0)
    assert found.probabilities == pytest.approx((0.3, 0.3, 0.4))


def test_scores_are_sums_and_never_averages() -> None:
    """EF14: moves of one to five tokens rank by true probability."""
    choices = ChoiceSet.build([(1,), (2, 1, 1, 1, 1)])
    edges = [math.log(0.2)] + [math.log(0.5)] * 5  # averages would say the long one
    assert [t for _, t in choices.trie.edges] == [1, 2, 1, 1, 1, 1]
    found = choices.distribution(edges, GREEDY, 1)
    assert found.logprobs == pytest.approx((math.log(0.2), 5 * math.log(0.5)))
    assert found.argmax == 0


def test_a_choice_that_begins_others_loses_what_goes_on() -> None:
    choices = ChoiceSet.build([(1, 2), (1,), (1, 3)])
    probability = {(-1, 1): 0.5, (0, 2): 0.3, (0, 3): 0.1}
    edges = [math.log(probability[edge]) for edge in choices.trie.edges]
    found = choices.distribution(edges, GREEDY, 1)
    assert found.logprobs == pytest.approx((math.log(0.15), math.log(0.5 * 0.6), math.log(0.05)))
    assert found.legal_mass == pytest.approx(0.5)
    assert (found.argmax, found.greedy) == (1, 1)


def test_a_certain_continuation_leaves_the_shorter_choice_nothing() -> None:
    choices = ChoiceSet.build([(1,), (1, 2)])
    found = choices.distribution([0.0, 1e-9], GREEDY, 1)  # rounding: a little above one
    assert found.logprobs[0] == -math.inf
    assert found.probabilities == (0.0, 1.0)
    with pytest.raises(EngineError, match="probability zero"):
        choices.distribution([-math.inf, 0.0], GREEDY, 1)


@pytest.mark.parametrize("count", [1, 2, 69, 218])
def test_bits_are_the_same_under_permutation(count: int) -> None:
    rng = random.Random(count)
    choices = random_choices(rng, count)
    params = SamplingParams(temperature=0.7, seed=9)
    first = ChoiceSet.build(choices)
    a = first.distribution(edges_of(first), params, 3)
    for _ in range(5):
        order = rng.sample(range(count), count)
        second = ChoiceSet.build([choices[i] for i in order])
        b = second.distribution(edges_of(second), params, 3)
        assert [b.logprobs[k].hex() for k in range(count)] == [a.logprobs[i].hex() for i in order]
        assert b.probabilities == tuple(a.probabilities[i] for i in order)
        assert b.legal_mass == a.legal_mass
        assert [order[b.argmax], order[b.greedy], order[b.choice]] == [
            a.argmax,
            a.greedy,
            a.choice,
        ]


def test_ties_go_to_the_smaller_token_ids() -> None:
    choices = ChoiceSet.build([(3,), (2,), (4,)])
    found = choices.distribution([-1.0, -1.0, -1.0], GREEDY, 1)
    assert (found.argmax, found.greedy, found.choice) == (1, 1, 1)


def test_temperature_shapes_the_draw_and_not_the_probabilities() -> None:
    choices = ChoiceSet.build([(1,), (2,), (3,)])
    edges = [math.log(p) for p in (0.2, 0.1, 0.1)]
    for temperature, expected in [(1.0, (0.5, 0.25, 0.25)), (0.5, (4 / 6, 1 / 6, 1 / 6))]:
        params = [SamplingParams(temperature=temperature, seed=s) for s in range(8000)]
        found = [choices.distribution(edges, p, 7) for p in params]
        assert found[0].probabilities == pytest.approx((0.5, 0.25, 0.25))
        for i in range(3):
            share = sum(f.choice == i for f in found) / len(found)
            assert share == pytest.approx(expected[i], abs=0.02)


def test_the_draw_is_that_of_seed_and_position() -> None:
    choices = ChoiceSet.build([(1,), (2,)])
    edges = [math.log(0.25), math.log(0.25)]
    for seed in range(50):
        found = choices.distribution(edges, SamplingParams(temperature=1.0, seed=seed), 11)
        assert found.choice == int(uniform(seed, 11) >= 0.5)


def test_small_helpers() -> None:
    assert log_rest([math.log(0.25), math.log(0.5)]) == pytest.approx(math.log(0.25))
    assert log_rest([0.0]) == -math.inf
    assert tempered([-1000.0, -1000.0], 1.0) == [0.5, 0.5]
    assert [pick([0.0, 0.5, 0.0, 0.5], u) for u in (0.0, 0.49, 0.5, 0.999)] == [1, 1, 3, 3]
    assert pick([0.5, 0.4999], 0.9999999) == 1
