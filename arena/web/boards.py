"""Boards as SVG: one renderer, two geometries.

Chess pieces stand in squares, janggi pieces on points. A `Scene` says what to draw; nothing here
knows a rule. `static/board.js` draws the same layers from the same scene (a test compares them).
Layers, bottom up: ground, marks (last move, check), pieces, arrows.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Literal

from .pieces import CELL, NAMES, Script, symbol_id, symbols

ArrowKind = Literal["belief", "refused"]

_UCI = re.compile(r"([a-i](?:10|[1-9]))([a-i](?:10|[1-9]))")
_CANONICAL = str.maketrans("HEhe", "NBnb")  # janggi FENs may say H and E


@dataclass(frozen=True, slots=True)
class Arrow:
    """One move drawn over the board; `weight` 0 … 1 is a probability (refused: ignored)."""

    uci: str
    kind: ArrowKind
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Scene:
    """One position as a viewer sees it. `check` is the square of the attacked king."""

    fen: str
    last: str | None = None
    check: str | None = None
    arrows: tuple[Arrow, ...] = ()


@dataclass(frozen=True, slots=True)
class Balance:
    """`taken`: FEN letters that the first and the second mover captured; `points`: theirs now."""

    taken: tuple[str, str]
    points: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where squares are: `files` × `ranks`, square a1 bottom left unless flipped."""

    game: str
    files: int
    ranks: int
    inset: float  # from the edge of the drawing to the centre of the outermost square

    @property
    def width(self) -> float:
        return 2 * self.inset + (self.files - 1) * CELL

    @property
    def height(self) -> float:
        return 2 * self.inset + (self.ranks - 1) * CELL

    def centre(self, square: str, flip: bool = False) -> tuple[float, float]:
        """The middle of a square such as `e4` or `i10`, in SVG units."""
        file, rank = ord(square[0]) - 97, int(square[1:]) - 1
        column = self.files - 1 - file if flip else file
        row = rank if flip else self.ranks - 1 - rank
        return self.inset + column * CELL, self.inset + row * CELL


CHESS = Geometry("chess", 8, 8, inset=46)
JANGGI = Geometry("janggi", 9, 10, inset=42)
VALUES = {
    "chess": {"Q": 9, "R": 5, "B": 3, "N": 3, "P": 1},
    "janggi": {"R": 13, "C": 7, "N": 5, "B": 3, "A": 3, "P": 2},
}
GEOMETRIES = {"chess": CHESS, "janggi": JANGGI}


def squares_of(uci: str) -> tuple[str, str] | None:
    """(from, to) of a board move in UCI; None for what names no two squares (drops, nonsense)."""
    match = _UCI.match(uci)
    return (match[1], match[2]) if match else None


def placement(fen: str) -> Iterator[tuple[str, str]]:
    """(square, FEN letter) of every piece; letters N and B also where the FEN says H and E."""
    rows = fen.split(" ", 1)[0].split("/")
    for row, text in enumerate(rows):
        file = 0
        for char in text.translate(_CANONICAL) if len(rows) == 10 else text:
            if char.isdigit():
                file += int(char)
            else:
                yield f"{chr(97 + file)}{len(rows) - row}", char
                file += 1


def king_square(fen: str) -> str | None:
    """Where the king or general of the side to move stands."""
    wanted = "k" if fen.split(" ")[1:2] == ["b"] else "K"
    return next((square for square, letter in placement(fen) if letter == wanted), None)


def render(
    game: str,
    scene: Scene,
    *,
    flip: bool = False,
    script: Script = "hanja",
    coords: bool = True,
    standalone: bool = False,
) -> str:
    """One board as an `<svg>` element.

    What it refers to by id must be in the same document (`symbol_defs`), unless `standalone` puts
    it inside.
    """
    geometry = GEOMETRIES[game]
    defs = f"<defs>{_ground(game)}{symbols(game, script)}</defs>" if standalone else ""
    labels = _labels(geometry, False) + _labels(geometry, True) if coords else ""
    turned = ' data-flip="1"' if flip else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="board {game}" role="img"'
        f' viewBox="0 0 {geometry.width:g} {geometry.height:g}" data-script="{script}"{turned}'
        f' aria-label="{escape(describe(game, scene))}">{defs}<use href="#ground-{game}"/>{labels}'
        f'<g class="marks">{marks(geometry, scene, flip)}</g>'
        f'<g class="pieces">{pieces(geometry, scene.fen, flip, script)}</g>'
        f'<g class="arrows">{arrows(geometry, scene.arrows, flip)}</g></svg>'
    )


