"""One transaction of the writer: rows wait in memory and go out in one statement a table."""

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, Connection, Insert, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite

from .errors import StoreError
from .locks import RunLocks
from .models import (
    AttemptRow,
    Base,
    EventRow,
    GameRow,
    MoveRow,
    PromptRow,
    Run,
    TelemetryRow,
    table_of,
)

Row = dict[str, Any]
# Built once: to build a statement costs more than to run it.
_INSERT: dict[type[Base], Insert] = {
    model: insert(table_of(model)) for model in (MoveRow, AttemptRow, TelemetryRow, EventRow)
}
_PROMPTS = {
    "sqlite": sqlite.insert(table_of(PromptRow)).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(table_of(PromptRow)).on_conflict_do_nothing(),
}
_SET_PLIES = (
    update(table_of(GameRow))
    .where(GameRow.id == bindparam("b_game"))
    .values(plies=bindparam("b_plies"))
)
_COUNT_EVENTS = (
    update(table_of(Run))
    .where(Run.id == bindparam("b_run"))
    .values(last_seq=Run.last_seq + bindparam("b_count", type_=BigInteger))
    .returning(Run.last_seq)
)


class Transaction:
    """What a job may do. All of it becomes visible at once, or none.

    Events get the next numbers of their run when the transaction ends, in the order they were
    added; the row of the run is locked meanwhile, so numbers have no gaps and rise with commits.
    """

    def __init__(self, connection: Connection, locks: RunLocks) -> None:
        self.connection = connection
        self._locks = locks
        self._rows: dict[type[Base], list[Row]] = defaultdict(list)
        self._prompts: dict[str, str] = {}
        self._plies: dict[int, int] = {}
        self._events: dict[int, list[Row]] = defaultdict(list)

    def claim(self, run_id: int) -> None:
        self._locks.claim(self.connection, run_id)

    def add(self, model: type[Base], row: Row) -> None:
        self._rows[model].append(row)

    def add_prompt(self, key: str, text: str) -> None:
        self._prompts[key] = text

    def set_plies(self, game_id: int, plies: int) -> None:
        self._plies[game_id] = plies

    def add_event(
        self, run_id: int, kind: str, payload: Mapping[str, object], game_id: int | None = None
    ) -> None:
        row = {"at": time.time(), "kind": kind, "game_id": game_id, "payload": dict(payload)}
        self._events[run_id].append(row)

    def flush(self) -> None:
        """Send everything that waits. The writer calls it at the end."""
        self.flush_moves()
        for run_id in sorted(self._events):  # one order, so that no two writers wait in a ring
            self._flush_events(run_id, self._events[run_id])

    def flush_moves(self) -> None:
        """Send the rows that wait, so that this transaction can read them."""
        self._flush_prompts()
        for model, rows in self._rows.items():
            self.connection.execute(_INSERT[model], rows)
        self._rows.clear()
        if self._plies:
            rows = [{"b_game": game, "b_plies": count} for game, count in self._plies.items()]
            self.connection.execute(_SET_PLIES, rows)
            self._plies.clear()

    def _flush_prompts(self) -> None:
        if not self._prompts:
            return
        rows = [{"hash": key, "text": text} for key, text in sorted(self._prompts.items())]
        self.connection.execute(_PROMPTS[self.connection.dialect.name], rows)
        self._prompts.clear()

    def _flush_events(self, run_id: int, events: list[Row]) -> None:
        words = {"b_run": run_id, "b_count": len(events)}
        last = self.connection.execute(_COUNT_EVENTS, words).scalar()
        if last is None:
            raise StoreError(f"there is no run {run_id}")
        for seq, event in enumerate(events, start=last - len(events) + 1):
            event |= {"run_id": run_id, "seq": seq}
        self.connection.execute(_INSERT[EventRow], events)


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
