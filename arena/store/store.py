"""The record of every run: written by one thread, acknowledged after the commit, read by anyone.

What a method wrote is durable against a killed process once it returns (WAL with
`synchronous=NORMAL`: only a power loss may take the tail). Methods may be awaited from many tasks;
what waits at the same time shares a commit. Reading is in `arena.store.queries`.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

from sqlalchemy import Engine, insert, select, update

from agents.base import AgentInfo, Telemetry
from arena.records import GameRecord, MoveRecord, Slot, Status

from .database import open_database
from .errors import StoreError
from .game_rows import add_attempts, finish_game_row, start_game_row
from .locks import owner_name
from .models import GameRow, MoveRow, Player, Run, SlotRow, TelemetryRow
from .rows import (
    move_row,
    row_slot,
    slot_row,
    telemetry_row,
)
from .transaction import Transaction, canonical_json
from .writer import Writer


class Store:
    """One database. Use `open`, and `close` when done; a context manager does both."""

    def __init__(self, target: str | Path, *, create: bool = True) -> None:
        self._database = open_database(target, create=create)
        self._writer: Writer | None = None
        self._closed = False
        self._run_of_game: dict[int, int] = {}

    @classmethod
    def open(cls, target: str | Path, *, create: bool = True) -> Self:
        """The store at a path or SQLAlchemy URL, made and migrated where needed.

        Raises StoreError in one line, NewerDatabase where a newer madang wrote it.
        """
        return cls(target, create=create)

    @property
    def label(self) -> str:
        """The path, or the URL without its password."""
        return self._database.label

    @property
    def path(self) -> Path | None:
        """SQLite's file; None: the store is on a server."""
        return self._database.path

    @property
    def reader(self) -> Engine:
        """An engine whose connections cannot write and never wait for the writer."""
        return self._database.reader

    @property
    def writer(self) -> Writer:
        if self._closed:
            raise StoreError(f"{self.label} is closed")
        if self._writer is None:
            self._writer = Writer(self._database)
        return self._writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits, then let go of the database. Harmless twice."""
        self._closed = True
        self._database.reader.dispose()  # first: only a writer that leaves last folds the WAL in
        if self._writer is not None:
            self._writer.close()
        self._database.close()

    async def create_run(
        self,
        *,
        name: str,
        seed: int,
        config: Mapping[str, object],
        players: Sequence[AgentInfo],
        slots: Sequence[Slot],
    ) -> int:
        """A new run with its players and slots; its id. The run is ours to write."""

        def job(tx: Transaction) -> int:
            values = {
                "name": name,
                "seed": seed,
                "config": dict(config),
                "config_hash": _hash(config),
                "status": str(Status.RUNNING),
                "madang": _version(),
                "created": time.time(),
                "last_seq": 0,
                "owner": owner_name(),
            }
            run_id = tx.connection.execute(
                insert(Run).values(values).returning(Run.id)
            ).scalar_one()
            tx.claim(run_id)
            _add_to_run(tx, run_id, players, slots)
            tx.add_event(run_id, "run_started", {"name": name, "slots": len(slots)})
            return run_id

        return await self.writer.submit(job)

    async def claim_run(self, run_id: int) -> None:
        """Make a run ours to go on with, before anything is started for it.

        Raises StoreError where another process writes it, or there is no such run.
        """

        def job(tx: Transaction) -> None:
            tx.claim(run_id)
            running = {"status": str(Status.RUNNING), "finished": None}
            tx.connection.execute(update(Run).where(Run.id == run_id).values(running))
            tx.add_event(run_id, "run_resumed", {})

        await self.writer.submit(job)

    async def extend_run(
        self,
        run_id: int,
        *,
        players: Sequence[AgentInfo] = (),
        slots: Sequence[Slot] = (),
        config: Mapping[str, object] | None = None,
    ) -> None:
        """More players and slots, for later rounds and for `arena extend`; `config` replaces the
        run's where its players change."""

        def job(tx: Transaction) -> None:
            tx.claim(run_id)
            _add_to_run(tx, run_id, players, slots)
            if config is not None:
                changed = {"config": dict(config), "config_hash": _hash(config)}
                tx.connection.execute(update(Run).where(Run.id == run_id).values(changed))
            tx.add_event(run_id, "run_extended", {"slots": len(slots)})

        await self.writer.submit(job)

    async def start_game(self, run_id: int, slot: Slot, start_fen: str) -> int:
        """The id of a new game of that slot; its unfinished earlier games are superseded.

        Raises StoreError where the slot has a finished game.
        """

        def job(tx: Transaction) -> int:
            tx.claim(run_id)
            game_id, attempt = start_game_row(tx, run_id, slot, start_fen)
            payload = {"slot": slot.id, "attempt": attempt}
            tx.add_event(run_id, "game_started", payload, game_id)
            return game_id

        return await self.writer.submit(job)

    async def append_move(self, game_id: int, move: MoveRecord) -> None:
        """One ply with its attempts, atomically; back after the commit."""

        def job(tx: Transaction) -> None:
            run_id = self._run_of(tx, game_id)
            tx.add(MoveRow, move_row(game_id, move))
            add_attempts(tx, game_id, move.ply, move.player, move.attempts)
            tx.set_plies(game_id, move.ply)
            tx.add_event(run_id, "move", {"ply": move.ply, "uci": move.uci}, game_id)

        await self.writer.submit(job)

    async def finish_game(self, game_id: int, record: GameRecord) -> None:
        """The end of a running game, with the attempts that led to no move.

        Raises StoreError where the game is not running, or has other moves than the record says.
        """

        def job(tx: Transaction) -> None:
            run_id = self._run_of(tx, game_id)
            finish_game_row(tx, game_id, record)
            payload = {"status": str(record.status), "result": record.result}
            payload |= {"termination": str(record.termination), "detail": record.detail}
            tx.add_event(run_id, "game_finished", payload, game_id)

        await self.writer.submit(job)

    async def append_telemetry(self, run_id: int, sample: Telemetry) -> None:
        """How an engine stands now. Counters run from its start."""
        row = telemetry_row(run_id, time.time(), sample)

        def job(tx: Transaction) -> None:
            tx.claim(run_id)
            tx.add(TelemetryRow, row)

        await self.writer.submit(job)

    async def append_event(
        self, run_id: int, kind: str, payload: Mapping[str, object], game_id: int | None = None
    ) -> None:
        """An event of the caller's own in the run's sequence (a warning, a budget reached)."""

        def job(tx: Transaction) -> None:
            tx.claim(run_id)
            tx.add_event(run_id, kind, payload, game_id)

        await self.writer.submit(job)

    async def finish_run(self, run_id: int, status: str) -> None:
        def job(tx: Transaction) -> None:
            tx.claim(run_id)
            values = {"status": str(status), "finished": time.time()}
            tx.connection.execute(update(Run).where(Run.id == run_id).values(values))
            tx.add_event(run_id, "run_finished", {"status": str(status)})

        await self.writer.submit(job)

    def open_slots(self, run_id: int) -> list[Slot]:
        """The slots of a run that have no finished game, by id."""
        finished = select(GameRow.slot_id).where(
            GameRow.run_id == run_id, GameRow.status == str(Status.FINISHED)
        )
        wanted = select(SlotRow.__table__).where(
            SlotRow.run_id == run_id, SlotRow.id.not_in(finished)
        )
        with self.reader.connect() as connection:
            rows = connection.execute(wanted.order_by(SlotRow.id)).mappings()
            return [row_slot(dict(row)) for row in rows]

    def _run_of(self, tx: Transaction, game_id: int) -> int:
        """The run of a committed game, which must be ours. On the writer's thread only."""
        run_id = self._run_of_game.get(game_id)
        if run_id is None:
            wanted = select(GameRow.run_id).where(GameRow.id == game_id)
            run_id = tx.connection.execute(wanted).scalar()
            if run_id is None:
                raise StoreError(f"there is no game {game_id} in {self.label}")
            self._run_of_game[game_id] = run_id
        tx.claim(run_id)
        return run_id


def _hash(config: Mapping[str, object]) -> str:
    return hashlib.sha256(canonical_json(config).encode()).hexdigest()


def _version() -> str:
    try:
        return version("madang")
    except PackageNotFoundError:
        return "source"


def _add_to_run(
    tx: Transaction, run_id: int, players: Sequence[AgentInfo], slots: Sequence[Slot]
) -> None:
    if players:
        rows = [
            {"run_id": run_id, "name": p.name, "kind": p.kind}
            | {"config": dict(p.config), "deterministic": p.deterministic}
            for p in players
        ]
        tx.connection.execute(insert(Player), rows)
    if slots:
        tx.connection.execute(insert(SlotRow), [slot_row(run_id, slot) for slot in slots])
