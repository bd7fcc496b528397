"""The cursor of a masked walk."""

import math
import random

import pytest

from engine.choices import ChoiceSet
from engine.types import SamplingParams, TokenIds
from engine.walk import ChoiceWalk, decide_fork

from .test_choices import edges_of, random_choices


def test_single_ways_are_forced() -> None:
    walk = ChoiceWalk([(1, 2, 3, 9), (1, 2, 4)])
    assert walk.take_forced() == [1, 2]
    assert list(walk.allowed) == [3, 4]
    walk.advance(3)
    assert walk.take_forced() == [9]
    assert list(walk.allowed) == []
    assert walk.choice == 0


def test_a_fork_is_never_passed_unasked() -> None:
    walk = ChoiceWalk([(1, 2), (1, 2, 3)])
    assert walk.take_forced() == [1, 2]
    assert list(walk.allowed) == [3]
    walk.end()
    assert list(walk.allowed) == []
    assert walk.choice == 0


def test_a_token_outside_is_refused() -> None:
    with pytest.raises(KeyError):
        ChoiceWalk([(1, 2)]).advance(2)


def test_a_fork_weighs_its_end_against_its_children() -> None:
    assert decide_fork([math.log(0.4)], 0.0, 0.0) is None
    assert decide_fork([math.log(0.6)], 0.0, 0.0) == 0
    assert decide_fork([math.log(0.2), math.log(0.5)], 0.0, 0.0) == 1
    assert decide_fork([math.log(0.5)], 0.0, 0.0) is None  # a tie: the shorter choice
    draws = [decide_fork([math.log(0.2)], 1.0, u / 100) for u in range(100)]
    assert draws.count(None) == 80
    draws = [decide_fork([math.log(0.2)], 0.5, u / 1000) for u in range(1000)]
    assert draws.count(0) == pytest.approx(1000 / 17, abs=1)


def test_greedy_walks_end_where_scoring_says_they_do() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        choices: list[TokenIds] = random_choices(rng, rng.randint(1, 40))
        choice_set = ChoiceSet.build(choices)
        edges = edges_of(choice_set)
        logprob = dict(zip(choice_set.trie.edges, edges, strict=True))
        row_of = {
            key: row
            for row, key in enumerate(
                zip(choice_set.trie.parents, choice_set.trie.tokens, strict=True)
            )
        }
        walk, row = ChoiceWalk(choices), -1
        while walk.allowed:
            children = [logprob[row, token] for token in walk.allowed]
            taken = max(range(len(children)), key=lambda i: children[i])
            if walk.is_fork:
                decided = walk.decide(children, SamplingParams(), 0)
                if decided is None:
                    walk.end()
                    break
                taken = decided
            token = walk.allowed[taken]
            walk.advance(token)
            row = row_of.get((row, token), -2)
        assert walk.choice == choice_set.distribution(edges, SamplingParams(), 0).greedy
