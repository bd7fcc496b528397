"""From a configuration to a finished run: store, agents, signals and followers around a Tournament.

`run_new` and `resume_run` own what they open and close it in every case. Ctrl-C and SIGTERM stop
the run within seconds and leave it resumable; a second one ends the process at once.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agents.factory import Agents, create_agents
from arena.config import Config, ConfigError, resolved
from arena.events import EventBus, Subscription
from arena.plan import make_plan, make_rounds, repeat_warnings, with_positions
from arena.records import Slot
from arena.referee import Referees
from arena.rounds import Rounds
from arena.store import Store, queries
from arena.tournament import RunResult, Tournament, infos

log = logging.getLogger(__name__)
T = TypeVar("T")

CLOSE_S = 5.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Follower(Protocol):
    """Shows a run while it is played; ends when its subscription closes."""

    async def follow(self, events: Subscription) -> None: ...


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be played of a run. `slots` are open ones."""

    run_id: int
    slots: tuple[Slot, ...]
    num_games: int
    rounds: tuple[Rounds, ...]


class _Unwaited(ThreadPoolExecutor):
    """Its threads are told to end and not waited for: a model's step may take longer than a person
    who pressed Ctrl-C wants to wait."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` that does not wait for threads which are still busy at the end."""

    def new_loop() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_Unwaited())
        return loop

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)


async def run_new(
    config: Config, store: Store, follower: Follower, warn: Callable[[str], None]
) -> RunResult:
    """Record a new run and play it. Raises ConfigError, AgentError, StoreError."""
    plan = make_plan(config)
    async with _agents(config) as agents, Referees(config) as referees:
        players = infos(config, agents)
        for warning in (*plan.warnings, *repeat_warnings(plan, players)):
            warn(warning)
        run_id = await store.create_run(
            name=config.run.name,
            seed=config.run.seed,
            config=resolved(with_positions(config, plan)),
            players=players,
            slots=plan.slots,
        )
        rounds = tuple(make_rounds(plan.sections, plan.slots, {}))
        work = Work(run_id, plan.slots, plan.num_games, rounds)
        return await _play(config, work, agents, referees, store, follower)


async def resume_run(
    config: Config, run_id: int, store: Store, follower: Follower
) -> RunResult | None:
    """Play what is open of a recorded run; None: nothing is. Raises AgentError, StoreError."""
    plan = make_plan(config)
    slots = queries.slots(store, run_id)
    rounds = tuple(make_rounds(plan.sections, slots, queries.results(store, run_id)))
    due = [slot for section in rounds for slot in section.due()]
    open_slots = (*store.open_slots(run_id), *due)
    if not open_slots:
        return None
    await store.claim_run(run_id)
    if due:  # the run ended between the last result of a round and its pairing
        await store.extend_run(run_id, slots=due)
    num_games = max(plan.num_games, len(slots) + len(due))
    work = Work(run_id, open_slots, num_games, rounds)
    async with _agents(config) as agents, Referees(config) as referees:
        return await _play(config, work, agents, referees, store, follower)


@contextlib.asynccontextmanager
async def _agents(config: Config) -> AsyncIterator[Agents]:
    try:
        agents = create_agents(config.players, run_seed=config.run.seed, memory=config.memory)
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
    config: Config,
    work: Work,
    agents: Agents,
    referees: Referees,
    store: Store,
    follower: Follower,
) -> RunResult:
    bus = EventBus()
    tournament = Tournament(
        config,
        work.run_id,
        work.slots,
        agents,
        store,
        bus,
        num_games=work.num_games,
        rounds=work.rounds,
        referees=referees,
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
