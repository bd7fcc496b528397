"""Schedules are sets of pairings with colours; checked by counting, for many sizes."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.schedule import SectionPlan, Start, round_robin, schedule


def plan(num: int, format_: str = "round_robin", **more: object) -> SectionPlan:
    names = tuple(f"p{number}" for number in range(num))
    return SectionPlan("chess", "standard", format_, names, **more)  # type: ignore[arg-type]


@given(st.integers(2, 25))
def test_round_robin_meets_each_once_and_each_player_once_a_round(num: int) -> None:
    names = [str(number) for number in range(num)]
    rounds = round_robin(names)
    met = Counter(frozenset(pair) for pairs in rounds for pair in pairs)
    assert met == Counter(frozenset(pair) for pair in combinations(names, 2))
    for pairs in rounds:
        seated = [name for pair in pairs for name in pair]
        assert len(seated) == len(set(seated))
    firsts = Counter(first for pairs in rounds for first, _ in pairs)
    assert all(abs(2 * firsts[name] - (num - 1)) <= 1 for name in names)


@given(st.integers(2, 8), st.integers(1, 4), st.sampled_from(["round_robin", "gauntlet"]))
def test_pairs_swap_colours_from_the_same_start(num: int, pairs: int, format_: str) -> None:
    starts = (Start("fen one"), Start("fen two"), Start("fen three"))
    slots = schedule([plan(num, format_, pairs=pairs, starts=starts)])
    assert [slot.id for slot in slots] == list(range(1, len(slots) + 1))
    by_pair: dict[int, list[object]] = {}
    for slot in slots:
        by_pair.setdefault(slot.pair, []).append(slot)
    for number in by_pair:
        one, other = (slot for slot in slots if slot.pair == number)
        assert (one.first, one.second) == (other.second, other.first)
        assert one.opening == other.opening
    expected = num * (num - 1) // 2 if format_ == "round_robin" else num - 1
    assert len(by_pair) == expected * pairs


def test_every_pairing_meets_the_same_openings() -> None:
    starts = (Start("one"), Start("two"))
    slots = schedule([plan(4, pairs=2, starts=starts)])
    seen: dict[frozenset[str], set[str]] = {}
    for slot in slots:
        seen.setdefault(frozenset((slot.first, slot.second)), set()).add(slot.opening)
    assert set(map(frozenset, seen.values())) == {frozenset({"one", "two"})}


def test_double_round_robin_is_two_cycles() -> None:
    assert len(schedule([plan(4, "double_round_robin")])) == 2 * len(schedule([plan(4)]))


def test_gauntlet_is_no_round_robin() -> None:
    slots = schedule([plan(5, "gauntlet")])
    assert all("p0" in (slot.first, slot.second) for slot in slots)
    assert Counter(slot.first == "p0" for slot in slots) == {True: 4, False: 4}


def test_single_games_alternate_colours() -> None:
    slots = schedule([plan(2, "match", swap=False, pairs=4)])
    assert [slot.first for slot in slots] == ["p0", "p1", "p0", "p1"]


def test_ids_and_pairs_go_on_through_sections() -> None:
    slots = schedule([plan(3), plan(2, "match", pairs=2)])
    assert [slot.id for slot in slots] == list(range(1, 11))
    assert sorted({slot.pair for slot in slots}) == [1, 2, 3, 4, 5]
    assert [slot.section for slot in slots] == [0] * 6 + [1] * 4


@pytest.mark.parametrize("format_", ["knockout", "swiss"])
def test_formats_that_need_results_have_no_slots_before_play(format_: str) -> None:
    assert schedule([plan(4, format_)]) == ()
