"""The pages: HTML that reads without JavaScript. Each has a JSON twin under `/api`."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from arena.report.export import transcript
from arena.store import queries
from games.janggi.gib import write_gib
from games.pgn import write_pgn
from games.registry import GAMES
from games.transcript import Transcript

from . import boards, data, render, stats, tables
from .params import Filters, GameId, Ply, RunId, ScriptName, opened
from .rows import GameView, MoveInfo

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

ANSWER_SHOWN = 4_000  # characters of an answer inside the page; the whole is one click away
SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@router.get("/")
def home(request: Request) -> Response:
    """The newest run's wall; the list of runs where there is none yet."""
    with opened(request) as db:
        found = data.runs(db)
    return RedirectResponse(f"/runs/{found[0].id}" if found else "/runs", 307)


@router.get("/runs")
def run_list(request: Request) -> str:
    with opened(request) as db:
        return render.page("runs.html", runs=data.runs(db))


@router.get("/runs/{run_id}")
def wall(request: Request, run_id: RunId, script: ScriptName = "hanja") -> str:
    with opened(request) as db:
        view = data.wall(db, run_id)
    starts = [(name, GAMES[name].start().fen()) for name in view.run.games]
    return render.page(
        "wall.html", run=view.run, wall=view, script=script, scene=boards.Scene, starts=starts
    )


@router.get("/runs/{run_id}/standings")
def standings(request: Request, run_id: RunId) -> str:
    with opened(request) as db:
        run = data.run(db, run_id)
        ids = {who.name: who.id for who in data.players(db, run_id)}
    view = request.app.state.tournaments.get(run)
    return render.page("standings.html", run=run, tables=view.tables, ids=ids)


@router.get("/runs/{run_id}/schedule")
def schedule(
    request: Request, run_id: RunId, page: Annotated[int, Query(ge=1, le=100_000)] = 1
) -> str:
    with opened(request) as db:
        view = tables.schedule(db, run_id, page=page)
        return render.page("schedule.html", run=data.run(db, run_id), view=view)


@router.get("/runs/{run_id}/games")
def library(request: Request, run_id: RunId, filters: Annotated[Filters, Query()]) -> str:
    with opened(request) as db:
        run = data.run(db, run_id)
        view = data.library(db, run_id=run_id, **filters.chosen())
        names = [player.name for player in data.players(db, run_id)]
    return render.page("library.html", run=run, view=view, filters=filters, names=names)


@router.get("/runs/{run_id}/latency")
def latency(request: Request, run_id: RunId) -> str:
    with opened(request) as db:
        view = stats.latency(db, run_id)
    groups: dict[tuple[str, str], list[Any]] = {}
    for series in view.series:
        groups.setdefault((series.name, series.unit), []).append(series)
    models = list(dict.fromkeys(series.model for series in view.series))
    return render.page("latency.html", run=view.run, view=view, groups=groups, models=models)


