"""The flat trie against the obvious definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trie import ChoiceTrie
from engine.types import TokenIds

choice_sets = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple),
    min_size=1,
    max_size=20,
    unique=True,
)


def prefixes(choices: list[TokenIds]) -> list[TokenIds]:
    return sorted({choice[:i] for choice in choices for i in range(1, len(choice))})


def test_a_small_trie_in_full() -> None:
    trie = ChoiceTrie.build([(5, 7), (5, 6, 8), (9,), (5,)])
    assert trie.tokens == (5, 6)
    assert trie.parents == (-1, 0)
    assert trie.depths == (1, 2)
    assert trie.ends == (2, 2)
    assert trie.edges == ((-1, 5), (0, 6), (1, 8), (0, 7), (-1, 9))
    assert trie.paths == ((0, 3), (0, 1, 2), (4,), (0,))
    assert trie.tails == ((), (), (), (1, 3))


@given(choice_sets)
def test_rows_are_the_inner_nodes_depth_first(choices: list[TokenIds]) -> None:
    trie = ChoiceTrie.build(choices)
    rows = prefixes(choices)
    assert trie.tokens == tuple(prefix[-1] for prefix in rows)
    assert trie.depths == tuple(len(prefix) for prefix in rows)
    for row, prefix in enumerate(rows):
        parent = trie.parents[row]
        assert (() if parent < 0 else rows[parent]) == prefix[:-1]
        below = [r for r in range(len(rows)) if rows[r][: len(prefix)] == prefix]
        assert below == list(range(row, trie.ends[row]))


@given(choice_sets)
def test_paths_spell_the_choices_and_tails_what_goes_on(choices: list[TokenIds]) -> None:
    trie = ChoiceTrie.build(choices)
    rows = prefixes(choices)
    starts = [() if row < 0 else rows[row] for row, _ in trie.edges]
    assert len(set(trie.edges)) == len(trie.edges)
    for choice, path, tail in zip(choices, trie.paths, trie.tails, strict=True):
        assert tuple(trie.edges[e][1] for e in path) == choice
        assert [starts[e] for e in path] == [choice[:i] for i in range(len(choice))]
        longer = {c[len(choice)] for c in choices if c != choice and c[: len(choice)] == choice}
        assert {trie.edges[e][1] for e in tail} == longer
        assert all(starts[e] == choice for e in tail)


@given(choice_sets)
def test_the_order_of_choices_changes_only_that_of_results(choices: list[TokenIds]) -> None:
    a = ChoiceTrie.build(choices)
    b = ChoiceTrie.build(choices[::-1])
    assert (a.tokens, a.parents, a.ends, a.edges) == (b.tokens, b.parents, b.ends, b.edges)
    assert a.paths == b.paths[::-1]
    assert a.tails == b.tails[::-1]


@pytest.mark.parametrize("choices", [[], [()], [(1,), ()], [(1, 2), (1, 2)]])
def test_bad_choices_are_refused(choices: list[TokenIds]) -> None:
    with pytest.raises(ValueError, match="choices must be"):
        ChoiceTrie.build(choices)
