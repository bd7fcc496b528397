"""Runs of several databases in one: rows copied under new numbers, each run whole or not at all.

A run that is there already is left alone, so merging twice adds nothing. Sources are only read.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, insert, select

from arena.records import Status

from . import queries
from .errors import StoreError
from .models import (
    AttemptRow,
    Base,
    EventRow,
    GameRow,
    MoveRow,
    Player,
    PromptRow,
    Run,
    SlotRow,
    TelemetryRow,
    table_of,
)
from .queries import RunInfo
from .store import Store
from .transaction import Transaction

ROWS = 2000  # held at a time
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """One run of a source; `run_id` is its number in the target. Not `added`: it was there."""

    source: str
    source_run: int
    run_id: int
    added: bool


def merge(sources: Sequence[Store], target: Store) -> list[Merged]:
    """Copy every run of the sources. Raises StoreError for a run that is not over yet."""
    for source in sources:
        if source.path and target.path and source.path.resolve() == target.path.resolve():
            raise StoreError(f"{source.label} is the target itself: name another one")
        for info in queries.runs(source):
            if info.status == Status.RUNNING:
                raise StoreError(
                    f"run {info.id} of {source.label} is not over: finish it with "
                    f"`arena resume {info.id} --db {source.label}`, or stop it"
                )
    return [_merge_run(source, info, target) for source in sources for info in queries.runs(source)]


def _merge_run(source: Store, info: RunInfo, target: Store) -> Merged:
    for known in queries.runs(target):
        if (known.created, known.name, known.seed) == (info.created, info.name, info.seed):
            return Merged(source.label, info.id, known.id, added=False)

    def job(tx: Transaction) -> int:
        with queries.reading(source) as connection:
            return _Copy(connection, tx, info.id).run()

    return Merged(source.label, info.id, asyncio.run(target.writer.submit(job)), added=True)


class _Copy:
    """One run from one connection to another, within one transaction."""

    def __init__(self, source: Connection, tx: Transaction, run_id: int) -> None:
        self._source, self._target, self._tx = source, tx.connection, tx
        self._old = run_id
        self._new = 0
        self._games: dict[int, int] = {}

    def run(self) -> int:
        """The run's new number."""
        (row,) = self._rows(select(Run.__table__).where(Run.id == self._old))
        del row["id"]
        self._new = self._added(Run, row)
        self._tx.claim(self._new)
        self._copy(Player, Player.run_id == self._old, self._renumbered)
        self._copy(SlotRow, SlotRow.run_id == self._old, self._own)
        ours = select(GameRow.__table__).where(GameRow.run_id == self._old).order_by(GameRow.id)
        for row in self._rows(ours):
            old = row.pop("id")
            self._games[old] = self._added(GameRow, row | {"run_id": self._new})
        self._prompts()
        games = select(GameRow.id).where(GameRow.run_id == self._old)
        self._copy(MoveRow, MoveRow.game_id.in_(games), self._of_game)
        self._copy(AttemptRow, AttemptRow.game_id.in_(games), self._of_game)
        self._copy(TelemetryRow, TelemetryRow.run_id == self._old, self._renumbered)
        self._copy(EventRow, EventRow.run_id == self._old, self._event)
        return self._new

    def _rows(self, wanted: Select[Any]) -> Iterator[Row]:
        found = self._source.execution_options(yield_per=ROWS).execute(wanted)
        for row in found.mappings():
            yield dict(row)

    def _added(self, model: type[Run] | type[GameRow], row: Row) -> int:
        adding = insert(table_of(model)).values(row).returning(model.id)
        return int(self._target.execute(adding).scalar_one())

    def _copy(self, model: type[Base], condition: Any, change: Callable[[Row], Row]) -> None:
        table = table_of(model)
        waiting: list[Row] = []
        for row in self._rows(select(table).where(condition)):
            waiting.append(change(row))
            if len(waiting) == ROWS:
                self._target.execute(insert(table), waiting)
                waiting = []
        if waiting:
            self._target.execute(insert(table), waiting)

    def _prompts(self) -> None:
        """Texts are kept once, under their hash, however many runs sent them."""
        sent = select(AttemptRow.prompt).join(GameRow, GameRow.id == AttemptRow.game_id)
        sent = sent.where(GameRow.run_id == self._old)
        for row in self._rows(select(PromptRow.__table__).where(PromptRow.hash.in_(sent))):
            self._tx.add_prompt(row["hash"], row["text"])
        self._tx.flush_moves()

    def _own(self, row: Row) -> Row:
        return row | {"run_id": self._new}

    def _renumbered(self, row: Row) -> Row:
        """Without its own number, which the target gives anew."""
        return {key: value for key, value in self._own(row).items() if key != "id"}

    def _of_game(self, row: Row) -> Row:
        return row | {"game_id": self._games[row["game_id"]]}

    def _event(self, row: Row) -> Row:
        game = row["game_id"]
        return row | {"run_id": self._new, "game_id": None if game is None else self._games[game]}
