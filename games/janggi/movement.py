"""Which moves are legal on a board: movement, check, facing generals. Knows no history.

Boards are sequences of 90 pieces (`tables`). The general is looked at from outside in: one walk
along its lines finds the checks and the few points whose change could open one, so that only
moves that touch such a point are tried on the board.
"""

from collections.abc import Sequence

from .tables import (
    CANNON,
    CHARIOT,
    ELEPHANT,
    ELEPHANT_FROM,
    ELEPHANT_MOVES,
    FILES,
    GENERAL,
    HAN,
    HORSE,
    HORSE_FROM,
    HORSE_MOVES,
    LINES,
    POINTS,
    SOLDIER,
    SOLDIER_FROM,
    STEPS,
)


def facing(board: Sequence[int]) -> bool:
    """Bikjang: the generals stand on one file with nothing between them."""
    cho, han = board.index(GENERAL), board.index(GENERAL | HAN)
    if cho % FILES != han % FILES:
        return False
    return not any(board[cho + FILES : han : FILES])


def attacked(board: Sequence[int], point: int, side: int) -> bool:
    """Whether the other side's pieces bear on a palace point of `side`."""
    foe = HAN if side == 0 else 0
    chariot, cannon, horse, elephant = CHARIOT | foe, CANNON | foe, HORSE | foe, ELEPHANT | foe
    for line in LINES[point]:
        screened = False
        for at in line:
            piece = board[at]
            if not piece:
                continue
            if screened:
                if piece == cannon:
                    return True
                break
            if piece == chariot:
                return True
            if piece & 7 == CANNON:
                break
            screened = True
    for origin, leg in HORSE_FROM[point]:
        if board[origin] == horse and not board[leg]:
            return True
    for origin, leg, knee in ELEPHANT_FROM[point]:
        if board[origin] == elephant and not board[leg] and not board[knee]:
            return True
    soldier = SOLDIER | foe
    return any(board[origin] == soldier for origin in SOLDIER_FROM[1 - side][point])


def in_check(board: Sequence[int], side: int) -> bool:
    """Whether the general of `side` is attacked."""
    return attacked(board, board.index(GENERAL | side << 3), side)


def _cannon_moves(board: Sequence[int], origin: int, side: int, found: list[int]) -> None:
    base = origin * POINTS
    for line in LINES[origin]:
        rest = iter(line)
        screen = 0
        for at in rest:
            screen = board[at]
            if screen:
                break
        if not screen or screen & 7 == CANNON:
            continue
        for at in rest:
            piece = board[at]
            if not piece:
                found.append(base + at)
                continue
            if piece >> 3 != side and piece & 7 != CANNON:
                found.append(base + at)
            break


def _chariot_moves(board: Sequence[int], origin: int, side: int, found: list[int]) -> None:
    base = origin * POINTS
    for line in LINES[origin]:
        for at in line:
            piece = board[at]
            if not piece:
                found.append(base + at)
                continue
            if piece >> 3 != side:
                found.append(base + at)
            break


def _horse_moves(board: Sequence[int], origin: int, side: int, found: list[int]) -> None:
    base = origin * POINTS
    for leg, ends in HORSE_MOVES[origin]:
        if not board[leg]:
            for at in ends:
                piece = board[at]
                if not piece or piece >> 3 != side:
                    found.append(base + at)


def _elephant_moves(board: Sequence[int], origin: int, side: int, found: list[int]) -> None:
    base = origin * POINTS
    for leg, paths in ELEPHANT_MOVES[origin]:
        if not board[leg]:
            for knee, at in paths:
                if not board[knee]:
                    piece = board[at]
                    if not piece or piece >> 3 != side:
                        found.append(base + at)


_LONG = {
    CHARIOT: _chariot_moves,
    CANNON: _cannon_moves,
    HORSE: _horse_moves,
    ELEPHANT: _elephant_moves,
}


def pseudo_legal(board: Sequence[int], side: int) -> list[int]:
    """Codes of every move by the way the pieces go, check not looked at; no pass."""
    found: list[int] = []
    for origin, piece in enumerate(board):
        if not piece or piece >> 3 != side:
            continue
        long = _LONG.get(piece & 7)
        if long is not None:
            long(board, origin, side, found)
            continue
        base = origin * POINTS
        for at in STEPS[piece][origin]:
            there = board[at]
            if not there or there >> 3 != side:
                found.append(base + at)
    return found


def _guarded_lines(
    board: Sequence[int], general: int, chariot: int, cannon: int, points: set[int]
) -> bool:
    """Adds the line points to `points`; whether a chariot or a cannon gives check.

    One move empties one point and fills another, so along a line a chariot matters only behind
    at most one piece and a cannon behind at most two.
    """
    check = False
    for line in LINES[general]:
        seen = first = 0
        for place, at in enumerate(line):
            piece = board[at]
            if not piece:
                continue
            if piece == cannon:
                points.update(line[: place + 1])
                check |= seen == 1 and first & 7 != CANNON
            elif piece == chariot and seen < 2:
                points.update(line[: place + 1])
                check |= seen == 0
            if seen == 2:
                break
            first = first or piece
            seen += 1
    return check


def _guarded(board: Sequence[int], general: int, side: int) -> tuple[bool, set[int]]:
    """(in check, the points whose change can give or answer a check)."""
    foe = HAN if side == 0 else 0
    horse, elephant, soldier = HORSE | foe, ELEPHANT | foe, SOLDIER | foe
    points: set[int] = set()
    check = _guarded_lines(board, general, CHARIOT | foe, CANNON | foe, points)
    for origin, leg in HORSE_FROM[general]:
        if board[origin] == horse:
            points.update((origin, leg))
            check |= not board[leg]
    for origin, leg, knee in ELEPHANT_FROM[general]:
        if board[origin] == elephant:
            points.update((origin, leg, knee))
            check |= not board[leg] and not board[knee]
    for origin in SOLDIER_FROM[1 - side][general]:
        if board[origin] == soldier:
            points.add(origin)
            check = True
    return check, points


def legal(pieces: Sequence[int], side: int, bikjang: bool = False) -> list[int]:
    """Codes of every legal move and the pass, in no order.

    `bikjang`: the generals face each other and the rules count it. Then a move must part them,
    and a pass (which accepts) is legal even in check; otherwise a pass is legal out of check.
    """
    board = list(pieces)
    general = board.index(GENERAL | side << 3)
    other = board.index(GENERAL | (1 - side) << 3)
    check, points = _guarded(board, general, side)
    between = set(range(min(general, other) + FILES, max(general, other), FILES))
    found: list[int] = []
    for code in pseudo_legal(board, side):
        origin, target = divmod(code, POINTS)
        if origin != general:
            if bikjang and target not in between:
                continue
            if origin not in points and target not in points:
                if not check:
                    found.append(code)
                continue
        piece, taken = board[origin], board[target]
        board[origin], board[target] = 0, piece
        exposed = attacked(board, target if origin == general else general, side)
        if not exposed and not (bikjang and origin == general and facing(board)):
            found.append(code)
        board[origin], board[target] = piece, taken
    if bikjang or not check:
        found.append(general * POINTS + general)
    return found
