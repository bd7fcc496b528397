"""A run that another process plays, followed from its record: the stored events as live ones.

First what stands (results, games in flight at their last move), then what is committed, a few times
a second, until the run ends. Reads only; whoever plays never waits for it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from agents.base import Telemetry
from arena.config import restore
from arena.events import (
    Event,
    EventBus,
    GameFinished,
    GameStarted,
    MovePlayed,
    RunFinished,
    RunStarted,
    SprtTested,
    TelemetrySampled,
)
from arena.plan import make_plan
from arena.records import GameRecord, Slot, Status
from arena.running import Follower
from arena.sprt import Sprt, SprtState
from arena.store import Store, queries
from arena.store.queries import GameInfo

POLL_S = 0.25
MANY = 1_000_000  # events that may wait for the follower: all of a long run at its start
OVER = frozenset({"finished", "unresolved", "interrupted"})


async def watch(store: Store, run_id: int, follower: Follower, poll_s: float = POLL_S) -> str:
    """Show the run until it ends; the status it ended with. Raises StoreError."""
    bus = EventBus()
    following = asyncio.create_task(follower.follow(bus.subscribe(MANY)))
    try:
        async for events in _Record(store, run_id).batches(poll_s):
            for event in events:
                bus.publish(event)
        return queries.run(store, run_id).status
    finally:
        bus.close()
        await following


class _Record:
    """The events of one run as they appear in its record."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._store, self._run_id = store, run_id
        self._slots: dict[int, Slot] = {}
        self._ended: set[int] = set()  # games whose end was told
        self._plies: dict[int, int] = {}  # game → its last move that was told
        self._sample = 0  # the last row of telemetry that was told

    async def batches(self, poll_s: float) -> AsyncIterator[list[Event]]:
        """Lists of events; ends with the run."""
        info = queries.run(self._store, self._run_id)
        seq = info.last_seq
        yield self._first(info)
        status = info.status
        while status not in OVER:
            await asyncio.sleep(poll_s)
            status = queries.run(self._store, self._run_id).status  # before the last events
            stored = queries.events(self._store, self._run_id, seq)
            if stored:
                seq = stored[-1].seq
            yield [*self._translated(stored), *self._telemetry()]

    def _first(self, info: queries.RunInfo) -> list[Event]:
        """What stands: the results, the games in flight at their last move, the tests."""
        self._read_slots()
        games = queries.games(self._store, self._run_id)
        found: list[Event] = [self._started(info)]
        found += [self._finished(game) for game in games if game.status == Status.FINISHED]
        found += self._tests(info)
        if info.status in OVER:
            num_open = len(self._store.open_slots(self._run_id))
            return [*found, RunFinished(self._run_id, info.status, num_open)]
        running = [game.id for game in games if game.status == Status.RUNNING]
        for game in queries.games_by_id(self._store, running):
            slot = self._slots[game.slot_id]
            found.append(GameStarted(game.id, slot, game.start_fen))
            if game.moves:
                self._plies[game.id] = game.plies
                found.append(MovePlayed(game.id, slot, game.moves[-1]))
        return found

    def _started(self, info: queries.RunInfo) -> RunStarted:
        planned, caps = len(self._slots), tuple[int | None, ...]()
        if "imported" not in info.config:
            config = restore(info.config)
            planned = max(make_plan(config).num_games, planned)
            caps = tuple(section.max_plies for section in config.games)
        players = tuple(queries.players(self._store, self._run_id))
        return RunStarted(self._run_id, info.name, planned, 0, players, caps)

    def _tests(self, info: queries.RunInfo) -> list[Event]:
        """How each sequential test of the run stands."""
        if not any(section.get("sprt") for section in info.config.get("games", ())):
            return []
        stored = queries.events(self._store, self._run_id)
        last = {e.payload["section"]: e.payload for e in stored if e.kind == "sprt"}
        return [_tested(payload) for payload in last.values()]

    def _read_slots(self) -> None:
        self._slots = {slot.id: slot for slot in queries.slots(self._store, self._run_id)}

    def _translated(self, stored: Sequence[queries.Event]) -> Iterator[Event]:
        ids = sorted({event.game_id for event in stored if event.game_id is not None})
        games = {game.id: game for game in queries.games_by_id(self._store, ids)} if ids else {}
        if any(game.slot_id not in self._slots for game in games.values()):
            self._read_slots()
        for event in stored:
            told = self._event(event, games.get(event.game_id or 0))
            if told is not None:
                yield told

    def _event(self, event: queries.Event, game: GameInfo | None) -> Event | None:
        if event.kind == "sprt":
            return _tested(event.payload)
        if event.kind == "run_finished":
            num_open = len(self._store.open_slots(self._run_id))
            return RunFinished(self._run_id, str(event.payload["status"]), num_open)
        if game is None:
            return None
        slot = self._slots[game.slot_id]
        match event.kind:
            case "game_started":
                return GameStarted(game.id, slot, game.start_fen)
            case "move" if event.payload["ply"] > self._plies.get(game.id, 0):
                return MovePlayed(game.id, slot, game.moves[event.payload["ply"] - 1])
            case "game_finished" if game.id not in self._ended:
                return self._finished(game)
        return None

    def _finished(self, game: GameInfo) -> GameFinished:
        self._ended.add(game.id)
        record = GameRecord(
            slot=self._slots[game.slot_id],
            status=Status(game.status),
            start_fen=game.start_fen,
            result=game.result,
            termination=game.termination,
            detail=game.detail,
            rated=game.rated,
            plies=game.plies,
        )
        return GameFinished(game.id, record)

    def _telemetry(self) -> Iterator[Event]:
        rows = queries.telemetry(self._store, self._run_id, after=self._sample)
        if rows:
            self._sample = rows[-1]["id"]
            yield TelemetrySampled(tuple(map(_telemetry, rows)))


def _tested(payload: Mapping[str, Any]) -> SprtTested:
    state = payload["state"]
    a, b, c, d, e = state["counts"]
    test = SprtState(Sprt(**state["test"]), (a, b, c, d, e), state["llr"], state["verdict"])
    return SprtTested(payload["section"], tuple(payload["players"]), test)


def _telemetry(row: Mapping[str, Any]) -> Telemetry:
    return Telemetry(**{name: row[name] for name in Telemetry.__dataclass_fields__})
