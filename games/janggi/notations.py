"""Move texts of janggi by notation: `uci`, `korean`, `hanja`, `san`.

`uci`: `a10a9`, a pass is the general's point twice (`e2e2`); `pass` and XBoard's `@@@@` are read
as it. `korean` and `hanja` are record notation (`korean.py`); `san` is what pychess writes in PGN
(`san.py`). Reading is strict: one move, nothing around it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from games.base import IllegalMove, InvalidMove, Move

from . import korean, san
from .tables import CODES, GENERAL, MOVES, POINTS

if TYPE_CHECKING:
    from .state import JanggiState

NOTATIONS = ("uci", "korean", "hanja", "san")
_UCI = re.compile(r"[a-i](?:10|[1-9])[a-i](?:10|[1-9])")
_PASS = ("pass", "@@@@")


def _unknown(notation: str) -> ValueError:
    return ValueError(f"unknown janggi notation {notation!r}: there are {', '.join(NOTATIONS)}")


def pass_code(board: bytes, side: int) -> int:
    """The code of the side's pass."""
    return board.index(GENERAL | side << 3) * (POINTS + 1)


def _read_uci(state: JanggiState, text: str) -> int:
    if text in _PASS:
        return pass_code(state.board, state.turn)
    if not _UCI.fullmatch(text):
        raise InvalidMove(
            f"{text[:40]!r} is no move: write origin and target such as a4b4, or pass",
            text=text,
            position=state.fen(),
        )
    return CODES[text]


def parse_move(state: JanggiState, text: str, notation: str) -> Move:
    """The legal move of a text. Raises InvalidMove, IllegalMove, AmbiguousMove or ValueError."""
    if notation == "uci":
        move = MOVES[_read_uci(state, text)]
    elif notation in ("korean", "hanja"):
        move = korean.parse(state, text)
    elif notation == "san":
        return san.parse(state, text)
    else:
        raise _unknown(notation)
    if move not in state.legal_moves():
        raise IllegalMove(f"{text} is not legal here", text=text, position=state.fen())
    return move


def format_move(state: JanggiState, move: Move, notation: str) -> str:
    """The text of a legal move. Raises IllegalMove, or ValueError for an unknown notation."""
    if notation not in NOTATIONS:
        raise _unknown(notation)
    after = state.apply(move)
    if notation == "uci":
        return move.uci
    if notation == "san":
        return san.write(state, move, after)
    return korean.write(state, move, after, hanja=notation == "hanja")
