"""What happens in a run, as a stream: the panel, the web pages and MQTT read it, none can slow it.

`EventBus.publish` never waits. Each subscriber has a bounded queue; one that falls behind loses its
oldest events and is told how many (`Subscription.dropped`): the database stays the truth.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from agents.base import AgentInfo, ModelSwap, Telemetry
from arena.records import GameRecord, MoveRecord, Slot
from arena.sprt import SprtState


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: int
    name: str
    num_games: int  # slots of the whole run
    num_finished: int  # of them already played before this start
    players: tuple[AgentInfo, ...]
    max_plies: tuple[int | None, ...] = ()  # the cap of each section


@dataclass(frozen=True, slots=True)
class AgentReady:
    """`error` is empty, or the one line why this agent cannot start."""

    player: str
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class GameStarted:
    game_id: int
    slot: Slot
    start_fen: str


@dataclass(frozen=True, slots=True)
class MovePlayed:
    game_id: int
    slot: Slot
    move: MoveRecord


@dataclass(frozen=True, slots=True)
class GameFinished:
    game_id: int
    record: GameRecord


@dataclass(frozen=True, slots=True)
class SprtTested:
    """A sequential test took another pair; the state is of the first player against the second."""

    section: int
    players: tuple[str, ...]
    state: SprtState

    @property
    def text(self) -> str:
        return f"{self.state.text} ({' − '.join(self.players)})"


@dataclass(frozen=True, slots=True)
class TelemetrySampled:
    samples: tuple[Telemetry, ...]


@dataclass(frozen=True, slots=True)
class ModelsSwapped:
    """Where the models do not fit in memory together; told within a second or so."""

    swap: ModelSwap


@dataclass(frozen=True, slots=True)
class Noted:
    """Something a person should read now: a warning, a trace, a retry."""

    text: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    run_id: int
    status: str
    num_open: int  # slots without a result


Event = (
    RunStarted
    | AgentReady
    | GameStarted
    | MovePlayed
    | GameFinished
    | SprtTested
    | TelemetrySampled
    | ModelsSwapped
    | Noted
    | RunFinished
)


class Subscription:
    """The events since `EventBus.subscribe`, in order, oldest dropped first when it is full."""

    def __init__(self, maxsize: int) -> None:
        self._events: deque[Event] = deque(maxlen=maxsize)
        self._ready = asyncio.Event()
        self._closed = False
        self.dropped = 0

    def put(self, event: Event) -> None:
        if len(self._events) == self._events.maxlen:
            self.dropped += 1
        self._events.append(event)
        self._ready.set()

    def close(self) -> None:
        """Let the reader finish what is queued and stop."""
        self._closed = True
        self._ready.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                yield self._events.popleft()
            if self._closed:
                return
            self._ready.clear()
            await self._ready.wait()


class EventBus:
    """One publisher, any number of subscribers, all on one event loop."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []

    def subscribe(self, maxsize: int = 10_000) -> Subscription:
        subscription = Subscription(maxsize)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.remove(subscription)

    def publish(self, event: Event) -> None:
        for subscription in self._subscriptions:
            subscription.put(event)

    def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
