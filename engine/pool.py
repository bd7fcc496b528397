"""Several models in one process: whose turn it is to compute, and whose weights are in memory.

Each engine has a `Seat`. Its thread plans and steps only while it holds the turn, so two engines
never run on the same cores at once. Where the weights of all don't fit under `weights_bytes`, play
goes in waves: the models in memory are served until none of them has work, then the weights of some
leave and those of the longest waiting model come. Only weights move: KV blocks, queues and
sequences stay, so nothing is computed again and no bit depends on the waves.

- Of the models in memory, the one that has computed least (in seconds) since it began to wait goes
  next; a model that was idle is credited nothing for it.
- A swap is due when nothing in memory has work and `linger` has passed (an answer often brings the
  next request within moments); or when a model has waited for `max_wave_s`, and for SWAP_SHARE
  times what its swap takes, while others were served. So no endless work starves another model,
  and beside endless work swaps take a tenth of the time at most.
- Those without work leave first, longest unused first; then the others, likewise.
- A model whose weights cannot be had again loses its engine (`WeightsLost`), the others go on.

Torch-free; every method may be called from any thread.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from engine.types import EngineError, RequestAborted

SWAP_SHARE = 9  # times a swap's seconds are worked, at least, before work is cut short for it
POLL_S = 0.25  # who waits asks again so often, whatever happens
LINGER_S = (0.02, 0.25)  # bounds of a tenth of the swap's seconds


class PoolError(EngineError):
    """A model that cannot be taken in; one line that names the setting."""


class WeightsLost(EngineError):
    """Weights that left could not be read again; their engine ends."""


class Weights(Protocol):
    """What moves. `offload` and `reload` are called while no step of theirs runs."""

    def offload(self) -> None:
        """Give up the memory of the weights, keep everything else. Never fails; idempotent."""

    def reload(self) -> None:
        """Bring back the very same weights. Raises where they cannot be had."""


W = TypeVar("W", bound=Weights)


@dataclass(frozen=True, slots=True)
class Swap:
    """One exchange of weights. `served`: requests of all models that ended since the last one."""

    out: tuple[str, ...]
    into: str
    seconds: float
    served: int


class Seat:
    """One engine's place in the pool. `wake` makes its thread ask again; it must not block."""

    def __init__(self, pool: "Pool", name: str, num_bytes: int, wake: Callable[[], None]) -> None:
        self.name, self.num_bytes, self.wake = name, num_bytes, wake
        self._pool = pool
        self.weights: Weights | None = None  # None: not loaded for the first time yet
        self.is_in = False  # its bytes are counted: in memory, or coming in
        self.since: float | None = None  # waits for the turn since
        self.used = 0.0  # seconds computed, or credited
        self.last = 0.0  # when it last gave the turn back
        self.swap_s = 0.0  # how long its last coming in took
        self.victims: list[Seat] | None = None  # who makes room before it may compute

    def enter(self, load: Callable[[], W]) -> W:
        """Run `load` for the first time, when there is room. Blocks; raises what `load` raises,
        RequestAborted where the pool closes meanwhile."""
        if not self._pool.reserve(self):
            came = threading.Event()
            self.wake = came.set
            while self.ask():
                came.wait(POLL_S)
                came.clear()
        try:
            return self._pool.bring_in(self, load)
        finally:
            self.give()

    def ask(self) -> float:
        """Wait for the turn. 0.0: it is held now, until `give`; else ask again after so many
        seconds at most, or when woken. Raises RequestAborted where the pool is closed."""
        return self._pool.ask(self)

    def settle(self) -> None:
        """While holding the turn: have the weights in memory. Raises WeightsLost."""
        if self.victims is None:
            return
        try:
            self._pool.bring_in(self, self._reload)
        except Exception as error:  # whatever the files or the memory brought about
            raise WeightsLost(f"{self.name} could not be loaded again: {error}") from error

    def give(self, num_served: int = 0, *, more: bool = False) -> None:
        """Give the turn back, if held. `more`: and wait for the next at once."""
        self._pool.give(self, num_served, more)

    def withdraw(self) -> None:
        """Wait no longer."""
        self._pool.withdraw(self)

    def leave(self) -> None:
        """For good; whoever holds the weights lets go of them. Idempotent."""
        self._pool.leave(self)

    def _reload(self) -> Weights:
        assert self.weights is not None, "the first load goes through enter"
        self.weights.reload()
        return self.weights


