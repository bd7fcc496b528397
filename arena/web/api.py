"""The JSON twin of every page (OpenAPI at `/api/openapi.json`), and the live streams."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from . import data, stats, tables
from .params import MAX_ID, Filters, GameId, Ply, RunId, opened
from .rows import (
    AttemptInfo,
    FailurePage,
    GamePage,
    GameView,
    LatencyView,
    PlayerInfo,
    RunInfo,
    Wall,
)

router = APIRouter(prefix="/api", tags=["record"])

After = Annotated[int, Query(ge=0, le=MAX_ID, description="the last event that you have")]
Page = Annotated[int, Query(ge=1, le=100_000)]
_MISSING: dict[int | str, dict[str, Any]] = {404: {"description": "there is no such thing"}}
_STREAM: dict[int | str, dict[str, Any]] = {
    **_MISSING,
    200: {"content": {"text/event-stream": {}}, "description": "server-sent events"},
    503: {"description": "every stream is in use"},
}


@router.get("/runs")
def runs(request: Request) -> list[RunInfo]:
    """Every run, newest first."""
    with opened(request) as db:
        return list(data.runs(db))


@router.get("/runs/{run_id}", responses=_MISSING)
def wall(request: Request, run_id: RunId) -> Wall:
    """A run and the boards of its wall: what is played now, then what ended last."""
    with opened(request) as db:
        return data.wall(db, run_id)


@router.get("/runs/{run_id}/standings", responses=_MISSING)
def standings(request: Request, run_id: RunId) -> tables.Tournament:
    """Standings with their intervals, and who met whom, by pool of games."""
    with opened(request) as db:
        info = data.run(db, run_id)
    found: tables.Tournament = request.app.state.tournaments.get(info)
    return found


@router.get("/runs/{run_id}/schedule", responses=_MISSING)
def schedule(request: Request, run_id: RunId, page: Page = 1) -> tables.Schedule:
    """The planned games, each with what became of it."""
    with opened(request) as db:
        return tables.schedule(db, run_id, page=page)


@router.get("/runs/{run_id}/games", responses=_MISSING)
def library(request: Request, run_id: RunId, filters: Annotated[Filters, Query()]) -> GamePage:
    """Games by filter, newest first."""
    with opened(request) as db:
        data.run(db, run_id)
        return data.library(db, run_id=run_id, **filters.chosen())


@router.get("/runs/{run_id}/players", responses=_MISSING)
def players(request: Request, run_id: RunId) -> list[PlayerInfo]:
    """Everybody in a run."""
    with opened(request) as db:
        data.run(db, run_id)
        return list(data.players(db, run_id))


@router.get("/runs/{run_id}/latency", responses=_MISSING)
def latency(request: Request, run_id: RunId) -> LatencyView:
    """Percentiles of every player and the engine over time."""
    with opened(request) as db:
        return stats.latency(db, run_id)


@router.get("/runs/{run_id}/failures", responses=_MISSING)
def failures(
    request: Request,
    run_id: RunId,
    player: Annotated[str | None, Query(max_length=300)] = None,
    kind: Annotated[str | None, Query(max_length=20)] = None,
    page: Page = 1,
) -> FailurePage:
    """Answers that were no legal move."""
    with opened(request) as db:
        data.run(db, run_id)
        return stats.failures(db, run_id, player=player or None, kind=kind or None, page=page)


@router.get("/players/{player_id}", responses=_MISSING)
def player(request: Request, player_id: GameId) -> PlayerInfo:
    """One player of one run."""
    with opened(request) as db:
        return data.player(db, player_id)


@router.get("/games/{game_id}", responses=_MISSING)
def game(request: Request, game_id: GameId) -> GameView:
    """One game with every ply."""
    with opened(request) as db:
        return data.game_view(db, game_id)


@router.get("/games/{game_id}/plies/{ply}/attempts", responses=_MISSING)
def attempts(request: Request, game_id: GameId, ply: Ply) -> list[AttemptInfo]:
    """Every request made for one ply, with its raw answer."""
    with opened(request) as db:
        data.game(db, game_id)
        return list(data.attempts(db, game_id, ply))


@router.get("/runs/{run_id}/events", responses=_STREAM, response_class=StreamingResponse)
async def run_events(
    request: Request,
    run_id: RunId,
    after: After = 0,
    game: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """What happens from now on in a run (or one game of it), and what happened since `after`.

    `Last-Event-ID`, which a browser sends when it reconnects, goes before `after`.
    """
    streams = request.app.state.streams
    streams.check_room()
    await asyncio.to_thread(_check_run, request, run_id)
    seen = last_event_id if last_event_id and last_event_id.isascii() else ""
    start = min(int(seen), MAX_ID) if seen.isdigit() and len(seen) < 20 else after
    return StreamingResponse(
        streams.frames(run_id, game, start),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _check_run(request: Request, run_id: int) -> None:
    with opened(request) as db:
        data.run(db, run_id)
