"""Each tracker against hand-made series of scores; each cap named for what it is."""

import pytest

from arena.adjudicate import Adjudicator, AtCap, DrawRule, ResignRule, at_cap
from arena.records import Result, Termination

SIDES = ("white", "black")


def material() -> tuple[float, float]:
    return (10.0, 8.0)


def test_draw_needs_the_move_number_and_an_unbroken_series() -> None:
    judge = Adjudicator(draw=DrawRule(movenumber=3, movecount=2, score=10))
    for ply in range(1, 6):
        judge.update(ply % 2, 5)
        assert judge.verdict(ply, material, SIDES) is None, ply
    verdict = judge.verdict(6, material, SIDES)
    assert verdict is not None
    assert (verdict.result, verdict.termination) == ("1/2-1/2", Termination.ADJUDICATED_DRAW)


@pytest.mark.parametrize("breaks", [11, -11, None])
def test_a_large_or_missing_score_breaks_the_draw_series(breaks: int | None) -> None:
    judge = Adjudicator(draw=DrawRule(movenumber=1, movecount=2, score=10))
    for score in (0, 0, 0, breaks):
        judge.update(0, score)
    for score in (0, 0, 0):
        judge.update(0, score)
        assert judge.verdict(100, material, SIDES) is None
    judge.update(0, 10)
    assert judge.verdict(100, material, SIDES) is not None


def test_resign_needs_both_sides_where_it_is_twosided() -> None:
    one = Adjudicator(resign=ResignRule(movecount=2, score=600, twosided=False))
    both = Adjudicator(resign=ResignRule(movecount=2, score=600, twosided=True))
    for judge in (one, both):
        for _ in range(2):
            judge.update(1, -700)
            judge.update(0, 500)
    lost = one.verdict(8, material, SIDES)
    assert lost is not None
    assert lost.result == "1-0"
    assert lost.detail == "White wins by adjudication"
    assert both.verdict(8, material, SIDES) is None
    for _ in range(2):
        both.update(0, 600)
        both.update(1, -600)
    agreed = both.verdict(12, material, SIDES)
    assert agreed is not None
    assert agreed.termination == Termination.ADJUDICATED_RESIGN


def test_a_better_score_starts_the_resign_series_anew() -> None:
    judge = Adjudicator(resign=ResignRule(movecount=2, score=600, twosided=False))
    for score in (-900, -100, -900):
        judge.update(0, score)
        assert judge.verdict(10, material, SIDES) is None


@pytest.mark.parametrize(
    ("how", "counts", "result", "termination"),
    [
        ("cut_short", (10, 8), "*", Termination.CUT_SHORT),
        ("material", (10, 8), "1-0", Termination.ADJUDICATED_MATERIAL),
        ("material", (8, 8), "1/2-1/2", Termination.ADJUDICATED_MATERIAL),
        ("points", (71.0, 72.5), "0-1", Termination.ADJUDICATED_POINTS),
        ("draw", (10, 8), "1/2-1/2", Termination.ADJUDICATED_DRAW),
    ],
)
def test_cap(
    how: AtCap, counts: tuple[float, float], result: Result, termination: Termination
) -> None:
    verdict = at_cap(how, counts, SIDES, 40)
    assert (verdict.result, verdict.termination) == (result, termination)
    assert "40 plies" in verdict.detail


def test_cap_holds_from_its_ply_on_and_not_before() -> None:
    judge = Adjudicator(max_plies=40, how="material")
    assert judge.verdict(39, material, SIDES) is None
    assert judge.verdict(40, material, SIDES) is not None
