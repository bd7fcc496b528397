"""Perft of janggi: verified counts of the rules note here, the whole table with outside data."""

import pytest

from games.janggi import JANGGI
from games.perft import divide, perft
from tests.games.outside import outside_json

MID1 = "1n1kaabn1/cr2N4/5C1c1/p1pNp3p/9/9/P1PbP1P1P/3r1p3/4A4/R1BA1KB1R b - - 0 1"
MID2 = "1Pbcka3/3nNn1c1/N2CaC3/1pB6/9/9/5P3/9/4K4/9 w - - 0 23"
DEPTH_3 = {"nbnb": 33_168, "bnbn": 33_168, "nbbn": 33_000, "bnnb": 33_336}
"""By Cho's set-up, whatever Han's."""


@pytest.mark.parametrize("setup", JANGGI.setups)
def test_every_start_to_depth_3(setup: str) -> None:
    state = JANGGI.start(rules="fsf-janggi", setup=setup)
    assert [perft(state, depth) for depth in (1, 2, 3)] == [32, 1_024, DEPTH_3[setup[:4]]]


@pytest.mark.parametrize(("fen", "counts"), [(MID1, [2, 61, 2_644]), (MID2, [25, 378, 8_835])])
@pytest.mark.parametrize("rules", [name for name in JANGGI.rule_sets if name.startswith("fsf")])
def test_two_midgames(fen: str, counts: list[int], rules: str) -> None:
    state = JANGGI.start(rules=rules, fen=fen)
    assert [perft(state, depth) for depth in (1, 2, 3)] == counts


def test_without_bikjang() -> None:
    state = JANGGI.start(rules="fsf-janggimodern")
    assert [perft(state, depth) for depth in (1, 2, 3)] == [32, 1_024, 33_316]


def test_divide_names_the_first_moves() -> None:
    parts = divide(JANGGI.start(rules="fsf-janggi"), 2)
    assert len(parts) == 32
    assert set(parts.values()) == {32}
    assert parts["e2e2"] == 32


def _table(depths: tuple[str, ...]) -> None:
    rows = outside_json("perft.json")["rows"]
    assert len(rows) == 72
    for row in rows:
        state = JANGGI.start(rules=f"fsf-{row['variant']}", fen=row["fen"])
        counted = {depth: perft(state, int(depth)) for depth in depths}
        assert counted == {depth: row["nodes"][depth] for depth in depths}, row["id"]


def test_the_table_to_depth_3() -> None:
    _table(("1", "2", "3"))


@pytest.mark.drill
def test_the_table_at_depth_4() -> None:
    _table(("4",))
