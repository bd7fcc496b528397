import re
import xml.etree.ElementTree as ElementTree

import pytest

from arena.web import boards
from arena.web.boards import CHESS, JANGGI, Arrow, Scene
from arena.web.pieces import GLYPHS, SCRIPTS, octagon, symbol_id, symbols
from games.registry import GAMES

JANGGI_START = "rnba1abnr/4k4/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/4K4/RNBA1ABNR w - - 0 1"
CHESS_START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def test_squares_lie_where_a_player_looks_for_them() -> None:
    assert CHESS.centre("a1") == (46, 46 + 7 * 60)
    assert CHESS.centre("h8") == (46 + 7 * 60, 46)
    assert CHESS.centre("a1", flip=True) == CHESS.centre("h8")
    assert JANGGI.centre("a1") == (42, 42 + 9 * 60)
    assert JANGGI.centre("i10", flip=True) == JANGGI.centre("a1")


@pytest.mark.parametrize("game", GAMES)
def test_every_piece_of_the_start_is_drawn_once_with_a_symbol_that_exists(game: str) -> None:
    fen = GAMES[game].start().fen()
    svg = boards.render(game, Scene(fen), standalone=True)
    drawn = re.findall(r'<use href="#([cj]-[^"]+)"', svg)
    assert len(drawn) == 32
    assert set(drawn) <= set(re.findall(r'id="([^"]+)"', svg))


def test_placement_reads_ten_ranks_and_either_letters_of_janggi() -> None:
    found = dict(boards.placement(JANGGI_START.replace("n", "h").replace("B", "E")))
    assert found["a10"] == "r"
    assert found["b10"] == "n"
    assert found["c1"] == "B"
    assert found["e2"] == "K"
    assert len(found) == 32
    assert dict(boards.placement(CHESS_START))["e1"] == "K"


def test_the_palace_diagonals_are_drawn_through_the_five_points_alone() -> None:
    ground = boards.symbol_defs("janggi")
    path = re.search(r'class="lines" d="([^"]+)"', ground)
    assert path is not None
    # from d10 and d3 down right, then from f10 and f3 down left
    assert re.findall(r"M(\d+),(\d+)l120,120m0,-120l-120,120", path[1]) == [
        ("222", "42"),
        ("222", "462"),
    ]


def test_janggi_pieces_have_three_sizes_and_han_a_second_rim() -> None:
    radii = {}
    for letter in "KARCNBP":
        body = _symbol(letter)
        points = re.search(r'points="([\d.]+),', body)
        assert points is not None
        radii[letter] = float(points[1])
    assert len(set(radii.values())) == 3
    assert radii["K"] > radii["R"] == radii["C"] == radii["N"] == radii["B"] > radii["A"]
    assert "rim" not in _symbol("K")
    assert "rim" in _symbol("k")
    assert len(octagon(10).split()) == 8


def _symbol(letter: str) -> str:
    name = symbol_id("janggi", letter, "hanja")
    match = re.search(rf'<g id="{name}".*?</g>', symbols("janggi", "hanja"))
    assert match is not None
    return match[0]


def test_the_two_sides_differ_by_letter_where_the_game_has_two() -> None:
    for script in ("hanja", "hangul"):
        glyphs = GLYPHS[script]
        assert glyphs["K"] != glyphs["k"]
        assert glyphs["P"] != glyphs["p"]
    assert all(len(set(GLYPHS[script])) == 14 for script in SCRIPTS)


def test_nothing_that_a_strict_policy_forbids_is_in_a_drawing() -> None:
    scene = Scene(CHESS_START, "e2e4", "e8", (Arrow("e7e5", "belief", 0.5),))
    for text in (
        boards.symbol_defs("chess", "janggi"),
        boards.render("chess", scene, standalone=True),
    ):
        assert "style=" not in text
        assert "<style" not in text
        assert "<script" not in text
        ElementTree.fromstring(text)  # well-formed


def test_a_pass_is_shown_as_a_word_and_a_ring() -> None:
    svg = boards.render(
        "janggi", Scene(JANGGI_START, "e2e2", None, (Arrow("e9e9", "belief", 0.4),))
    )
    assert ">pass</text>" in svg
    assert svg.count('class="last"') == 1
    assert '<circle cx="282" cy="102" r="26"' in svg


def test_arrows_grow_with_probability_and_refused_ones_do_not() -> None:
    thin = boards.arrow_shape(CHESS, Arrow("e2e4", "belief", 0.1))
    thick = boards.arrow_shape(CHESS, Arrow("e2e4", "belief", 0.9))
    assert _width(thin) < _width(thick)
    refused = [boards.arrow_shape(CHESS, Arrow("e2e5", "refused", w)) for w in (0.0, 1.0)]
    assert refused[0] == refused[1]
    assert "e2e5: refused" in refused[0]


def _width(shape: str) -> float:
    match = re.search(r'stroke-width="([\d.]+)"', shape)
    assert match is not None
    return float(match[1])


@pytest.mark.parametrize("uci", ["", "--", "e2", "<b>", "i1i2", "a9a1", "P@e4", "e2e4<script>"])
def test_what_names_no_squares_of_the_board_draws_nothing_or_only_squares(uci: str) -> None:
    shape = boards.arrow_shape(CHESS, Arrow(uci, "refused"))
    assert shape == "" or uci.startswith("e2e4")
    assert "<script" not in shape


def test_balance_counts_what_was_taken_and_what_stands() -> None:
    now = "rnb1kbnr/pppppppp/8/8/8/8/PPPPPPP1/RNBQKBN1 w - - 0 9"
    found = boards.balance("chess", CHESS_START, now)
    assert found.taken == ("q", "RP")
    assert list(found.points) == [39 - 6, 39 - 9]
    start = boards.balance("janggi", JANGGI_START, JANGGI_START)
    assert start.taken == ("", "")
    assert list(start.points) == [72, 73.5]


def test_the_description_tells_the_whole_position() -> None:
    text = boards.describe("janggi", Scene(JANGGI_START, "a4a5", "e9"))
    assert "general e2" in text
    assert text.count("soldier") == 10
    assert text.endswith("Last move a4a5. Check at e9.")
