"""A run: its open slots under a concurrency limit, each game through `match.play`, all recorded.

A slot starts once both its players have started, so that players which need no model play while one
loads. A game without a result is played again `run.retries` times, with the same seeds, and then
stays open. One agent that cannot start, or that an endpoint cheats, loses nobody else a game: only
its own slots stay open. Seeds hang from (run seed, slot, ply, player) alone, so what is played does
not depend on how many games are in flight or in which order they end.

`stop()` ends it within seconds: games in flight are recorded as interrupted, their slots stay open.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, Protocol, TypeVar

from agents.base import Agent, AgentError, AgentInfo, ModelSwap, Telemetry
from arena import match
from arena.budget import Budget
from arena.clock import parse_tc
from arena.config import Config, SectionConfig
from arena.events import (
    AgentReady,
    EventBus,
    GameFinished,
    GameStarted,
    ModelsSwapped,
    MovePlayed,
    Noted,
    RunFinished,
    RunStarted,
    SprtTested,
    TelemetrySampled,
)
from arena.records import GameRecord, MoveRecord, Slot, Status, Termination
from arena.referee import Referees
from arena.rounds import Rounds
from arena.sprt_rounds import SprtRounds
from games.base import GameState
from games.registry import get_game

log = logging.getLogger(__name__)
T = TypeVar("T")

TELEMETRY_S = 1.0
CLOSE_S = 5.0
STOPS_AGENT = frozenset({Termination.PROMPT_TRUNCATED, Termination.CONSTRAINT_IGNORED})
"""No results that every further game of this agent would meet again."""
RETRIED = frozenset({Termination.ENGINE_ERROR, Termination.ENDPOINT_ERROR, Termination.OVERLOADED})
RunStatus = Literal["finished", "unresolved", "interrupted"]


class Players(Protocol):
    """What `agents.factory.create_agents` gives."""

    def __getitem__(self, name: str) -> Agent: ...

    def telemetry(self) -> tuple[Telemetry, ...]: ...

    def swaps(self) -> tuple[ModelSwap, ...]: ...

    async def close(self) -> None: ...


class Recorder(Protocol):
    """The writing half of `arena.store.Store`: each call returns after its commit."""

    async def start_game(self, run_id: int, slot: Slot, start_fen: str) -> int: ...

    async def append_move(self, game_id: int, move: MoveRecord) -> None: ...

    async def finish_game(self, game_id: int, record: GameRecord) -> None: ...

    async def append_telemetry(self, run_id: int, telemetry: Telemetry) -> None: ...

    async def extend_run(self, run_id: int, *, slots: Sequence[Slot] = ()) -> None: ...

    async def append_event(self, run_id: int, kind: str, payload: Mapping[str, object]) -> None: ...

    async def finish_run(self, run_id: int, status: str) -> None: ...


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    run_id: int
    status: RunStatus
    num_open: int  # slots without a result
    failed_agents: Mapping[str, str] = field(default_factory=dict)  # name → the one line

    @property
    def exit_code(self) -> int:
        """0 finished, 3 with unresolved games, 4 an agent could not start, 130 interrupted."""
        if self.status == "interrupted":
            return 130
        if self.failed_agents:
            return 4
        return 3 if self.num_open else 0


class Tournament:
    """Plays the open slots of one run. Call `run` once."""

    def __init__(
        self,
        config: Config,
        run_id: int,
        slots: Sequence[Slot],
        players: Players,
        store: Recorder,
        bus: EventBus,
        *,
        num_games: int | None = None,
        rounds: Sequence[Rounds] = (),
        referees: Referees | None = None,
    ) -> None:
        """`slots` are the open ones; `num_games` counts those of the whole run; `rounds` are the
        sections whose pairings follow from results."""
        self._config = config
        self._run_id = run_id
        self._pending = deque(slots)
        self._players = players
        self._store = store
        self._bus = bus
        self._num_games = len(slots) if num_games is None else num_games
        self._rounds = {section.section: section for section in rounds}
        self._referees = referees
        self._ready: set[str] = set()
        self._failed: dict[str, str] = {}
        self._tries: Counter[int] = Counter()
        run = config.run
        self._budget = Budget(run.max_tokens, run.max_cost, run.prices)
        self._told: dict[int, SprtTested] = {}
        self._unresolved: list[Slot] = []
        self._games: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._num_swaps = 0  # told so far

    def stop(self) -> None:
        """End soon and stay resumable. Safe to call more than once."""
        self._stopping.set()

    async def run(self) -> RunResult:
        """Play until no slot can be played. Raises what the store raises; nothing else."""
        names = self._names()
        self._bus.publish(
            RunStarted(
                self._run_id,
                self._config.run.name,
                self._num_games,
                self._num_games - len(self._pending),
                tuple(self._players[name].info for name in names),
                tuple(section.max_plies for section in self._config.games),
            )
        )
        sampler = asyncio.create_task(self._sample())
        hours = self._config.run.max_hours
        if hours is not None:
            loop, told = asyncio.get_running_loop(), f"max_hours = {hours:g}"
            loop.call_later(hours * 3600, self._out_of_budget, told)
        try:
            self._starting = {asyncio.create_task(self._start(name)) for name in names}
            await self._dispatch()
        finally:
            await self._end([sampler, *self._starting, *self._games])
        return await self._finish()

    def _names(self) -> list[str]:
        """Players of the open slots and of later rounds, in the configuration's order."""
        needed = {name for slot in self._pending for name in (slot.first, slot.second)}
        needed |= {name for section in self._rounds.values() for name in section.players}
        return [spec.name for spec in self._config.players if spec.name in needed]

    async def _start(self, name: str) -> None:
        agent, started = self._players[name], time.perf_counter()
        error = ""
        try:
            await agent.start()
            for game in self._games_of(name):
                probe = f"probe-{game}"
                await agent.new_game(probe, get_game(game), 0)
                await agent.end_game(probe)
            self._ready.add(name)
        except AgentError as failed:
            error = self._failed[name] = str(failed)
        except Exception:
            log.exception("%s failed to start: please report this", name)
            error = self._failed[name] = f"{name} failed to start; the log has the trace"
        self._bus.publish(AgentReady(name, time.perf_counter() - started, error))

    def _games_of(self, name: str) -> list[str]:
        sections = self._config.games
        return sorted({s.game for s in sections if name in self._config.section_players(s)})

    async def _dispatch(self) -> None:
        """Keep up to `concurrency` games in flight until nothing is left that could start."""
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            while not self._stopping.is_set():
                self._fill()
                waiting = {*self._games, *self._starting}
                if not waiting:
                    return
                done, _ = await asyncio.wait(
                    {stopping, *waiting}, return_when=asyncio.FIRST_COMPLETED
                )
                self._games -= done
                self._starting -= done
                failed = [task for task in done - {stopping} if task.exception() is not None]
                if failed:
                    failed[0].result()
        finally:
            stopping.cancel()

    def _fill(self) -> None:
        """Start slots whose players are ready, in order; drop those whose players failed."""
        later: deque[Slot] = deque()
        while self._pending and len(self._games) < self._config.run.concurrency:
            slot = self._pending.popleft()
            both = {slot.first, slot.second}
            if both & self._failed.keys():
                self._unresolved.append(slot)
            elif both <= self._ready:
                self._games.add(asyncio.create_task(self._play(slot)))
            else:
                later.append(slot)
        self._pending.extendleft(reversed(later))

    async def _play(self, slot: Slot) -> None:
        """One try at a slot, from its row in the store to its record."""
        start = first_position(slot)
        self._tries[slot.id] += 1
        game_id = await self._open(slot, start)
        self._bus.publish(GameStarted(game_id, slot, start.fen()))

        plies = 0

        async def on_move(move: MoveRecord) -> None:
            nonlocal plies
            plies = move.ply
            await _whole(self._store.append_move(game_id, move))
            self._bus.publish(MovePlayed(game_id, slot, move))
            self._spend(move.player, move.prompt_tokens, move.completion_tokens)

        agents = (self._players[slot.first], self._players[slot.second])
        try:
            record = await match.play(
                str(game_id),
                slot,
                start,
                agents,
                self._limits(slot),
                self._config.run.seed,
                on_move,
            )
        except asyncio.CancelledError:
            await _whole(self._record(game_id, _interrupted(slot, start, plies)))
            raise
        await self._record(game_id, record)
        for attempt in record.failed_attempts:
            usage = attempt.usage
            self._spend(record.failed_player, usage.prompt, usage.completion)
        self._judge(slot, record)
        if record.status is Status.FINISHED:
            await self._pair(slot, record)

    def _limits(self, slot: Slot) -> match.Limits:
        referee = self._referees.get(slot.section) if self._referees is not None else None
        return replace(limits(self._config.games[slot.section]), referee=referee)

    async def _open(self, slot: Slot, start: GameState) -> int:
        """The new game's id. Cancelled meanwhile, its row exists and is recorded so."""
        opening = asyncio.ensure_future(self._store.start_game(self._run_id, slot, start.fen()))
        try:
            return await _whole(opening)
        except asyncio.CancelledError:
            await self._record(opening.result(), _interrupted(slot, start, 0))
            raise

    async def _record(self, game_id: int, record: GameRecord) -> None:
        await self._store.finish_game(game_id, record)
        self._bus.publish(GameFinished(game_id, record))

    def _spend(self, player: str, prompt: int, answer: int) -> None:
        """Stop, resumable, once the run's budget is used up."""
        used_up = self._budget.spend(player, prompt, answer)
        if used_up is not None:
            self._out_of_budget(used_up)

    def _out_of_budget(self, what: str) -> None:
        self._bus.publish(Noted(f"{what} is used up: the run stops here"))
        self.stop()

    def _judge(self, slot: Slot, record: GameRecord) -> None:
        """Put a game without a result back into the queue, or leave its slot open."""
        if record.status is not Status.ABORTED:
            return
        if record.termination in STOPS_AGENT:
            guilty = record.failed_player
            self._failed[guilty] = f"{guilty} is stopped: {record.detail}"
            self._bus.publish(Noted(self._failed[guilty]))
        elif record.termination in RETRIED and self._tries[slot.id] <= self._config.run.retries:
            self._bus.publish(Noted(f"Game {slot.id} is played again: {record.detail}"))
            self._pending.append(slot)
            return
        self._unresolved.append(slot)

    async def _pair(self, slot: Slot, record: GameRecord) -> None:
        """Add the round that this result has made due, if its section is played in rounds."""
        section = self._rounds.get(slot.section)
        if section is None:
            return
        section.record(slot, record.result)
        if isinstance(section, SprtRounds):
            await self._tell(section)
        due = section.due()
        if due:
            await _whole(self._store.extend_run(self._run_id, slots=due))
            self._pending.extend(due)

    async def _tell(self, section: SprtRounds) -> None:
        """How a sequential test stands, once for each pair that it took."""
        news = SprtTested(section.section, section.players, section.test.state())
        if news == self._told.get(section.section) or not section.test.num_pairs:
            return
        self._told[section.section] = news
        self._bus.publish(news)
        await _whole(self._store.append_event(self._run_id, "sprt", asdict(news)))

    async def _sample(self) -> None:
        """The engines' state about once a second, to the followers and to the record."""
        while True:
            samples = self._players.telemetry()
            if not samples:
                return
            self._bus.publish(TelemetrySampled(samples))
            for sample in samples:
                await self._store.append_telemetry(self._run_id, sample)
            await self._tell_swaps()
            await asyncio.sleep(TELEMETRY_S)

    async def _tell_swaps(self) -> None:
        """Exchanges of weights since the last call, to the followers and to the record."""
        for swap in self._players.swaps()[self._num_swaps :]:
            self._num_swaps += 1
            self._bus.publish(ModelsSwapped(swap))
            await _whole(self._store.append_event(self._run_id, "models_swapped", asdict(swap)))

    async def _end(self, tasks: Sequence["asyncio.Task[None]"]) -> None:
        """Cancel what still runs and wait for it, so that every game in flight is recorded."""
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                log.debug("while ending the run: %r", task.exception())

    async def _finish(self) -> RunResult:
        num_open = len(self._pending) + len(self._unresolved)
        status: RunStatus = "unresolved" if num_open else "finished"
        if self._stopping.is_set():
            num_open += sum(task.cancelled() for task in self._games)
            status = "interrupted" if num_open else "finished"
        await self._tell_swaps()
        await self._store.finish_run(self._run_id, status)
        self._bus.publish(RunFinished(self._run_id, status, num_open))
        return RunResult(self._run_id, status, num_open, dict(self._failed))