def symbol_defs(*games: str) -> str:
    """A hidden `<svg>` with the grounds and pieces of the games, once a page."""
    body = "".join(_ground(game) + symbols(game) for game in dict.fromkeys(games))
    return f'<svg class="symbols" width="0" height="0" aria-hidden="true"><defs>{body}</defs></svg>'


def balance(game: str, start_fen: str, fen: str) -> Balance:
    """What each side took since the start, and its material now by the game's usual values."""
    then, now = _counts(start_fen), _counts(fen)
    gone = {letter: max(0, number - now[letter]) for letter, number in then.items()}
    order = VALUES[game]
    taken = tuple(
        "".join(letter * gone.get(letter, 0) for letter in map(case, order))
        for case in (str.lower, str.upper)
    )
    points = tuple(
        float(sum(value * now[case(letter)] for letter, value in order.items()))
        for case in (str.upper, str.lower)
    )
    extra = 1.5 if game == "janggi" else 0.0  # Han's for moving second
    return Balance((taken[0], taken[1]), (points[0], points[1] + extra))


def _counts(fen: str) -> Counter[str]:
    return Counter(letter for _, letter in placement(fen))


def describe(game: str, scene: Scene) -> str:
    """One sentence for those who hear the board: where the pieces stand and what moved last."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for square, letter in placement(scene.fen):
        sides[letter.isupper()].append(f"{NAMES[game].get(letter.upper(), letter)} {square}")
    first, second = ("White", "Black") if game == "chess" else ("Cho", "Han")
    last = f" Last move {scene.last}." if scene.last else ""
    check = f" Check at {scene.check}." if scene.check else ""
    return f"{first}: {', '.join(sides[True])}. {second}: {', '.join(sides[False])}.{last}{check}"


def arrow_shape(geometry: Geometry, arrow: Arrow, flip: bool = False) -> str:
    """An arrow from square to square, wider and denser with its weight; a ring for a pass."""
    ends = squares_of(arrow.uci)
    if ends is None or not all(_on_board(geometry, square) for square in ends):
        return ""
    weight = min(max(arrow.weight, 0.0), 1.0)
    refused = arrow.kind == "refused"
    width = 5.0 if refused else 3 + 11 * weight
    opacity = 0.8 if refused else 0.35 + 0.5 * weight
    note = "refused" if refused else f"{100 * weight:.1f} %"
    start, end = geometry.centre(ends[0], flip), geometry.centre(ends[1], flip)
    shape = _ring(start, width) if start == end else _shaft(start, end, width)
    return (
        f'<g class="arrow {arrow.kind}" opacity="{opacity:.2f}">'
        f"<title>{escape(arrow.uci)}: {note}</title>{shape}</g>"
    )


def _ring(centre: tuple[float, float], width: float) -> str:
    x, y = centre
    return f'<circle cx="{x:g}" cy="{y:g}" r="26" stroke-width="{width:.1f}"></circle>'


def _shaft(start: tuple[float, float], end: tuple[float, float], width: float) -> str:
    length = math.dist(start, end)
    ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    wing = 5 + width
    tip = (end[0] - 6 * ux, end[1] - 6 * uy)
    neck = (tip[0] - 1.6 * wing * ux, tip[1] - 1.6 * wing * uy)
    left = (neck[0] - wing * uy, neck[1] + wing * ux)
    right = (neck[0] + wing * uy, neck[1] - wing * ux)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, left, right))
    return (
        f'<line x1="{start[0] + 10 * ux:.1f}" y1="{start[1] + 10 * uy:.1f}"'
        f' x2="{neck[0]:.1f}" y2="{neck[1]:.1f}" stroke-width="{width:.1f}"></line>'
        f'<polygon points="{points}"></polygon>'
    )


def pieces(geometry: Geometry, fen: str, flip: bool, script: Script) -> str:
    """The layer of pieces: one `<use>` each, in the order of the FEN."""
    parts = []
    for square, letter in placement(fen):
        x, y = geometry.centre(square, flip)
        name = symbol_id(geometry.game, letter, script)
        parts.append(f'<use href="#{name}" x="{x:g}" y="{y:g}"></use>')
    return "".join(parts)


def arrows(geometry: Geometry, wanted: tuple[Arrow, ...], flip: bool) -> str:
    """The layer of arrows, the first on top."""
    return "".join(arrow_shape(geometry, arrow, flip) for arrow in reversed(wanted))


def marks(geometry: Geometry, scene: Scene, flip: bool) -> str:
    """The layer under the pieces: the last move (a pass says so) and a king in check."""
    shapes = []
    ends = squares_of(scene.last) if scene.last else None
    for square in dict.fromkeys(ends or ()):
        shapes.append(_mark(geometry, square, "last", flip))
    if ends is not None and ends[0] == ends[1]:
        x, y = geometry.centre(ends[0], flip)
        shapes.append(f'<text class="pass" x="{x:g}" y="{y - 33:g}">pass</text>')
    if scene.check:
        shapes.append(_mark(geometry, scene.check, "check", flip))
    return "".join(shapes)


def _mark(geometry: Geometry, square: str, kind: str, flip: bool) -> str:
    x, y = geometry.centre(square, flip)
    if geometry.game == "chess":
        path = f"M{x - CELL / 2:g},{y - CELL / 2:g}h{CELL}v{CELL}h-{CELL}z"
        return f'<path class="{kind}" d="{path}"></path>'
    return f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="29"></circle>'


def _on_board(geometry: Geometry, square: str) -> bool:
    return ord(square[0]) - 97 < geometry.files and int(square[1:]) <= geometry.ranks


@cache
def _ground(game: str) -> str:
    drawn = _chess_ground() if game == "chess" else _janggi_ground()
    return f'<g id="ground-{game}">{drawn}</g>'


def _chess_ground() -> str:
    side, edge = 8 * CELL, CHESS.inset - CELL / 2
    dark = "".join(
        f"M{edge + file * CELL:g},{edge + row * CELL:g}h{CELL}v{CELL}h-{CELL}z"
        for row in range(8)
        for file in range(8)
        if (row + file) % 2
    )
    return (
        f'<rect class="frame" width="{CHESS.width:g}" height="{CHESS.height:g}"/>'
        f'<rect class="sq-light" x="{edge:g}" y="{edge:g}" width="{side}" height="{side}"/>'
        f'<path class="sq-dark" d="{dark}"/>'
    )


def _janggi_ground() -> str:
    g = JANGGI
    right, bottom = g.width - g.inset, g.height - g.inset
    path = "".join(f"M{g.inset:g},{g.inset + r * CELL:g}H{right:g}" for r in range(g.ranks))
    path += "".join(f"M{g.inset + f * CELL:g},{g.inset:g}V{bottom:g}" for f in range(g.files))
    left = g.inset + 3 * CELL
    for top in (g.inset, g.inset + 7 * CELL):
        path += f"M{left:g},{top:g}l{2 * CELL},{2 * CELL}m0,-{2 * CELL}l-{2 * CELL},{2 * CELL}"
    return (
        f'<rect class="wood" width="{g.width:g}" height="{g.height:g}"/>'
        f'<path class="lines" d="{path}"/>'
    )


def _labels(geometry: Geometry, flip: bool) -> str:
    """Coordinates of one orientation; the style sheet shows the group that fits `data-flip`."""
    texts = []
    for file in range(geometry.files):
        x, _ = geometry.centre(f"{chr(97 + file)}1", flip)
        texts.append(f'<text x="{x:g}" y="{geometry.height - 4:g}">{chr(97 + file)}</text>')
    for rank in range(1, geometry.ranks + 1):
        _, y = geometry.centre(f"a{rank}", flip)
        texts.append(f'<text x="8" y="{y + 4.5:g}">{rank}</text>')
    return f'<g class="coords {"flipped" if flip else "upright"}">{"".join(texts)}</g>'
