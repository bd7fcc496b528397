"""Latency, the engine over time and failed answers, as rows for plots and tables."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection, and_, case, func, select

from arena.store.models import AttemptRow, GameRow, MoveRow, TelemetryRow

from .data import FAILED, run
from .rows import Failure, FailurePage, Latency, LatencyView, Series

MAX_POINTS = 400  # of one plot; more are thinned evenly
ANSWER_SHOWN = 2_000  # characters of a failed answer on the page of failures

Percentiles = tuple[float, float, float]


def percentiles(values: Iterable[float | None]) -> Percentiles | None:
    """Nearest-rank p50, p90 and p95 of what was measured; None where nothing was."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    p50, p90, p95 = (known[max(0, -(-len(known) * p // 100) - 1)] for p in (50, 90, 95))
    return p50, p90, p95


def latency(db: Connection, run_id: int) -> LatencyView:
    """Percentiles of every player and the engine's time series of a run."""
    info = run(db, run_id)
    columns = (
        MoveRow.player,
        GameRow.game,
        MoveRow.seconds,
        MoveRow.queue_s,
        MoveRow.ttft_s,
        MoveRow.decode_s,
        MoveRow.prompt_tokens,
        MoveRow.cached_tokens,
        MoveRow.completion_tokens,
    )
    rows = db.execute(
        select(*columns)
        .join(GameRow, GameRow.id == MoveRow.game_id)
        .where(GameRow.run_id == run_id, GameRow.status.in_(("running", "finished")))
        .order_by(GameRow.game, MoveRow.player)
    )
    grouped = groupby(rows, key=lambda row: (row.game, row.player))
    players = tuple(_latency(player, game, [*group]) for (game, player), group in grouped)
    return LatencyView(info, players, engine_series(db, run_id, info.created))


def _latency(player: str, game: str, rows: Sequence[Any]) -> Latency:
    return Latency(
        player=player,
        game=game,
        moves=len(rows),
        seconds=percentiles(row.seconds for row in rows),
        queue_s=percentiles(row.queue_s for row in rows),
        ttft_s=percentiles(row.ttft_s for row in rows),
        inter_token_s=percentiles(
            row.decode_s / (row.completion_tokens - 1)
            for row in rows
            if row.decode_s is not None and row.completion_tokens > 1
        ),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        cached_tokens=sum(row.cached_tokens for row in rows),
        completion_tokens=sum(row.completion_tokens for row in rows),
    )


def engine_series(db: Connection, run_id: int, origin: float) -> tuple[Series, ...]:
    """Queue depth, running, KV use, occupancy, tokens/s and hits over time, by model."""
    rows = db.execute(
        select(TelemetryRow.__table__)
        .where(TelemetryRow.run_id == run_id)
        .order_by(TelemetryRow.model, TelemetryRow.at)
    )
    found: list[Series] = []
    for model, group in groupby(rows, key=lambda row: str(row.model)):
        samples = list(group)
        for name, unit, gauge in _GAUGES:
            points = [(row.at - origin, gauge(row)) for row in samples]
            found.append(_series(name, unit, model, points))
        for name, unit, rate in _RATES:
            points = [
                (new.at - origin, value)
                for old, new in pairwise(samples)
                if (value := rate(old, new)) is not None
            ]
            found.append(_series(name, unit, model, points))
    return tuple(series for series in found if series.times)


def _series(name: str, unit: str, model: str, points: Sequence[tuple[float, float]]) -> Series:
    step = -(-len(points) // MAX_POINTS) or 1
    thinned = points[::step]
    times = tuple(round(at, 3) for at, _ in thinned)
    return Series(name, unit, model, times, tuple(value for _, value in thinned))


_GAUGES: tuple[tuple[str, str, Callable[[Any], float]], ...] = (
    ("requests waiting", "requests", lambda row: row.num_requests_waiting),
    ("requests running", "requests", lambda row: row.num_requests_running),
    ("KV cache in use", "%", lambda row: 100 * row.kv_cache_usage_perc),
)


def _per(over: str, of: str, scale: float = 1.0) -> Callable[[Any, Any], float | None]:
    """The growth of counter `over` for each unit of counter `of`; None while that stood still."""

    def rate(old: Any, new: Any) -> float | None:
        grown: float = getattr(new, of) - getattr(old, of)
        risen: float = getattr(new, over) - getattr(old, over)
        # a restarted engine counts from zero again: its first sample has no rate
        return scale * risen / grown if grown > 0 and risen >= 0 else None

    return rate


_RATES: tuple[tuple[str, str, Callable[[Any, Any], float | None]], ...] = (
    ("tokens completed", "tokens/s", _per("completion_tokens", "at")),
    ("prompt tokens", "tokens/s", _per("prompt_tokens", "at")),
    ("sequences in a step", "sequences", _per("sequences", "steps")),
    ("engine busy", "% of time", _per("busy_seconds", "at", 100)),
    ("prefix cache hits", "% of tokens", _per("prefix_cache_hits", "prefix_cache_queries", 100)),
    ("preemptions", "per second", _per("num_preemptions", "at")),
)


def failures(
    db: Connection,
    run_id: int,
    *,
    player: str | None = None,
    kind: str | None = None,
    page: int = 1,
    size: int = 25,
) -> FailurePage:
    """Answers that were no legal move, newest game first, with counts by player and kind."""
    before = and_(MoveRow.game_id == AttemptRow.game_id, MoveRow.ply == AttemptRow.ply - 1)
    base = [
        GameRow.run_id == run_id,
        AttemptRow.kind.in_(FAILED),
        GameRow.status != "superseded",
    ]
    wanted = list(base)
    if player is not None:
        wanted.append(AttemptRow.player == player)
    if kind is not None:
        wanted.append(AttemptRow.kind == kind)
    joined = select(
        AttemptRow.game_id,
        GameRow.game,
        GameRow.rules,
        AttemptRow.ply,
        AttemptRow.number,
        AttemptRow.player,
        AttemptRow.kind,
        func.substr(AttemptRow.answer, 1, ANSWER_SHOWN).label("answer"),
        func.length(AttemptRow.answer).label("length"),
        AttemptRow.uci,
        AttemptRow.detail,
        case((MoveRow.fen.is_not(None), MoveRow.fen), else_=GameRow.start_fen).label("fen"),
    ).join(GameRow, GameRow.id == AttemptRow.game_id)
    rows = db.execute(
        joined.outerjoin(MoveRow, before)
        .where(*wanted)
        .order_by(AttemptRow.game_id.desc(), AttemptRow.ply, AttemptRow.number)
        .offset((page - 1) * size)
        .limit(size)
    )
    tally = db.execute(
        select(AttemptRow.player, AttemptRow.kind, func.count())
        .join(GameRow, GameRow.id == AttemptRow.game_id)
        .where(*base)
        .group_by(AttemptRow.player, AttemptRow.kind)
        .order_by(AttemptRow.player)
    )
    counts: dict[str, dict[str, int]] = {}
    total = 0
    for who, what, number in tally:
        counts.setdefault(who, {})[what] = number
        if player in (None, who) and kind in (None, what):
            total += number
    return FailurePage(tuple(Failure(**r._mapping) for r in rows), counts, total, page, size)