def first_position(slot: Slot) -> GameState:
    """Where the game of a slot starts. Raises InvalidPosition, ValueError."""
    return get_game(slot.game).start(
        rules=slot.rules or None, fen=slot.opening or None, setup=slot.setup or None
    )


def limits(section: SectionConfig) -> match.Limits:
    """The arena's own rules of a section's games."""
    return match.Limits(
        max_plies=section.max_plies,
        at_cap=section.at_cap,
        draw=section.draw,
        resign=section.resign,
        time_control=parse_tc(section.tc),
        margin_s=section.timemargin_ms / 1000,
        token_s=section.token_s,
        watchdog_s=section.move_timeout_s,
    )


def _interrupted(slot: Slot, start: GameState, plies: int) -> GameRecord:
    return GameRecord(
        slot=slot,
        status=Status.ABORTED,
        start_fen=start.fen(),
        termination=Termination.INTERRUPTED,
        detail="interrupted; its slot is open",
        rated=False,
        plies=plies,
    )


async def _whole(work: Awaitable[T]) -> T:
    """Its result; a caller that is cancelled meanwhile still waits for its end."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if task.exception() is not None:
            log.debug("while being cancelled: %r", task.exception())
        raise


def infos(config: Config, players: Players) -> list[AgentInfo]:
    """The players of a configuration as they are stored."""
    return [players[spec.name].info for spec in config.players]
