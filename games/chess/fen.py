"""Chess FEN: strict reading into a python-chess board."""

import re

import chess

from games.base import InvalidPosition

LONGEST_FEN = 120
_TAIL = re.compile(r"(?: [0-9]{1,5} [1-9][0-9]{0,4})?")


def _fault(fen: str, why: str) -> InvalidPosition:
    return InvalidPosition(f"not a chess FEN: {why}", text=fen, position=fen)


def _reasons(status: chess.Status) -> str:
    names = [flag.name for flag in chess.Status if flag in status and flag.name]
    return ", ".join(name.lower().replace("_", " ") for name in names)


def parse_fen(fen: str) -> chess.Board:
    """The board of a FEN with 4 or 6 fields. Raises InvalidPosition that names the reason."""
    if len(fen) > LONGEST_FEN or not fen.isascii():
        raise _fault(fen, f"more than {LONGEST_FEN} characters, or not ASCII")
    fields = fen.split()
    if len(fields) not in (4, 6):
        raise _fault(fen, f"{len(fields)} fields, not 4 or 6")
    if len(fields) == 6 and not _TAIL.fullmatch(f" {fields[4]} {fields[5]}"):
        raise _fault(fen, f"the counters are {fields[4]!r} {fields[5]!r}, not numbers from 0 and 1")
    try:
        board = chess.Board(" ".join(fields))
    except ValueError as error:
        raise _fault(fen, str(error)[:120]) from None
    status = board.status()
    if status != chess.STATUS_VALID:
        raise _fault(fen, _reasons(status))
    return board
