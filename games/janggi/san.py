"""Janggi moves in the style of SAN, as pychess and Fairy-Stockfish write them in PGN.

`Hc3`, `Pab4`, `Rxd10#`, a pass as the general's move to its own point (`Ke2`). Letters K A R C H
E P (N and B are read too). Origin file, else rank, else both tell apart pieces of one kind that
can legally reach the target; `x` takes, `+` checks, `#` mates.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from games.base import AmbiguousMove, IllegalMove, InvalidMove, Move

from .tables import (
    CANNON,
    CHARIOT,
    CODES,
    ELEPHANT,
    GENERAL,
    GUARD,
    HORSE,
    NAMES,
    POINT,
    POINTS,
    SOLDIER,
)

if TYPE_CHECKING:
    from .state import JanggiState

LETTERS = {
    GENERAL: "K",
    GUARD: "A",
    CHARIOT: "R",
    CANNON: "C",
    HORSE: "H",
    ELEPHANT: "E",
    SOLDIER: "P",
}
_KINDS = {letter: kind for kind, letter in LETTERS.items()} | {"N": HORSE, "B": ELEPHANT}
SAN_PATTERN = re.compile(r"([KARCHENBP])([a-i])?(10|[1-9])?(x)?([a-i](?:10|[1-9]))[+#]?")


def _candidates(state: JanggiState, kind: int, target: int) -> list[Move]:
    """Legal moves of that kind of piece to a point."""
    found = []
    for move in state.legal_moves():
        origin, to = divmod(CODES[move.uci], POINTS)
        if to == target and state.board[origin] & 7 == kind:
            found.append(move)
    return found


def parse(state: JanggiState, text: str) -> Move:
    """The legal move of a text. Raises InvalidMove, IllegalMove or AmbiguousMove."""
    match = SAN_PATTERN.fullmatch(text)
    if match is None:
        raise InvalidMove(
            f"{text[:40]!r} is no move: write it such as Hc3 or Pab4",
            text=text,
            position=state.fen(),
        )
    letter, file, rank, takes, target = match.groups()
    start = re.compile(f"{file or '[a-i]'}{rank or '[0-9]+'}[a-i]")
    found = [
        move for move in _candidates(state, _KINDS[letter], POINT[target]) if start.match(move.uci)
    ]
    taken = state.board[POINT[target]] and [m for m in found if m.uci != target * 2]
    if not found or (takes and not taken):
        raise IllegalMove(f"{text} is not legal here", text=text, position=state.fen())
    if len(found) > 1:
        raise AmbiguousMove(
            f"{text} fits {', '.join(move.uci for move in found)}",
            text=text,
            position=state.fen(),
            candidates=tuple(move.uci for move in found),
        )
    return found[0]


def _origin(origin: int, others: list[int]) -> str:
    """What of the origin's name tells it from the others'."""
    name = NAMES[origin]
    if not others:
        return ""
    if all(NAMES[other][0] != name[0] for other in others):
        return name[0]
    if all(NAMES[other][1:] != name[1:] for other in others):
        return name[1:]
    return name


def write(state: JanggiState, move: Move, after: JanggiState) -> str:
    """The text of a legal move that leads to `after`."""
    origin, target = divmod(CODES[move.uci], POINTS)
    kind = state.board[origin] & 7
    origins = [CODES[m.uci] // POINTS for m in _candidates(state, kind, target) if m != move]
    takes = "x" if origin != target and state.board[target] else ""
    mark = ""
    if after.is_check():
        mark = "+" if after.legal_moves() else "#"
    return f"{LETTERS[kind]}{_origin(origin, origins)}{takes}{NAMES[target]}{mark}"
