"""Points, pieces and the geometry of the janggi board, worked out once at import.

A point is `rank * 9 + file`, 0 = a1, Cho's left corner; ranks run from Cho to Han. A piece is a
small integer: its kind (1 to 7), plus 8 for Han; 0 is an empty point. A move is coded
`origin * 90 + target`; a pass is the general's own point twice. Knows nothing about turns.
"""

from games.base import Move

FILES, RANKS, POINTS = 9, 10, 90
GENERAL, GUARD, CHARIOT, CANNON, HORSE, ELEPHANT, SOLDIER = 1, 2, 3, 4, 5, 6, 7
HAN = 8
KINDS = (GENERAL, GUARD, CHARIOT, CANNON, HORSE, ELEPHANT, SOLDIER)
VALUES = {CHARIOT: 13, CANNON: 7, HORSE: 5, ELEPHANT: 3, GUARD: 3, SOLDIER: 2, GENERAL: 0}
MOST = {GENERAL: 1, SOLDIER: 5}
"""How many of a kind a side can have; 2 of every other."""

LETTERS = {GENERAL: "k", GUARD: "a", CHARIOT: "r", CANNON: "c", HORSE: "n", ELEPHANT: "b"}
LETTERS[SOLDIER] = "p"
SYMBOLS = {kind: letter.upper() for kind, letter in LETTERS.items()} | {
    kind | HAN: letter for kind, letter in LETTERS.items()
}
"""Piece -> FEN letter, upper case for Cho."""

NAMES = tuple(f"{'abcdefghi'[p % FILES]}{p // FILES + 1}" for p in range(POINTS))
POINT = {name: point for point, name in enumerate(NAMES)}
MOVES = tuple(Move(a + b) for a in NAMES for b in NAMES)
"""Code -> Move, one object for each."""

CODES = {move.uci: code for code, move in enumerate(MOVES)}
ORDER = [0] * len(MOVES)
"""Code -> its place when all moves are sorted by UCI."""

for _place, _uci in enumerate(sorted(CODES)):
    ORDER[CODES[_uci]] = _place

Ray = tuple[int, ...]


def _point(file: int, rank: int) -> int | None:
    return rank * FILES + file if 0 <= file < FILES and 0 <= rank < RANKS else None


def _shift(point: int, file: int, rank: int) -> int | None:
    return _point(point % FILES + file, point // FILES + rank)


def _ray(point: int, file: int, rank: int) -> Ray:
    found: list[int] = []
    at = _shift(point, file, rank)
    while at is not None:
        found.append(at)
        at = _shift(at, file, rank)
    return tuple(found)


ORTHOGONAL = ((0, 1), (1, 0), (0, -1), (-1, 0))
DIAGONAL = ((1, 1), (1, -1), (-1, -1), (-1, 1))
PALACE = tuple(
    frozenset(r * FILES + f for r in range(low, low + 3) for f in range(3, 6)) for low in (0, 7)
)
"""Points of Cho's and of Han's palace."""

CENTRES = (POINT["e2"], POINT["e9"])


def _drawn(point: int) -> tuple[Ray, ...]:
    """Palace diagonals from a point, outward; none from a mid-edge point."""
    for palace, centre in zip(PALACE, CENTRES, strict=True):
        if point not in palace:
            continue
        rays = [tuple(p for p in _ray(point, *way) if p in palace) for way in DIAGONAL]
        return tuple(ray for ray in rays if ray and (point == centre or centre in ray))
    return ()


DIAGONALS = tuple(_drawn(point) for point in range(POINTS))
LINES = tuple(
    tuple(ray for way in ORTHOGONAL if (ray := _ray(point, *way))) + DIAGONALS[point]
    for point in range(POINTS)
)
"""Point -> every drawn line outward from it: how a chariot slides and a cannon jumps."""


def _palace_steps(point: int, side: int) -> Ray:
    if point not in PALACE[side]:
        return ()
    return tuple(line[0] for line in LINES[point] if line[0] in PALACE[side])


def _soldier_steps(point: int, side: int) -> Ray:
    forward = 1 if side == 0 else -1
    steps = [_shift(point, *way) for way in ((-1, 0), (1, 0), (0, forward))]
    found = [step for step in steps if step is not None]
    if point in PALACE[1 - side]:
        found += [
            line[0] for line in DIAGONALS[point] if (line[0] // FILES - point // FILES) == forward
        ]
    return tuple(found)


STEPS: tuple[tuple[Ray, ...], ...] = tuple(
    tuple(
        _soldier_steps(point, piece >> 3)
        if piece & 7 == SOLDIER
        else _palace_steps(point, piece >> 3)
        if piece & 7 in (GENERAL, GUARD)
        else ()
        for point in range(POINTS)
    )
    for piece in range(16)
)
"""Piece (general, guard, soldier) -> point -> where it steps."""


def _diagonal_steps(way: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(d for d in DIAGONAL if (d[0] == way[0] if way[0] else d[1] == way[1]))


def _horse(point: int) -> tuple[tuple[int, Ray], ...]:
    found = []
    for way in ORTHOGONAL:
        leg = _shift(point, *way)
        if leg is None:
            continue
        ends = [_shift(leg, *step) for step in _diagonal_steps(way)]
        found.append((leg, tuple(end for end in ends if end is not None)))
    return tuple(found)


def _elephant(point: int) -> tuple[tuple[int, tuple[tuple[int, int], ...]], ...]:
    found = []
    for way in ORTHOGONAL:
        leg = _shift(point, *way)
        if leg is None:
            continue
        paths = []
        for step in _diagonal_steps(way):
            knee, end = _shift(leg, *step), _shift(leg, step[0] * 2, step[1] * 2)
            if knee is not None and end is not None:
                paths.append((knee, end))
        found.append((leg, tuple(paths)))
    return tuple(found)


HORSE_MOVES = tuple(_horse(point) for point in range(POINTS))
"""Point -> (leg, ends): the ends are open when the leg is empty."""

ELEPHANT_MOVES = tuple(_elephant(point) for point in range(POINTS))
"""Point -> (leg, ((knee, end), ...)): an end is open when leg and knee are empty."""

HORSE_FROM = tuple(
    tuple((o, leg) for o in range(POINTS) for leg, ends in HORSE_MOVES[o] if point in ends)
    for point in range(POINTS)
)
"""Point -> (origin, leg) of every horse move that ends there."""

ELEPHANT_FROM = tuple(
    tuple(
        (o, leg, knee)
        for o in range(POINTS)
        for leg, paths in ELEPHANT_MOVES[o]
        for knee, end in paths
        if end == point
    )
    for point in range(POINTS)
)
"""Point -> (origin, leg, knee) of every elephant move that ends there."""

SOLDIER_FROM = tuple(
    tuple(
        tuple(o for o in range(POINTS) if point in STEPS[SOLDIER | side << 3][o])
        for point in range(POINTS)
    )
    for side in (0, 1)
)
"""Side of the soldier -> point -> the points from which it steps there."""
