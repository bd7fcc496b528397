"""From a configuration to a finished run: store, agents, signals and followers around a Tournament.

`run_new` and `resume_run` own what they open and close it in every case. Ctrl-C and SIGTERM stop
the run within seconds and leave it resumable; a second one ends the process at once.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from agents.factory import Agents, create_agents
from arena.config import Config, ConfigError, resolved
from arena.events import EventBus, Subscription
from arena.plan import make_plan, repeat_warnings
from arena.records import Slot
from arena.store import Store
from arena.tournament import RunResult, Tournament, infos

log = logging.getLogger(__name__)

CLOSE_S = 10.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Follower(Protocol):
    """Shows a run while it is played; ends when its subscription closes."""

    async def follow(self, events: Subscription) -> None: ...


@dataclass(frozen=True, slots=True)
class Work:
    """What a run needs beside its configuration."""

    run_id: int
    slots: tuple[Slot, ...]  # open ones
    num_games: int


async def run_new(
    config: Config, store: Store, follower: Follower, warn: Callable[[str], None]
) -> RunResult:
    """Record a new run and play it. Raises ConfigError, AgentError, StoreError."""
    plan = make_plan(config)
    async with _agents(config) as agents:
        players = infos(config, agents)
        for warning in (*plan.warnings, *repeat_warnings(plan, players)):
            warn(warning)
        run_id = await store.create_run(
            name=config.run.name,
            seed=config.run.seed,
            config=resolved(config),
            players=players,
            slots=plan.slots,
        )
        work = Work(run_id, plan.slots, len(plan.slots))
        return await _play(config, work, agents, store, follower)


async def resume_run(
    config: Config, run_id: int, num_games: int, store: Store, follower: Follower
) -> RunResult:
    """Play the open slots of a recorded run. Raises AgentError, StoreError."""
    await store.claim_run(run_id)
    work = Work(run_id, tuple(store.open_slots(run_id)), num_games)
    async with _agents(config) as agents:
        return await _play(config, work, agents, store, follower)


@contextlib.asynccontextmanager
async def _agents(config: Config) -> AsyncIterator[Agents]:
    try:
        agents = create_agents(config.players, run_seed=config.run.seed)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    try:
        yield agents
    finally:
        try:
            await asyncio.wait_for(agents.close(), CLOSE_S)
        except TimeoutError:
            log.warning("the agents did not close in %g s", CLOSE_S)
        except ExceptionGroup as group:
            for failed in group.exceptions:
                log.warning("while closing: %r", failed)


async def _play(
    config: Config, work: Work, agents: Agents, store: Store, follower: Follower
) -> RunResult:
    bus = EventBus()
    tournament = Tournament(
        config, work.run_id, work.slots, agents, store, bus, num_games=work.num_games
    )
    following = asyncio.create_task(follower.follow(bus.subscribe()))
    try:
        with _stopped_by_signals(tournament.stop):
            return await tournament.run()
    finally:
        bus.close()
        await following


@contextlib.contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGINT or SIGTERM calls `stop`; the next has its usual effect."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
        stop()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
