"""Chess: perft, the order of ends, repetition and move counts, en passant, notations."""

import pytest

from games.base import AmbiguousMove, GameState, IllegalMove, InvalidMove, InvalidPosition, Move
from games.chess import CHESS
from games.perft import perft
from tests.games.positions import ends

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
KNIGHTS = "g1f3 g8f6 f3g1 f6g8 "


def chess(fen: str = "", moves: str = "", rules: str = "standard") -> GameState:
    state: GameState = CHESS.start(rules=rules, fen=fen or None)
    for move in moves.split():
        state = state.apply(state.parse_move(move))
    return state


@pytest.mark.parametrize(
    ("fen", "counts"),
    [
        ("", (20, 400, 8902)),
        (KIWIPETE, (48, 2039)),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", (14, 191, 2812)),
        ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", (6, 264)),
    ],
)
def test_perft(fen: str, counts: tuple[int, ...]) -> None:
    state = chess(fen)
    assert tuple(perft(state, depth) for depth in range(1, len(counts) + 1)) == counts


@pytest.mark.parametrize(
    ("fen", "moves", "end"),
    [
        ("", "f2f3 e7e5 g2g4 d8h4", ("checkmate", "0-1")),
        ("7k/5Q2/8/8/8/8/8/K7 b - - 0 1", "", ("stalemate", "1/2-1/2")),
        ("8/8/8/4k3/8/8/8/K5N1 w - - 0 1", "", ("insufficient_material", "1/2-1/2")),
        ("8/8/8/4k3/8/8/8/K5NN w - - 0 1", "", None),
        ("7k/8/8/8/8/8/8/KR6 w - - 98 80", "b1b2", None),
        ("7k/8/8/8/8/8/8/KR6 w - - 99 80", "b1b2", ("fifty_moves", "1/2-1/2")),
        ("7k/8/8/8/8/8/8/KR6 w - - 149 80", "b1b2", ("seventyfive_moves", "1/2-1/2")),
        ("", KNIGHTS, None),
        ("", KNIGHTS * 2, ("threefold_repetition", "1/2-1/2")),
    ],
)
def test_ends(fen: str, moves: str, end: tuple[str, str] | None) -> None:
    assert ends(chess(fen, moves)) == end


@pytest.mark.parametrize(
    ("fen", "moves", "end"),
    [
        ("", KNIGHTS * 3, None),
        ("", KNIGHTS * 4, ("fivefold_repetition", "1/2-1/2")),
        ("7k/8/8/8/8/8/8/KR6 w - - 148 80", "b1b2", None),
        ("7k/8/8/8/8/8/8/KR6 w - - 149 80", "b1b2", ("seventyfive_moves", "1/2-1/2")),
    ],
)
def test_only_forced_ends(fen: str, moves: str, end: tuple[str, str] | None) -> None:
    assert ends(chess(fen, moves, "forced")) == end


def test_the_order_of_ends() -> None:
    # Mate with the clock full, stalemate with a bare king, the clock before repetition.
    mate = chess("7k/8/6K1/8/8/8/8/R7 w - - 149 90", "a1a8")
    assert ends(mate) == ("checkmate", "1-0")
    stale = chess("k7/8/1K6/8/5B2/8/8/8 b - - 150 90")
    assert ends(stale) == ("stalemate", "1/2-1/2")
    bare = chess("7k/8/8/8/8/8/8/K5B1 w - - 149 90", "g1f2")
    assert ends(bare) == ("insufficient_material", "1/2-1/2")
    clock = chess("7k/8/8/8/8/8/8/KR6 w - - 92 80", "b1b2 h8g8 b2b1 g8h8 " * 2)
    assert ends(clock) == ("fifty_moves", "1/2-1/2")


def test_repetition_needs_the_same_rights() -> None:
    # The first return of the rooks loses the castling rights: that position is a new one.
    fen = "r3k2r/8/8/8/8/8/7P/R3K2R w KQkq - 0 1"
    state = chess(fen, "a1b1 a8b8 b1a1 b8a8 " * 2)
    assert state.facts()["repetitions"] == 2
    assert state.facts()["castling"] == "Kk"
    assert ends(state) is None
    # En passant that is legal counts, a bare double step does not.
    able = chess("", "e2e4 a7a6 e4e5 d7d5")
    assert able.facts()["en_passant"] == "d6"
    assert able.fen().split()[3] == "d6"
    assert chess("", "e2e4").fen().split()[3] == "-"
    assert chess("", "e2e4").facts()["en_passant"] is None


