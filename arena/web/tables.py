"""Who met whom and how it went: crosstable, head to head and schedule, counted from the games.

Figures with intervals come from `arena.report`; nothing here is estimated.
"""

import threading
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, or_, select

from arena.report.pools import Pool, pools
from arena.report.standings import standings
from arena.store import Store
from arena.store.models import GameRow, SlotRow

from . import data
from .rows import PlayerInfo, RunInfo

SCHEDULE_PAGE = 200
MAX_KEPT = 50  # runs


@dataclass(frozen=True, slots=True)
class Meeting:
    """One player's games against another, from the first one's point of view."""

    player: str
    rival: str
    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        return self.wins + self.draws / 2


@dataclass(frozen=True, slots=True)
class Crosstable:
    """Every meeting of one pool of games; `order` is by score, best first."""

    game: str
    rules: str
    order: tuple[str, ...]
    meetings: tuple[Meeting, ...]

    def cell(self, player: str, rival: str) -> Meeting | None:
        """What `player` did against `rival`; None where they never met."""
        wanted = (player, rival)
        return next((one for one in self.meetings if (one.player, one.rival) == wanted), None)

    def total(self, player: str) -> Meeting:
        """A player's games against everybody."""
        mine = [one for one in self.meetings if one.player == player]
        return Meeting(
            player,
            "",
            sum(one.wins for one in mine),
            sum(one.draws for one in mine),
            sum(one.losses for one in mine),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """One pool: `figures` is one table of `arena.report.standings`, with its intervals."""

    figures: dict[str, Any]
    cross: Crosstable


@dataclass(frozen=True, slots=True)
class Tournament:
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class SlotInfo:
    """One planned game and what became of it (None: not started)."""

    id: int
    game: str
    rules: str
    first: str
    second: str
    pair: int
    round: int
    game_id: int | None
    status: str | None
    result: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Schedule:
    run: RunInfo
    slots: tuple[SlotInfo, ...]
    total: int
    page: int
    size: int

    @property
    def num_pages(self) -> int:
        return max(1, -(-self.total // self.size))


def tournament(store: Store, run_id: int) -> Tournament:
    """Standings and crosstables of a run, one a pool of games that may be counted together."""
    found = standings(store, run_id)["games"]
    pooled = pools(store, [run_id])
    tables = (Table(figures, crosstable(pool)) for figures, pool in zip(found, pooled, strict=True))
    return Tournament(tuple(tables))


def crosstable(pool: Pool) -> Crosstable:
    """Every meeting of one pool: rated games with a result."""
    cells: dict[tuple[str, str], list[int]] = {}
    for game in pool.games:
        outcome = {"1-0": 0, "1/2-1/2": 1, "0-1": 2}[game.result]
        cells.setdefault((game.first, game.second), [0, 0, 0])[outcome] += 1
        cells.setdefault((game.second, game.first), [0, 0, 0])[2 - outcome] += 1
    return _crosstable(pool.key.game, pool.key.rules, cells)


def _crosstable(game: str, rules: str, cells: dict[tuple[str, str], list[int]]) -> Crosstable:
    meetings = tuple(Meeting(a, b, *counts) for (a, b), counts in sorted(cells.items()))
    table = Crosstable(game, rules, tuple(dict.fromkeys(one.player for one in meetings)), meetings)

    def rank(player: str) -> tuple[float, str]:
        total = table.total(player)
        return (-total.score / total.games, player)

    return Crosstable(game, rules, tuple(sorted(table.order, key=rank)), meetings)


def rivals(store: Store, who: PlayerInfo) -> tuple[tuple[Crosstable, list[Meeting]], ...]:
    """One player's meetings, by pool."""
    tables = [crosstable(pool) for pool in pools(store, [who.run_id])]
    found = [(table, [m for m in table.meetings if m.player == who.name]) for table in tables]
    return tuple((table, mine) for table, mine in found if mine)


def schedule(db: Connection, run_id: int, *, page: int = 1, size: int = SCHEDULE_PAGE) -> Schedule:
    """The slots of a run in order, each with its newest game."""
    info = data.run(db, run_id)
    live = or_(GameRow.status != "superseded", GameRow.status.is_(None))
    joined = and_(GameRow.run_id == SlotRow.run_id, GameRow.slot_id == SlotRow.id, live)
    rows: Any = db.execute(
        select(
            SlotRow.id,
            SlotRow.game,
            SlotRow.rules,
            SlotRow.first,
            SlotRow.second,
            SlotRow.pair,
            SlotRow.round,
            GameRow.id.label("game_id"),
            GameRow.status,
            GameRow.result,
            GameRow.detail,
        )
        .outerjoin(GameRow, joined)
        .where(SlotRow.run_id == run_id)
        .order_by(SlotRow.round, SlotRow.id, GameRow.attempt)
        .offset((page - 1) * size)
        .limit(size)
    )
    slots = tuple(SlotInfo(**row._mapping) for row in rows)
    return Schedule(info, slots, info.num_slots, page, size)


class Cache:
    """The newest `tournament` of every run that was asked for: its intervals cost seconds.

    Computed anew once a game more is finished, by one thread at a time; whoever comes meanwhile
    waits for that one.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: dict[int, tuple[int, Tournament]] = {}

    def get(self, info: RunInfo) -> Tournament:
        with self._lock:
            kept = self._kept.get(info.id)
            if kept is None or kept[0] != info.num_finished:
                if len(self._kept) >= MAX_KEPT:
                    self._kept.pop(next(iter(self._kept)))
                kept = self._kept[info.id] = (info.num_finished, tournament(self._store, info.id))
        return kept[1]
