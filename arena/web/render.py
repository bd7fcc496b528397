"""Templates: Jinja with everything escaped, and the few filters that the pages share."""

import json
import time
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from . import boards, plots
from .boards import Arrow, Scene
from .pieces import CELL, SCRIPTS, Script, symbol_id
from .rows import AttemptInfo, GameInfo, MoveInfo, Series

LOW_MASS = 0.5  # under this the answer was hardly the model's own choice among legal moves
MAX_BELIEFS = 5  # arrows of one move


@cache
def environment() -> Environment:
    """The templates of this package; a missing name is an error."""
    env = Environment(
        loader=PackageLoader("arena.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "seconds": seconds,
        "percent": percent,
        "share": share,
        "when": when,
        "cached": cached_share,
        "score": score_text,
        "pieces": taken_pieces,
        "spelt": spelt,
        "rating": rating,
        "points": lambda value: f"{value:g}",
        "marked": marked,
        "some": lambda chosen: {name: value for name, value in chosen.items() if value},
        "as_json": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
    }
    env.globals |= {
        "board": board,
        "plot": plot,
        "symbol_defs": lambda *games: Markup(boards.symbol_defs(*games)),
        "number": move_number,
        "sides": lambda game: ("White", "Black") if game == "chess" else ("Cho", "Han"),
        "scripts": SCRIPTS,
        "low_mass": LOW_MASS,
        "shared": False,
    }
    return env


def page(name: str, **context: Any) -> str:
    """One template as HTML."""
    return environment().get_template(name).render(**context)


@cache
def static_text(name: str) -> str:
    """One of our own static files."""
    return files("arena.web").joinpath("static", name).read_text()


def scene_of(info: GameInfo, move: MoveInfo | None) -> Scene:
    """What the board shows once a ply is played, with what its mover refused and considered."""
    if move is None:
        return Scene(info.start_fen)
    refused = [Arrow(item.uci, "refused") for item in move.refused if item.uci]
    beliefs = [Arrow(uci, "belief", share) for uci, share in move.top[:MAX_BELIEFS]]
    return Scene(move.fen, move.uci or None, move.check, (*refused, *beliefs))


def board(
    game: str,
    scene: Scene,
    flip: bool = False,
    script: Script = "hanja",
    coords: bool = True,
) -> Markup:
    """A board as markup; it holds squares, known letters and checked moves only."""
    return Markup(boards.render(game, scene, flip=flip, script=script, coords=coords))


def plot(series: list[Series]) -> Markup:
    return Markup(plots.line_plot(series))


def taken_pieces(letters: str, game: str) -> Markup:
    """Captured pieces as small drawings."""
    half = CELL / 2
    box = f'viewBox="-{half:g} -{half:g} {CELL} {CELL}"'
    return Markup("").join(
        Markup(f'<svg class="piece" {box}><use href="#{symbol_id(game, letter)}"></use></svg>')
        for letter in letters
    )


def marked(attempt: AttemptInfo, limit: int) -> Markup:
    """The first `limit` characters of an answer, with what was read as the move marked."""
    text = attempt.answer[:limit]
    start, end = attempt.span_start, attempt.span_end
    if start is None or end is None or not 0 <= start < end <= len(text):
        return escape(text)
    read = Markup("<mark>{}</mark>").format(text[start:end])
    return escape(text[:start]) + read + escape(text[end:])


def spelt(move: Any, script: Script) -> str:
    """A move in UCI (`pass` for a pass) for readers of Latin pieces, else as it is recorded."""
    uci: str = move.uci if hasattr(move, "uci") else move.last
    if script != "latin" or not uci:
        return str(move.san)
    ends = boards.squares_of(uci)
    return "pass" if ends is not None and ends[0] == ends[1] else uci


def move_number(start_fen: str, ply: int) -> str:
    """`12.` or `12…` for a ply, whoever began."""
    begins = 1 if start_fen.split(" ")[1:2] == ["b"] else 0
    turn = ply - 1 + begins
    return f"{turn // 2 + 1}{'…' if turn % 2 else '.'}"


def seconds(value: float | None) -> str:
    """Three figures: `0.034`, `1.20`, `12.3`, `123`; a dash where nothing was measured."""
    if value is None:
        return "–"
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def percent(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f}\u00a0%"


def share(value: float) -> str:
    """A probability that may be tiny: `25.7 %`, `0.031 %`, `1.2e-05 %`."""
    shown = f"{100 * value:.1f}" if value >= 0.001 or value == 0 else f"{100 * value:.2g}"
    return f"{shown}\u00a0%"


def cached_share(move: Any) -> str:
    """How much of a prompt came from the prefix cache."""
    return percent(move.cached_tokens / move.prompt_tokens) if move.prompt_tokens else "–"


def rating(value: float | None) -> str:
    """A rating, or a bound of its interval, with its sign."""
    return "–" if value is None else f"{value:+.0f}".replace("-", "−")


def when(at: float | None) -> str:
    """A time of day in UTC."""
    return "–" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def score_text(centipawns: int) -> str:
    return f"{centipawns / 100:+.2f}"
