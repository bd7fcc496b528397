"""Move texts of janggi: UCI, Korean record notation in both scripts, SAN, boards."""

import pytest

from games.base import AmbiguousMove, IllegalMove, InvalidMove, Move
from games.janggi import JANGGI
from tests.games.positions import janggi

WRITTEN = [
    # fen ("" the start), earlier moves, move, korean, hanja, san
    ("", "", "i4h4", "79졸78", "79卒78", "Pih4"),
    ("", "", "e2e2", "한수쉼", "한수쉼", "Ke2"),
    ("", "", "b1c3", "02마83", "02馬83", "Hc3"),
    ("", "a4b4", "i7h7", "49병48", "49兵48", "Pih7"),
    ("", "a4b4", "e9d8", "25장34", "25將34", "Kd8"),
    ("3k5/9/9/R7R/9/9/9/9/4K4/9 w", "", "i7d7", "49차44장군", "49車44장군", "Rid7+"),
    ("3k5/9/9/p8/9/R8/R8/9/4K4/9 w", "", "a5a7", "61차41병", "61車41兵", "Rxa7"),
    ("3k5/R8/9/7R1/9/9/9/9/9/5K3 w", "", "h7h10", "48차18장군", "48車18장군", "Rh10#"),
    ("3k5/9/9/R8/9/R8/9/9/4K4/9 w", "", "a5a6", "61차51", "61車51", "R5a6"),
]


@pytest.mark.parametrize(("fen", "before", "move", "korean", "hanja", "san"), WRITTEN)
def test_each_notation(fen: str, before: str, move: str, korean: str, hanja: str, san: str) -> None:
    state = janggi(fen, before)
    for notation, text in (("korean", korean), ("hanja", hanja), ("san", san), ("uci", move)):
        assert state.format_move(Move(move), notation) == text
        assert state.parse_move(text, notation) == Move(move)


def test_a_pass_by_any_name() -> None:
    state = janggi("")
    for text in ("e2e2", "pass", "@@@@"):
        assert state.parse_move(text) == Move("e2e2")
    moved = janggi("", "e2d2 a7b7")
    assert moved.parse_move("pass") == Move("d2d2")
    with pytest.raises(IllegalMove):
        moved.parse_move("e2e2")
    with pytest.raises(IllegalMove):
        janggi("3k5/9/3R5/9/9/9/9/9/9/5K3 b").parse_move("pass")


@pytest.mark.parametrize(
    "text",
    ["i3卒h3", "79楚卒78", "79초졸78", "79卒78", "79졸78장군", "79兵78", "79졸78멍군"],
)
def test_dialects_of_one_move(text: str) -> None:
    assert janggi("").parse_move(text, "korean") == Move("i4h4")


def test_the_captured_piece_may_be_named_or_not() -> None:
    state = janggi("3k5/9/9/p8/9/R8/R8/9/4K4/9 w")
    for text in ("61차41병", "61차41타병", "61차41", "61車41卒"):
        assert state.parse_move(text, "korean") == Move("a5a7")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("79차78", "no 차 of the side to move stands on 79"),
        ("49병48", "no 병 of the side to move stands on 49"),
        ("79한졸78", "한 is not to move"),
        ("79졸78병", "no 병 stands on 78"),
        ("79졸49", "not legal"),
        ("95장95장", "no 장 stands on 95"),
    ],
)
def test_korean_moves_that_do_not_fit_the_board(text: str, why: str) -> None:
    with pytest.raises(IllegalMove, match=why):
        janggi("").parse_move(text, "korean")


@pytest.mark.parametrize(
    "text", ["", "79", "79졸", "79졸70", "졸79졸78", "79졸78!", "７９졸78", "하나"]
)
def test_texts_that_are_no_korean_move(text: str) -> None:
    with pytest.raises(InvalidMove) as caught:
        janggi("").parse_move(text, "korean")
    assert caught.value.position == JANGGI.start().fen()


@pytest.mark.parametrize(
    "text", ["", "a0a1", "a11a1", "j1a1", "A4b4", "a4-b4", " a4b4", "a4b4\n", "Pass"]
)
def test_texts_that_are_no_uci_move(text: str) -> None:
    with pytest.raises(InvalidMove):
        janggi("").parse_move(text)


def test_ambiguous_san_names_the_candidates() -> None:
    with pytest.raises(AmbiguousMove) as caught:
        janggi("3k5/9/9/R7R/9/9/9/9/4K4/9 w").parse_move("Re7", "san")
    assert caught.value.candidates == ("a7e7", "i7e7")
    for text in ("Nc3", "Hb1c3", "Hbc3", "H1c3"):
        assert janggi("").parse_move(text, "san") == Move("b1c3")
    for text in ("Hxc3", "Hc4", "Kxe2"):
        with pytest.raises(IllegalMove):
            janggi("").parse_move(text, "san")
    with pytest.raises(InvalidMove):
        janggi("").parse_move("c3", "san")


def test_boards() -> None:
    state = janggi("")
    letters = state.board_text("letters").split("\n")
    assert letters[0] == "10 r n b a . a b n r"
    assert letters[9] == " 1 R N B A . A B N R"
    assert letters[10] == "   a b c d e f g h i"
    hanja = state.board_text("hanja").split("\n")
    assert hanja[0] == "10 (車)(馬)(象)(士) ＋ (士)(象)(馬)(車)"
    assert hanja[8] == " 2  ＋  ＋  ＋  ＋  楚  ＋  ＋  ＋  ＋"
    hangul = state.board_text("hangul").split("\n")
    assert "(병)" in hangul[3]
    assert "졸" in hangul[6]
