"""Janggi FEN: what is read, what is written, and the reason of every refusal."""

import pytest

from games.base import InvalidPosition
from games.janggi import JANGGI, PAIRS
from tests.games.positions import janggi

START = "rnba1abnr/4k4/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/4K4/RNBA1ABNR w - - 0 1"


def test_the_default_start() -> None:
    assert JANGGI.start().fen() == START
    assert len({JANGGI.start(setup=pair).fen() for pair in PAIRS}) == 16


def test_synonyms_and_short_forms() -> None:
    other = "rheaiaehr/4k4/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/4K4/RHEA1AEHR w".replace("i", "1")
    assert janggi(other).fen() == START
    assert janggi("3k5/9/9/9/9/9/9/9/9/5K3 b - -").fen() == "3k5/9/9/9/9/9/9/9/9/5K3 b - - 0 1"
    assert janggi("3k5/9/9/9/9/9/9/9/9/5K3 b - - 7 31").fen().endswith(" b - - 7 31")


REFUSED = [
    ("", "0 fields"),
    ("4k4/9/9/9/9/9/9/9/4K4 w", "9 ranks"),
    ("4k4/9/9/9/9/9/9/9/9/9/4K4 w", "11 ranks"),
    ("4k4/9/9/9/9/9/9/9/4K4/8 w", "rank 1 has 8 points"),
    ("4k4/9/9/9/9/9/9/9/4K4/91 w", "rank 1 has 10 points"),
    ("4k4/9/9/9/9/9/9/9/4K4/x8 w", "'x' in rank 1"),
    ("4k4/9/9/9/9/9/9/9/4K4/0R8 w", "'0' in rank 1"),
    ("4k4/9/9/9/9/9/9/9/4K4/9 x", "side to move is 'x'"),
    ("4k4/9/9/9/9/9/9/9/4K4/9 w KQ -", "fields 3 and 4"),
    ("4k4/9/9/9/9/9/9/9/4K4/9 w - - -1 1", "half-move clock"),
    ("4k4/9/9/9/9/9/9/9/4K4/9 w - - 0 0", "move number"),
    ("4k4/9/9/9/9/9/9/9/4K4/9 w - - 0", "5 fields"),
    ("4k4/9/9/9/9/9/9/9/4K4/9 w - - ١ 1", "ASCII"),
    ("9/9/9/9/9/9/9/9/4K4/9 w", "Han has no general"),
    ("4k4/9/9/9/9/9/9/9/9/9 w", "Cho has no general"),
    ("4k4/4k4/9/9/9/9/9/9/4K4/9 w", "2 generals"),
    ("4k4/9/9/9/9/9/9/4K4/9/6A2 w", "guard of Cho is outside"),
    ("4k4/9/9/9/9/9/4K4/9/9/9 w", "general of Cho is outside"),
    ("3k5/9/9/a8/9/9/9/9/4K4/9 w", "guard of Han is outside"),
    ("3k5/9/9/9/9/9/9/9/4K4/RRR6 w", "Cho has 3 chariots"),
    ("3k5/pppppp3/9/9/9/9/9/9/4K4/9 w", "Han has 6 soldiers"),
    ("3k5/9/3R5/9/9/9/9/9/9/5K3 w", "Han, not to move, is in check"),
    ("4k4/9/9/9/4p4/9/9/9/3rK4/9 b", "Cho, not to move, is in check"),
    ("/" * 500, "more than 200"),
]


@pytest.mark.parametrize(("fen", "reason"), REFUSED)
def test_refusals_name_the_reason(fen: str, reason: str) -> None:
    with pytest.raises(InvalidPosition, match=reason) as caught:
        JANGGI.start(fen=fen)
    assert caught.value.text == fen
    assert "\n" not in str(caught.value)


def test_only_the_engines_rules_take_more_than_a_set() -> None:
    fen = "4k4/c7R/9/3R1R3/9/9/9/9/9/3K5 b"
    assert JANGGI.start(rules="fsf-janggi", fen=fen).fen().startswith("4k4/c7R")
    with pytest.raises(InvalidPosition, match="3 chariots"):
        JANGGI.start(rules="fairy", fen=fen)


def test_a_fen_and_a_set_up_together_are_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        JANGGI.start(fen=START, setup="nbbn/nbbn")