def test_en_passant_square_of_a_fen_is_kept() -> None:
    fen = "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3"
    state = chess(fen)
    assert state.fen() == fen
    assert Move("e5d6") in state.legal_moves()
    assert state.format_move(Move("e5d6"), "san") == "exd6"


def test_facts() -> None:
    facts = chess("7k/8/8/8/8/8/8/KR6 w - - 40 80", "b1h1").facts()
    assert facts["check"] is True
    assert facts["halfmove_clock"] == 41
    assert facts["plies_to_move_rule"] == 59
    assert facts["castling"] == "-"
    assert facts["plies"] == 1
    assert chess().facts()["castling"] == "KQkq"
    assert chess("", "", "forced").facts()["plies_to_move_rule"] == 150
    assert chess().material() == (39.0, 39.0)


@pytest.mark.parametrize(
    "text", ["--", "Z0", "0000", "@@@@", "", "e9", "Zf3", "e2e4e5", "é4", "K" * 50]
)
def test_texts_that_are_no_move(text: str) -> None:
    for notation in ("uci", "san"):
        with pytest.raises(InvalidMove):
            chess().parse_move(text, notation)


def test_illegal_and_ambiguous_moves() -> None:
    for text, notation in (("e2e5", "uci"), ("e7e5", "uci"), ("Nd4", "san"), ("O-O", "san")):
        with pytest.raises(IllegalMove) as caught:
            chess().parse_move(text, notation)
        assert caught.value.text == text
        assert caught.value.position == chess().fen()
    rooks = chess("4k3/8/8/8/8/8/K7/R6R w - - 0 1")
    with pytest.raises(AmbiguousMove) as ambiguous:
        rooks.parse_move("Rd1", "san")
    assert ambiguous.value.candidates == ("a1d1", "h1d1")
    rank = chess("R7/6k1/8/8/8/8/8/R6K w - - 0 1")
    with pytest.raises(AmbiguousMove) as files:
        rank.parse_move("Raa4", "san")
    assert files.value.candidates == ("a1a4", "a8a4")


def test_promotions_name_their_piece() -> None:
    state = chess("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    assert state.parse_move("a7a8n") == Move("a7a8n")
    assert state.parse_move("a8=Q", "san") == Move("a7a8q")
    for text in ("a7a8", "a7a8k"):
        with pytest.raises((IllegalMove, InvalidMove)):
            state.parse_move(text)


@pytest.mark.parametrize(
    ("fen", "reason"),
    [
        ("", "0 fields"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "no white king"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 0", "counters"),
        ("4k3/8/8/8/8/8/8/4K3 w - - -1 1", "counters"),
        ("4k3/8/8/8/8/8/8/4K3 w - - x 1", "counters"),
        ("4k3/8/8/8/8/8/8/4K3 w KQ - 0 1", "castling"),
        ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "turn"),
        ("4k3/8/8/8/8/8/8/4K2Q b - - 0 1", ""),
        ("4k3/4Q3/8/8/8/8/8/4K3 w - - 0 1", "opposite check"),
        ("4k3/8/8/8/8/8/8/4K3P w - - 0 1", "position"),
        ("P3k3/8/8/8/8/8/8/4K3 w - - 0 1", "pawns on backrank"),
        ("k" * 300, "more than 120"),
        ("４k3/8/8/8/8/8/8/4K3 w - - 0 1", "ASCII"),
    ],
)
def test_refused_fens(fen: str, reason: str) -> None:
    if not reason:
        assert CHESS.start(fen=fen).fen() == fen
        return
    with pytest.raises(InvalidPosition, match=reason) as caught:
        CHESS.start(fen=fen)
    assert caught.value.text == fen


def test_boards() -> None:
    lines = chess().board_text("letters").split("\n")
    assert lines[0] == "8 r n b q k b n r"
    assert lines[4] == "4 . . . . . . . ."
    assert lines[8] == "  a b c d e f g h"
    assert chess().board_text("unicode").startswith("8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜")


def test_set_ups_are_not_chess() -> None:
    assert CHESS.setups == ()
    with pytest.raises(ValueError, match="no set-ups"):
        CHESS.start(setup="nbbn/nbbn")
    with pytest.raises(ValueError, match="nope"):
        CHESS.uci_variant("nope")
    assert CHESS.uci_variant("standard") == ("chess", True)
