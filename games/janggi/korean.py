"""Korean record notation: `79졸78`, `67차47병장군`, `한수쉼`, in Hangul or Hanja.

A point is a rank digit (1 at Han's edge to 9, then 0 at Cho's) and a file digit (1 at Cho's left),
so `95` is e2. Then the piece, the target, the captured piece and `장군` for check. Read as well:
a side sign before the piece (`79楚卒78`), `타` before the captured piece, `멍군`, older signs, and
points as a file letter and a rank digit counted from 0 at Cho's edge (`i3卒h3`). The
piece and a captured piece must be what stands there; a missing or needless `장군` is let pass,
since records are careless with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from games.base import IllegalMove, InvalidMove, Move

from .tables import (
    CANNON,
    CHARIOT,
    CODES,
    ELEPHANT,
    FILES,
    GENERAL,
    GUARD,
    HAN,
    HORSE,
    MOVES,
    POINTS,
    RANKS,
    SOLDIER,
)

if TYPE_CHECKING:
    from .state import JanggiState

PASS = "한수쉼"
CHECK = "장군"
_HANGUL = {GENERAL: "장", GUARD: "사", CHARIOT: "차", CANNON: "포", HORSE: "마", ELEPHANT: "상"}
_HANJA = {GENERAL: "將", GUARD: "士", CHARIOT: "車", CANNON: "包", HORSE: "馬", ELEPHANT: "象"}
SIGNS = {
    False: {k | s: sign for k, sign in _HANGUL.items() for s in (0, HAN)}
    | {SOLDIER: "졸", SOLDIER | HAN: "병"},
    True: {k | s: sign for k, sign in _HANJA.items() for s in (0, HAN)}
    | {SOLDIER: "卒", SOLDIER | HAN: "兵"},
}
"""Hanja or not -> piece -> the sign written for it."""

_READ = {
    GENERAL: "장將将왕王궁宮帥",
    GUARD: "사士仕",
    CHARIOT: "차車车俥",
    CANNON: "포包砲炮",
    HORSE: "마馬马傌",
    ELEPHANT: "상象相",
    SOLDIER: "졸卒병兵",
}
KIND_OF = {sign: kind for kind, signs in _READ.items() for sign in signs}
_PIECE = "[" + "".join(KIND_OF) + "]"
_POINT = "[0-9][1-9]|[a-i][0-9]"
_MOVE = re.compile(
    rf"({_POINT})([초楚한漢]?)({_PIECE})({_POINT})(?:타?({_PIECE}))?(?:장군|將軍|멍군)?"
)
_PASSES = ("한수쉼", "한수쉬기", "한수쉼.", "쉼")
LOOKS_LIKE_MOVE = re.compile(r"[0-9a-i][0-9].{1,2}[0-9a-i][0-9]|쉼")
"""Finds whether a word of a record is meant as a move."""


def point_text(point: int) -> str:
    """a1 (0) -> `01`, e9 -> `25`."""
    return f"{(RANKS - point // FILES) % 10}{point % FILES + 1}"


def read_point(text: str) -> int:
    """`01` -> a1 (0), `a0` -> a1: two digits, the second not 0, or a letter and a digit."""
    if text[0] in "abcdefghi":
        return int(text[1]) * FILES + "abcdefghi".index(text[0])
    rank = RANKS - (int(text[0]) or 10)
    return rank * FILES + int(text[1]) - 1


def _wrong(state: JanggiState, text: str, why: str) -> IllegalMove:
    return IllegalMove(f"{text}: {why}", text=text, position=state.fen())


def parse(state: JanggiState, text: str) -> Move:
    """The move of a text, its legality not looked at. Raises InvalidMove or IllegalMove."""
    if text in _PASSES:
        return MOVES[state.board.index(GENERAL | state.turn << 3) * (POINTS + 1)]
    match = _MOVE.fullmatch(text)
    if match is None:
        raise InvalidMove(
            f"{text[:40]!r} is no move: write it such as 79졸78, or {PASS}",
            text=text,
            position=state.fen(),
        )
    from_text, owner, sign, to_text, taken = match.groups()
    origin, target = read_point(from_text), read_point(to_text)
    piece, there = state.board[origin], state.board[target]
    if not piece or piece & 7 != KIND_OF[sign] or piece >> 3 != state.turn:
        raise _wrong(state, text, f"no {sign} of the side to move stands on {from_text}")
    if owner and (owner in "한漢") != (state.turn == 1):
        raise _wrong(state, text, f"{owner} is not to move")
    if taken and (not there or origin == target or there & 7 != KIND_OF[taken]):
        raise _wrong(state, text, f"no {taken} stands on {to_text}")
    return MOVES[origin * POINTS + target]


def write(state: JanggiState, move: Move, after: JanggiState, *, hanja: bool) -> str:
    """The text of a legal move that leads to `after`."""
    origin, target = divmod(CODES[move.uci], POINTS)
    if origin == target:
        return PASS
    signs = SIGNS[hanja]
    taken = state.board[target]
    return (
        f"{point_text(origin)}{signs[state.board[origin]]}{point_text(target)}"
        f"{signs[taken] if taken else ''}{CHECK if after.is_check() else ''}"
    )
