"""Piece symbols: SVG groups with an id, which a board places with `<use>`.

Chess draws the set that the `chess` library ships, its inline styles turned into attributes so
that a strict Content-Security-Policy lets them stand. Janggi pieces are ours: octagons of three
sizes; Cho is blue with one rim, Han red with two, so colour is never the only difference.
"""

import math
import re
from functools import cache
from typing import Literal

import chess.svg

Script = Literal["hanja", "hangul", "latin"]
SCRIPTS: tuple[Script, ...] = ("hanja", "hangul", "latin")

CELL = 60  # side of one square, or distance of two points, in SVG units

GLYPHS: dict[Script, dict[str, str]] = {
    "hanja": dict(zip("KARCNBPkarcnbp", "楚士車包馬象卒漢士車包馬象兵", strict=True)),
    "hangul": dict(zip("KARCNBPkarcnbp", "초사차포마상졸한사차포마상병", strict=True)),
    "latin": dict(zip("KARCNBPkarcnbp", "KARCHEPKARCHEP", strict=True)),
}
NAMES = {
    "chess": dict(
        zip("KQRBNP", ("king", "queen", "rook", "bishop", "knight", "pawn"), strict=True)
    ),
    "janggi": dict(
        zip(
            "KARCNBP",
            ("general", "guard", "chariot", "cannon", "horse", "elephant", "soldier"),
            strict=True,
        )
    ),
}
_RADIUS = {"K": 28.5, "R": 25, "C": 25, "N": 25, "B": 25, "A": 20.5, "P": 20.5}
_STYLE = re.compile(r' style="([^"]*)"')


def symbol_id(game: str, letter: str, script: Script = "hanja") -> str:
    """The id of a piece's drawing; `letter` as in FEN, upper case for the first mover."""
    return f"c-{letter}" if game == "chess" else f"j-{script}-{letter}"


@cache
def symbols(game: str, script: Script | None = None) -> str:
    """Every piece of a game (janggi: in one script, or in all three), to go into a `<defs>`.

    Each is a group around (0, 0) that fills a cell of `CELL` units.
    """
    if game == "chess":
        return "".join(_chess_piece(letter) for letter in "KQRBNPkqrbnp")
    scripts = SCRIPTS if script is None else (script,)
    return "".join(_janggi_piece(letter, name) for name in scripts for letter in GLYPHS[name])


def octagon(radius: float) -> str:
    """Points of a regular octagon around (0, 0) standing on an edge, for `<polygon points>`."""
    corners = (math.pi / 8 + k * math.pi / 4 for k in range(8))
    return " ".join(f"{radius * math.cos(a):.1f},{radius * math.sin(a):.1f}" for a in corners)


def _chess_piece(letter: str) -> str:
    body = _STYLE.sub(lambda match: _as_attributes(match[1]), chess.svg.PIECES[letter])
    body = re.sub(r' (id|class)="[^"]*"', "", body)
    half, scale = CELL / 2, CELL / 45  # the library draws in a square of 45
    place = f"translate(-{half:g} -{half:g}) scale({scale:.4f})"
    return f'<g id="{symbol_id("chess", letter)}"><g transform="{place}">{body}</g></g>'


def _as_attributes(style: str) -> str:
    pairs = (part.split(":", 1) for part in style.split(";") if ":" in part)
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)


def _janggi_piece(letter: str, script: Script) -> str:
    radius = _RADIUS[letter.upper()]
    side = "cho" if letter.isupper() else "han"
    rim = "" if side == "cho" else f'<polygon class="rim" points="{octagon(radius - 3.5)}"/>'
    size = radius * (1.16 if script == "latin" else 1.2)
    text = (
        f'<text class="glyph {script}" y="{size * 0.36:.1f}" font-size="{size:.1f}"'
        f' text-anchor="middle">{GLYPHS[script][letter]}</text>'
    )
    body = f'<polygon class="body" points="{octagon(radius)}"/>'
    return f'<g id="{symbol_id("janggi", letter, script)}" class="{side}">{body}{rim}{text}</g>'