@router.get("/runs/{run_id}/failures")
def failures(
    request: Request,
    run_id: RunId,
    player: Annotated[str | None, Query(max_length=300)] = None,
    kind: Annotated[str | None, Query(max_length=20)] = None,
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> str:
    player, kind = player or None, kind or None
    with opened(request) as db:
        run = data.run(db, run_id)
        view = stats.failures(db, run_id, player=player, kind=kind, page=page)
    chosen = {"player": player, "kind": kind}
    return render.page(
        "failures.html", run=run, view=view, chosen=chosen, kinds=data.FAILED, scene=_failure_scene
    )


@router.get("/players/{player_id}")
def player(request: Request, player_id: GameId) -> str:
    with opened(request) as db:
        who = data.player(db, player_id)
        run = data.run(db, who.run_id)
        games = data.library(db, run_id=who.run_id, player=who.name, size=30)
        times = [one for one in stats.latency(db, who.run_id).players if one.player == who.name]
        rivals = tables.rivals(request.app.state.store, who)
    return render.page("player.html", run=run, player=who, games=games, times=times, rivals=rivals)


@router.get("/games/{game_id}")
def game(
    request: Request,
    game_id: GameId,
    ply: Annotated[int | None, Query(ge=0, le=100_000)] = None,
    flip: bool = False,
    script: ScriptName = "hanja",
) -> str:
    with opened(request) as db:
        view = data.game_view(db, game_id)
        run = data.run(db, view.game.run_id)
        shown = ply_shown(view, ply)
        tried = data.attempts(db, game_id, shown.ply) if shown else ()
        ids = {who.name: who.id for who in data.players(db, run.id)}
    return render.page(
        "game.html",
        run=run,
        view=view,
        game=view.game,
        shown=shown,
        attempts=tried,
        answer_shown=ANSWER_SHOWN,
        scene=render.scene_of(view.game, shown),
        start=boards.balance(view.game.game, view.game.start_fen, view.game.start_fen),
        flip=flip,
        script=script,
        ids=ids,
        following=ply is None,
    )


@router.get("/games/{game_id}/plies/{ply}")
def ply_panel(
    request: Request,
    game_id: GameId,
    ply: Annotated[int, Path(ge=0, le=100_000)],
    script: ScriptName = "hanja",
) -> str:
    """What is known of one decision, as the fragment that the game page shows."""
    with opened(request) as db:
        view = data.game_view(db, game_id)
        shown = ply_shown(view, ply)
        if ply != (shown.ply if shown else 0):
            raise data.NotFound(f"game {game_id} has no ply {ply}")
        tried = data.attempts(db, game_id, ply)
    return render.page(
        "ply.html",
        game=view.game,
        shown=shown,
        attempts=tried,
        answer_shown=ANSWER_SHOWN,
        script=script,
    )


@router.get("/games/{game_id}/plies/{ply}/attempts/{number}/{part}")
def raw_text(
    request: Request,
    game_id: GameId,
    ply: Ply,
    number: Annotated[int, Path(ge=1, le=10_000)],
    part: str,
) -> Response:
    """`prompt`, `answer` or `thinking` of one attempt, as plain text and whole."""
    with opened(request) as db:
        if part == "prompt":
            return PlainTextResponse(data.prompt_text(db, game_id, ply, number))
        found = [one for one in data.attempts(db, game_id, ply) if one.number == number]
        if not found or part not in ("answer", "thinking"):
            raise data.NotFound(f"ply {ply} of game {game_id} has no {part[:40]} {number}")
        return PlainTextResponse(found[0].answer if part == "answer" else found[0].thinking)


@router.get("/games/{game_id}/board.svg")
def drawing(
    request: Request,
    game_id: GameId,
    ply: Annotated[int | None, Query(ge=0, le=100_000)] = None,
    flip: bool = False,
    script: ScriptName = "hanja",
) -> Response:
    """One position as a drawing that stands alone."""
    with opened(request) as db:
        view = data.game_view(db, game_id)
    kind = view.game.game
    scene = render.scene_of(view.game, ply_shown(view, ply))
    svg = boards.render(kind, scene, flip=flip, script=script, standalone=True)
    styled = svg.replace("<defs>", f"<style>{render.static_text('board.css')}</style><defs>", 1)
    return Response(
        styled, media_type="image/svg+xml", headers={"Content-Security-Policy": SVG_POLICY}
    )


def ply_shown(view: GameView, ply: int | None) -> MoveInfo | None:
    """The ply asked for, the last one for None or beyond the end, None for the start."""
    if not view.moves or ply == 0:
        return None
    wanted = len(view.moves) if ply is None else min(ply, len(view.moves))
    return view.moves[wanted - 1]


def _failure_scene(failure: Any) -> boards.Scene:
    arrows = (boards.Arrow(failure.uci, "refused"),) if failure.uci else ()
    check = data.check_square(failure.game, failure.rules, failure.fen)
    return boards.Scene(failure.fen, None, check, arrows)


@router.get("/games/{game_id}/pgn")
def pgn(request: Request, game_id: GameId) -> Response:
    """The game for other programs."""
    text = write_pgn((_transcript(request, game_id),))
    return _download(text, "application/x-chess-pgn", f"game-{game_id}.pgn")


@router.get("/games/{game_id}/gib")
def gib(request: Request, game_id: GameId) -> Response:
    """A janggi game for Korean programs (CP949)."""
    found = _transcript(request, game_id)
    if found.game != "janggi":
        raise data.NotFound(f"game {game_id} is {found.game}: only janggi is written as GIB")
    return _download(write_gib((found,)), "application/octet-stream", f"game-{game_id}.gib")


def _transcript(request: Request, game_id: int) -> Transcript:
    with opened(request) as db:
        run = data.run(db, data.game(db, game_id).run_id)
    return transcript(queries.game(request.app.state.store, game_id), run.name)


def _download(content: str | bytes, media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)
