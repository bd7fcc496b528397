"""Pages that need no server: one file a game, or a folder of them with the standings.

Styles, scripts, drawings and data lie in the page itself. Its policy lets exactly these run (by
hash), so hostile text in a game stays text wherever the file is put.
"""

import base64
import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup
from sqlalchemy import Connection

from . import boards, data, render, tables
from .rows import GameInfo, RunInfo

WHOLE = 10**9  # characters of an answer that are shown: all of them


@dataclass(frozen=True, slots=True)
class Parts:
    """What a page without a server carries inside."""

    policy: str
    style: Markup
    script: Markup
    data: Markup
    home: str  # address of the overview


def game_page(db: Connection, game_id: int, record: dict[str, Any], home: str = "#") -> str:
    """One game as a file: boards, beliefs, thoughts, refused moves; `record` is kept in it.

    Raises NotFound.
    """
    view = data.game_view(db, game_id)
    info = view.game
    panels = [_panel(db, info, None)] + [_panel(db, info, move) for move in view.moves]
    embedded = asdict(view) | {"record": record}
    shown = view.moves[-1] if view.moves else None
    return render.page(
        "game.html",
        shared=True,
        parts=_parts(_embed(embedded) + Markup("").join(panels), home, with_script=True),
        run=data.run(db, info.run_id),
        view=view,
        game=info,
        shown=shown,
        attempts=data.attempts(db, game_id, shown.ply) if shown else (),
        answer_shown=WHOLE,
        scene=render.scene_of(info, shown),
        start=boards.balance(info.game, info.start_fen, info.start_fen),
        flip=False,
        script="hanja",
        ids={},
        following=True,
    )


def overview_page(run: RunInfo, tournament: tables.Tournament, games: tuple[GameInfo, ...]) -> str:
    """The standings of a run and links to `games/ID.html`."""
    return render.page(
        "published.html",
        shared=True,
        parts=_parts(Markup(""), "index.html", with_script=False),
        run=run,
        tables=tournament.tables,
        games=games,
        ids={},
    )


def embedded(page: str) -> dict[str, Any]:
    """The data that `game_page` put into a page. Raises ValueError for any other text."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    if found is None:
        raise ValueError("no game of `arena share` is in it")
    read = json.loads(found[1])
    if not isinstance(read, dict) or not isinstance(read.get("record"), dict):
        raise ValueError("its game is not one of `arena share`")
    return read


def _panel(db: Connection, info: GameInfo, move: Any) -> Markup:
    ply = move.ply if move else 0
    text = render.page(
        "ply.html",
        shared=True,
        game=info,
        shown=move,
        attempts=data.attempts(db, info.id, ply) if move else (),
        answer_shown=WHOLE,
        script="hanja",
    )
    return Markup('<template id="panel-{}">{}</template>\n').format(ply, Markup(text))


def _embed(value: dict[str, Any]) -> Markup:
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="data">{text}</script>\n')


def _parts(payload: Markup, home: str, *, with_script: bool) -> Parts:
    style = render.static_text("board.css") + render.static_text("site.css")
    script = "\n".join(_module(name) for name in ("board.js", "stepper.js", "share.js"))
    if "</script" in script or "</style" in style:
        raise AssertionError("a static file would end its own tag")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    return Parts(policy, Markup(style), Markup(script if with_script else ""), payload, home)


def _module(name: str) -> str:
    """A module's text without imports and exports: all of them share one script."""
    text = re.sub(r"^import .*?;\n", "", render.static_text(name), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
