"""Repetition in janggi: the count, perpetual check, shuffling, and the forbidden move.

`history` is every board since the last capture (or the start), the present one last, so sides
alternate along it. Nothing here reads who stands better.
"""

from typing import Literal

from games.base import Move, Side

from . import movement
from .rules import JanggiRules
from .tables import CODES, GENERAL, GUARD, POINTS

History = tuple[bytes, ...]
Cause = Literal["perpetual_check", "loss", "count"]


def times(history: History) -> int:
    """How often the present position has stood, with this side to move."""
    return history[::-2].count(history[-1])


def is_forbidden(history: History, code: int, count: int) -> bool:
    """Whether a move that is no pass would bring a position for the `count`th time."""
    origin, target = divmod(code, POINTS)
    if origin == target or history[-1][target]:
        return False
    board = bytearray(history[-1])
    board[target], board[origin] = board[origin], 0
    return history[-2::-2].count(bytes(board)) >= count - 1


def _checked_throughout(boards: History, side: int) -> bool:
    return all(movement.in_check(board, side) for board in boards)


def _perpetual_checker(history: History, turn: Side, count: int) -> Side | None:
    """The side that alone gave check at every move since the `count`th last occurrence."""
    seen, start = 0, len(history) - 1
    for start in range(len(history) - 1, -1, -2):
        seen += history[start] == history[-1]
        if seen == count:
            break
    other: Side = 1 if turn == 0 else 0
    mine = _checked_throughout(history[start::2], turn)
    theirs = _checked_throughout(history[start + 1 :: 2], other)
    if mine == theirs:
        return None
    return other if mine else turn


def _shuffled(history: History, moves: tuple[Move, ...], mover: Side) -> bool:
    """The mover's last five moves took one piece to and fro, quietly and out of check.

    The first of the five may come from anywhere; a pass just before the fifth is skipped.
    """
    own = [divmod(CODES[move.uci], POINTS) for move in moves[::-2]]
    if len(own) > 1 and own[1][0] == own[1][1]:
        del own[1]
    # One board more than plies looked back over: the first move was itself no capture.
    plies = 2 * (len(moves[::-2]) - len(own)) + 9
    if len(own) < 5 or len(history) <= plies:
        return False
    to_and_fro = all(own[i] == own[i + 1][::-1] for i in range(3))
    if not to_and_fro or own[4][1] != own[3][0] or own[0][0] == own[0][1]:
        return False
    if history[-1][own[0][1]] & 7 in (GENERAL, GUARD):
        return False
    before = history[-plies - 1 : -1 : 2]
    return not any(movement.in_check(board, mover) for board in before)


def repetition_end(
    history: History, moves: tuple[Move, ...], turn: Side, rules: JanggiRules
) -> tuple[Cause, Side | None] | None:
    """(cause, the side that loses by it), or None; for `count` by points or draw no side."""
    mover: Side = 1 if turn == 0 else 0
    repeated = rules.repetition != "forbid" and times(history) >= rules.repetition_count
    if repeated and rules.perpetual_check == "lose":
        checker = _perpetual_checker(history, turn, rules.repetition_count)
        if checker is not None:
            return "perpetual_check", checker
    if rules.shuffle_loses and _shuffled(history, moves, mover):
        return "loss", mover
    if not repeated:
        return None
    return ("loss", mover) if rules.repetition == "lose" else ("count", None)
