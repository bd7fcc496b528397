"""Hostile text against every parser: it is read, or refused by a named error; nothing else.

What was read must be sound: it can be written, and read again to the same.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from games.base import (
    AmbiguousMove,
    Game,
    GameState,
    IllegalMove,
    InvalidMove,
    InvalidPosition,
)
from games.chess import CHESS
from games.convert import read_games
from games.janggi import JANGGI, RECORDS, parse_setup, read_gib, write_gib
from games.pgn import read_pgn, write_pgn
from games.transcript import Reading
from tests.games.positions import janggi

T = TypeVar("T")
FAST, DRILL = 2_000, 100_000

CHESS_MIDGAME = "r1bqk2r/pppp1ppp/2n2n2/2b1p3/2B1P3/2N2N2/PPPP1PPP/R1BQK2R w KQkq - 6 5"
JANGGI_MIDGAME = "1Pbcka3/3nNn1c1/N2CaC3/1pB6/9/9/5P3/9/4K4/9 w - - 0 23"
GIB = (
    '[대회명 "가"]\n[초차림 "마상상마"]\n[한차림 "상마마상"]\n[대국결과 "초 완승"]\n\n'
    "1. 79졸78 2. 49병48 {말} 3. 02楚馬83 4. 한수쉼 5. 78졸77 6. 48병47장군\n\n"
    '[판 "차마상사1사마상차/4장/1포5포/졸1졸1졸1졸1졸///'
    '兵1兵1兵1兵/1包5包/4將/車馬象士1士象馬車 한"]\n'
    "\n1. 18마37 2. 71졸72\n"
)
PGN = (
    '[Event "a"]\n[Result "1-0"]\n[FEN "' + CHESS_MIDGAME + '"]\n[SetUp "1"]\n\n'
    "5. d3 {[%clk 0:01:02.5] x} d6 $3 (5... O-O 6. O-O) 6. Bg5 h6 ; r\n7. Bxf6 1-0\n\n"
    '[Variant "Janggi"]\n[FEN "' + JANGGI.start().fen() + '"]\n\n1. Hc3 Ke9 2. Pab4 *\n'
)
UCI = "startpos moves e2e4 e7e5\nfen " + CHESS_MIDGAME + " moves d2d3 d7d6\n"

LETTERS = st.text('KQRBNPAECHkqrbnpaech0123456789/ -wb.x+#=:[]{}()"\\\n\t;$%*@O', max_size=6)
KOREAN = st.text('장사차포마상졸병車包馬象士卒兵將楚漢타군멍한수쉼0123456789a .[]{}"', max_size=6)
ANYTHING = st.text(max_size=6)


@st.composite
def _mangled(draw: st.DrawFn, *samples: str) -> str:
    """A sample with a few pieces cut out, put in or swapped for others; or plain text."""
    text = draw(st.sampled_from((*samples, "")))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        cut = draw(st.sampled_from((0, 0, 1, 1, 2, 7, 40)))
        new = draw(st.one_of(LETTERS, KOREAN, ANYTHING, st.sampled_from(samples)))
        text = text[:start] + new + text[start + cut :]
    return text


def _tried(call: Callable[[], T]) -> tuple[T | None, ValueError | None]:
    """(what the call gave, None), or (None, the error that refused it)."""
    try:
        return call(), None
    except ValueError as error:
        return None, error


def _fen(game: Game, text: str) -> None:
    state, error = _tried(lambda: game.start(fen=text))
    if state is None:
        assert isinstance(error, InvalidPosition)
        assert error.text == text
        assert len(str(error)) < 400
        return
    assert game.start(fen=state.fen()).fen() == state.fen()
    state.legal_moves()
    state.outcome()
    state.facts()


def _move(state: GameState, text: str) -> None:
    for notation in state.game.notations:
        move, error = _tried(partial(state.parse_move, text, notation))
        if move is None:
            assert isinstance(error, InvalidMove | IllegalMove | AmbiguousMove)
            assert error.text == text
            assert error.position == state.fen()
            continue
        assert move in state.legal_moves()
        assert state.parse_move(state.format_move(move, notation), notation) == move


def _reading(reading: Reading, rewrite: Callable[[Reading], Reading]) -> None:
    assert all(fault.line >= 1 and fault.reason for fault in reading.faults)
    again = rewrite(reading)
    assert again.faults == ()
    assert [(g.start_fen, g.moves, g.result) for g in again.games] == [
        (g.start_fen, g.moves, g.result) for g in reading.games
    ]


def _gib(text: str) -> None:
    _reading(read_gib(text), lambda reading: read_gib(write_gib(reading.games)))
    for data in (text.encode("cp949", errors="replace"), text.encode("utf-16")):
        assert read_gib(data) is not None


def _pgn(text: str) -> None:
    _reading(read_pgn(text), lambda reading: read_pgn(write_pgn(reading.games)))
    assert read_pgn(text.encode("latin-1", errors="replace")) is not None


def _lines(text: str) -> None:
    for game in ("chess", "janggi"):
        read_games(text, "uci", game)
        read_games(text.encode("utf-8", errors="replace"), "fen", game)


def _setup(text: str) -> None:
    for _, error in (
        _tried(lambda: parse_setup(text)),
        _tried(lambda: JANGGI.start(setup=text)),
    ):
        assert error is None or "nbbn" in str(error)


CHESS_MOVES = ("e1g1", "O-O", "Nxe5", "Bxf7+", "b5", "d2d4", "Rg1", "0000", "--", "a7a8q")
JANGGI_MOVES = (
    "e2e2",
    "pass",
    "a8b10",
    "e9d7",
    "18마37",
    "한수쉼",
    "Hxf8",
    "Ke2",
    "b10c10",
    "29마17",
)
CHECKS: dict[str, tuple[tuple[str, ...], Callable[[str], None]]] = {
    "chess FEN": ((CHESS_MIDGAME,), lambda text: _fen(CHESS, text)),
    "janggi FEN": ((JANGGI_MIDGAME,), lambda text: _fen(JANGGI, text)),
    "chess move": (CHESS_MOVES, lambda text: _move(CHESS.start(fen=CHESS_MIDGAME), text)),
    "janggi move": (JANGGI_MOVES, lambda text: _move(janggi(JANGGI_MIDGAME), text)),
    "gib": ((GIB,), _gib),
    "pgn": ((PGN,), _pgn),
    "lines": ((UCI, JANGGI_MIDGAME), _lines),
    "set-up": (("nbbn/bnnb", "마상상마"), _setup),
}


def _fuzz(kind: str, cases: int, derandomize: bool) -> None:
    samples, check = CHECKS[kind]

    @settings(
        max_examples=cases,
        derandomize=derandomize,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_mangled(*samples))
    def run(text: str) -> None:
        check(text)

    run()


@pytest.mark.parametrize("kind", CHECKS)
def test_parsers_survive(kind: str) -> None:
    _fuzz(kind, FAST // len(CHECKS), derandomize=True)


@pytest.mark.drill
@pytest.mark.parametrize("kind", CHECKS)
def test_parsers_survive_long(kind: str) -> None:
    _fuzz(kind, DRILL // len(CHECKS), derandomize=False)


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\x00" * 500, b"[" * 5000, b"{" * 5000])
def test_bytes_of_no_format(data: bytes) -> None:
    for read in (read_gib, read_pgn):
        assert read(data).games == () or read(data).games[0].moves == ()


def test_long_files_are_read_in_linear_time() -> None:
    """Counted, not timed: a file of many tags and comments gives as many games."""
    assert len(read_pgn("1. e4 * " * 300).games) == 300
    game = '[초차림 "마상상마"]\n[한차림 "마상상마"]\n{x}\n1. 79졸78\n'
    assert len(read_gib(game * 300).games) == 300
    assert RECORDS.start().fen() == JANGGI.start().fen()