class Pool:
    """The engines of one process. `weights_bytes` None: all weights stay in memory."""

    def __init__(
        self,
        weights_bytes: int | None = None,
        *,
        max_wave_s: float = 60.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.weights_bytes = weights_bytes
        self._max_wave_s, self._clock = max_wave_s, clock
        self._lock = threading.Lock()  # guards all below, and the seats' fields
        self._seats: list[Seat] = []
        self._holder: Seat | None = None
        self._began = self._idle_since = self._swapped = clock()
        self._credit = 0.0  # what the last to go had used: newcomers begin there
        self._served = 0
        self._swaps: list[Swap] = []
        self._is_closed = False

    def join(self, name: str, num_bytes: int, wake: Callable[[], None] = lambda: None) -> Seat:
        """A seat for a model of that many bytes of weights. Raises PoolError: it never fits."""
        if self.weights_bytes is not None and num_bytes > self.weights_bytes:
            raise PoolError(
                f"weights_bytes: {self.weights_bytes} is less than the weights of {name} alone; "
                f"set it to {num_bytes} or more"
            )
        seat = Seat(self, name, num_bytes, wake)
        with self._lock:
            self._seats.append(seat)
        return seat

    def alone(self) -> Seat:
        """The seat of one whose weights never move."""
        seat = self.join("", 0)
        self.reserve(seat)
        return seat

    @property
    def swaps(self) -> tuple[Swap, ...]:
        """All exchanges so far, in order."""
        with self._lock:
            return tuple(self._swaps)

    @property
    def resident(self) -> tuple[str, ...]:
        """Whose weights are in memory or coming in."""
        with self._lock:
            return tuple(seat.name for seat in self._seats if seat.is_in)

    def close(self) -> None:
        """Nobody waits for room any more; turns are still given, so that engines can end."""
        with self._lock:
            self._is_closed = True
            for seat in self._seats:
                seat.wake()

    # What seats do

    def reserve(self, seat: Seat) -> bool:
        """Count its bytes where there is room beside the others."""
        with self._lock:
            seat.is_in = self._victims(seat) == []
            return seat.is_in

    def ask(self, seat: Seat) -> float:
        with self._lock:
            if self._is_closed and not seat.is_in:
                seat.since = None
                raise RequestAborted("the engine is closed")
            now = self._clock()
            self._wait(seat, now)
            if self._holder is not None:
                return POLL_S
            chosen, pause = self._choose(now)
            if chosen is None:
                return min(POLL_S, pause)
            if chosen is not seat:
                chosen.wake()
                return POLL_S
            self._holder, self._began, self._credit = seat, now, seat.used
            seat.since = None
            self._make_room(seat)
            return 0.0

    def bring_in(self, seat: Seat, load: Callable[[], W]) -> W:
        """Have those leave who make room, then load; on a failure its bytes count no longer."""
        began = self._clock()
        try:
            for victim in seat.victims or ():
                if victim.weights is not None:
                    victim.weights.offload()
            weights = load()
        except BaseException:
            with self._lock:
                seat.victims, seat.is_in = None, False
            raise
        with self._lock:
            out, seat.victims = seat.victims or [], None
            seat.swap_s = self._clock() - began
            if seat.weights is not None:
                self._note(seat, out)
            seat.weights = weights
            if self._holder is seat:
                self._began = self._swapped = self._clock()
        return weights

    def give(self, seat: Seat, num_served: int, more: bool) -> None:
        with self._lock:
            if self._holder is not seat:
                return
            now = self._clock()
            self._give_back_room(seat)
            seat.used += now - self._began
            seat.last = self._idle_since = now
            self._served += num_served
            self._holder = None
            if more:
                self._wait(seat, now)
            self._wake_next(now, seat)

    def withdraw(self, seat: Seat) -> None:
        with self._lock:
            if seat.since is not None:
                seat.since = None
                self._wake_next(self._clock(), seat)

    def leave(self, seat: Seat) -> None:
        self.give(seat, 0, more=False)
        with self._lock:
            if seat in self._seats:
                self._seats.remove(seat)
                seat.since, seat.is_in = None, False
                self._wake_next(self._clock(), seat)

    # Under the lock

    def _wait(self, seat: Seat, now: float) -> None:
        if seat.since is None:
            seat.since = now
            seat.used = max(seat.used, self._credit)

    def _choose(self, now: float) -> tuple[Seat | None, float]:
        """Who goes next; if nobody may yet, the seconds until somebody may."""
        waiting = [seat for seat in self._seats if seat.since is not None]
        ready = [seat for seat in waiting if seat.is_in]
        outside = [seat for seat in waiting if not seat.is_in]
        first = min(outside, key=lambda seat: seat.since or 0.0, default=None)
        pause = POLL_S
        if first is not None and self._victims(first) is not None:
            pause = self._due(first, bool(ready)) - now
            if pause <= 0:
                return first, 0.0
        if ready:
            return min(ready, key=lambda seat: seat.used), 0.0
        return None, pause

    def _due(self, seat: Seat, is_busy: bool) -> float:
        """When it may come in."""
        if not is_busy:
            least, most = LINGER_S
            return self._idle_since + min(most, max(least, seat.swap_s / 10))
        begin = max(seat.since or 0.0, self._swapped)
        return begin + max(self._max_wave_s, SWAP_SHARE * seat.swap_s)

    def _victims(self, seat: Seat) -> list[Seat] | None:
        """Who has to leave for it; None where not even that makes room now."""
        if self.weights_bytes is None:
            return []
        inside = [other for other in self._seats if other.is_in and other is not seat]
        over = sum(other.num_bytes for other in inside) + seat.num_bytes - self.weights_bytes
        victims = []
        movable = [s for s in inside if s.weights is not None and s is not self._holder]
        for other in sorted(movable, key=lambda s: (s.since is not None, s.last)):
            if over <= 0:
                break
            victims.append(other)
            over -= other.num_bytes
        return victims if over <= 0 else None

    def _make_room(self, seat: Seat) -> None:
        """From here on its bytes count, and those of who leaves for it do not."""
        if not seat.is_in:
            seat.victims = self._victims(seat) or []
            seat.is_in = True
            for victim in seat.victims:
                victim.is_in = False

    def _give_back_room(self, seat: Seat) -> None:
        """It held the turn and did not come in: nobody has left."""
        if seat.victims is not None:
            for victim in seat.victims:
                victim.is_in = True
            seat.victims, seat.is_in = None, False

    def _note(self, seat: Seat, out: list[Seat]) -> None:
        names = tuple(victim.name for victim in out)
        self._swaps.append(Swap(names, seat.name, seat.swap_s, self._served))
        self._served = 0

    def _wake_next(self, now: float, giver: Seat) -> None:
        """Tell who goes next; where nobody may yet, all who wait for memory, to ask when."""
        if self._holder is not None:
            return
        chosen, _ = self._choose(now)
        wanted = [chosen] if chosen else [s for s in self._seats if s.since is not None]
        for seat in wanted:
            if seat is not giver:
                seat.wake()
