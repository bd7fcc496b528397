"""Who met whom and how it went: crosstable, head to head and schedule, counted from the games.

Figures with intervals come from `arena.report`; nothing here is estimated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, func, or_, select

from arena.store.models import GameRow, SlotRow

from . import data
from .rows import PlayerInfo, RunInfo

SCHEDULE_PAGE = 200


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
    """Every meeting of one game under one rule set; `order` is by score, best first."""

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


def crosstables(db: Connection, run_id: int) -> tuple[Crosstable, ...]:
    """One table a game and rule set: rated games with a result."""
    rows = db.execute(
        select(
            GameRow.game,
            GameRow.rules,
            GameRow.first,
            GameRow.second,
            GameRow.result,
            func.count().label("number"),
        )
        .where(
            GameRow.run_id == run_id,
            GameRow.status == "finished",
            GameRow.rated,
            GameRow.result != "*",
        )
        .group_by(GameRow.game, GameRow.rules, GameRow.first, GameRow.second, GameRow.result)
    )
    tally: dict[tuple[str, str], dict[tuple[str, str], list[int]]] = {}
    for game, rules, first, second, result, number in rows:
        cells = tally.setdefault((game, rules), {})
        outcome = {"1-0": 0, "1/2-1/2": 1, "0-1": 2}[result]
        cells.setdefault((first, second), [0, 0, 0])[outcome] += number
        cells.setdefault((second, first), [0, 0, 0])[2 - outcome] += number
    return tuple(_crosstable(game, rules, cells) for (game, rules), cells in tally.items())


def _crosstable(game: str, rules: str, cells: dict[tuple[str, str], list[int]]) -> Crosstable:
    meetings = tuple(Meeting(a, b, *counts) for (a, b), counts in sorted(cells.items()))
    table = Crosstable(game, rules, tuple(dict.fromkeys(one.player for one in meetings)), meetings)

    def rank(player: str) -> tuple[float, str]:
        total = table.total(player)
        return (-total.score / total.games, player)

    return Crosstable(game, rules, tuple(sorted(table.order, key=rank)), meetings)


def rivals(db: Connection, who: PlayerInfo) -> tuple[tuple[Crosstable, Sequence[Meeting]], ...]:
    """One player's meetings by game and rules."""
    tables = crosstables(db, who.run_id)
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
