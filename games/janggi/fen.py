"""Janggi FEN: strict reading, canonical writing.

`board side - - clock number`: rank 10 first, upper case Cho, `w` = Cho; the clock counts plies
since the last capture. `h` and `e` are read as `n` and `b`, which are always written. The last
four fields may be left out together, or the last two. A FEN hides passes and repetitions.
"""

import re
from dataclasses import dataclass

from games.base import InvalidPosition, Side

from .movement import in_check
from .tables import FILES, GENERAL, GUARD, KINDS, MOST, PALACE, POINTS, RANKS, SYMBOLS

PIECES = {letter: piece for piece, letter in SYMBOLS.items()}
PIECES |= {"H": PIECES["N"], "h": PIECES["n"], "E": PIECES["B"], "e": PIECES["b"]}
KIND_NAMES = dict(
    zip(
        KINDS,
        ("general", "guard", "chariot", "cannon", "horse", "elephant", "soldier"),
        strict=True,
    )
)
SIDE_NAMES = ("Cho", "Han")
LONGEST_FEN = 200
_NUMBER = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Position:
    """What a FEN holds: 90 pieces, the side to move, plies since a capture, the move number."""

    board: bytes
    turn: Side
    clock: int = 0
    number: int = 1


def _rank(text: str, name: int) -> list[int]:
    row: list[int] = []
    for letter in text:
        if letter in "123456789":
            row += [0] * int(letter)
        elif letter in PIECES:
            row.append(PIECES[letter])
        else:
            raise ValueError(f"{letter!r} in rank {name} is no piece and no count")
    if len(row) != FILES:
        raise ValueError(f"rank {name} has {len(row)} points, not {FILES}")
    return row


def _board(text: str) -> bytes:
    rows = text.split("/")
    if len(rows) != RANKS:
        raise ValueError(f"{len(rows)} ranks, not {RANKS}")
    read = [_rank(row, RANKS - place) for place, row in enumerate(rows)]
    return bytes(piece for row in reversed(read) for piece in row)


def _count(text: str, least: int, name: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) < least:
        raise ValueError(f"the {name} is {text!r}, not a number from {least}")
    return int(text)


def check_board(board: bytes, turn: Side, any_material: bool) -> None:
    """Raises ValueError naming what makes a board impossible."""
    for side, name in enumerate(SIDE_NAMES):
        for kind in KINDS:
            found = board.count(kind | side << 3)
            most = MOST.get(kind, 2)
            if found > most and (kind == GENERAL or not any_material):
                raise ValueError(f"{name} has {found} {KIND_NAMES[kind]}s, at most {most}")
            if kind == GENERAL and not found:
                raise ValueError(f"{name} has no general")
        for kind in (GENERAL, GUARD):
            outside = [p for p in range(POINTS) if board[p] == kind | side << 3]
            if not PALACE[side].issuperset(outside):
                raise ValueError(f"a {KIND_NAMES[kind]} of {name} is outside its palace")
    if in_check(board, 1 - turn):
        raise ValueError(f"{SIDE_NAMES[1 - turn]}, not to move, is in check")


def _parse(fen: str, any_material: bool) -> Position:
    if len(fen) > LONGEST_FEN or not fen.isascii():
        raise ValueError(f"more than {LONGEST_FEN} characters, or not ASCII")
    fields = fen.split()
    if len(fields) not in (2, 4, 6):
        raise ValueError(f"{len(fields)} fields, not 2, 4 or 6")
    board = _board(fields[0])
    if fields[1] not in ("w", "b"):
        raise ValueError(f"the side to move is {fields[1]!r}, not w (Cho) or b (Han)")
    if any(field != "-" for field in fields[2:4]):
        raise ValueError(f"fields 3 and 4 are {' '.join(fields[2:4])!r}, not '- -'")
    turn: Side = 0 if fields[1] == "w" else 1
    check_board(board, turn, any_material)
    if len(fields) < 6:
        return Position(board, turn)
    return Position(
        board, turn, _count(fields[4], 0, "half-move clock"), _count(fields[5], 1, "move number")
    )


def parse_fen(fen: str, *, any_material: bool = False) -> Position:
    """The position of a FEN. Raises InvalidPosition that names the reason.

    `any_material` lets a side have more pieces of a kind than its set holds.
    """
    try:
        return _parse(fen, any_material)
    except ValueError as error:
        raise InvalidPosition(f"not a janggi FEN: {error}", text=fen, position=fen) from None


def _row_text(row: bytes) -> str:
    text, empty = "", 0
    for piece in row:
        if not piece:
            empty += 1
            continue
        text += (str(empty) if empty else "") + SYMBOLS[piece]
        empty = 0
    return text + (str(empty) if empty else "")


def format_fen(position: Position) -> str:
    """The canonical FEN of a position."""
    rows = [position.board[p : p + FILES] for p in range(0, POINTS, FILES)]
    side = "wb"[position.turn]
    board = "/".join(_row_text(row) for row in reversed(rows))
    return f"{board} {side} - - {position.clock} {position.number}"
