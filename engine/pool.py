"""Several models in one process: one computes at a time, and not all weights need to be in memory.

Each engine has a `Seat`. Its thread plans and steps only while it holds the turn, so two engines
never run on the same cores at once. Where the weights of all don't fit under `weights_bytes`, play
goes in waves: the models in memory are served until none of them has work, then the weights of some
leave and those of the longest waiting model come (`engine.turns` has the rules). Only weights move:
KV blocks, queues and sequences stay, so nothing is computed again and no bit depends on the waves.
A model whose weights cannot be had again loses its engine (`WeightsLost`), the others go on.

Torch-free; every method may be called from any thread.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from engine.turns import Place, Turns, Weights
from engine.types import EngineError, RequestAborted

POLL_S = 0.25  # who waits asks again so often, whatever happens


class PoolError(EngineError):
    """A model that cannot be taken in; one line that names the setting."""


class WeightsLost(EngineError):
    """Weights that left could not be read again; their engine ends."""


W = TypeVar("W", bound=Weights)


@dataclass(frozen=True, slots=True)
class Swap:
    """One exchange of weights. `served`: requests of all models that ended since the last one."""

    out: tuple[str, ...]
    into: str
    seconds: float
    served: int


class Seat(Place):
    """One engine's place in the pool. `wake` makes its thread ask again; it must not block."""

    def __init__(self, pool: "Pool", name: str, num_bytes: int, wake: Callable[[], None]) -> None:
        super().__init__(name, num_bytes)
        self.wake = wake
        self._pool = pool

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
        self._clock = clock
        self._lock = threading.Lock()  # guards all below, and the seats' fields
        self._began = clock()  # the turn that is held
        self._turns: Turns[Seat] = Turns(weights_bytes, max_wave_s, self._began, self._began)
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
            self._turns.places.append(seat)
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
            return tuple(seat.name for seat in self._turns.places if seat.is_in)

    def close(self) -> None:
        """Nobody waits for room any more; turns are still given, so that engines can end."""
        with self._lock:
            self._is_closed = True
            for seat in self._turns.places:
                seat.wake()

    # What seats do

    def reserve(self, seat: Seat) -> bool:
        """Count its bytes where there is room beside the others."""
        with self._lock:
            seat.is_in = self._turns.victims(seat) == []
            return seat.is_in

    def ask(self, seat: Seat) -> float:
        with self._lock:
            if self._is_closed and not seat.is_in:
                seat.since = None
                raise RequestAborted("the engine is closed")
            now = self._clock()
            self._turns.wait(seat, now)
            if self._turns.holder is not None:
                return POLL_S
            chosen, pause = self._turns.choose(now)
            if chosen is None:
                return min(POLL_S, pause)
            if chosen is not seat:
                chosen.wake()
                return POLL_S
            self._turns.take(seat)
            self._began = now
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
            if self._turns.holder is seat:
                self._began = self._turns.swapped = self._clock()
        return weights

    def give(self, seat: Seat, num_served: int, more: bool) -> None:
        with self._lock:
            if self._turns.holder is not seat:
                return
            now = self._clock()
            self._turns.give(seat, now - self._began, now)
            self._served += num_served
            if more:
                self._turns.wait(seat, now)
            self._wake_next(seat)

    def withdraw(self, seat: Seat) -> None:
        with self._lock:
            if seat.since is not None:
                seat.since = None
                self._wake_next(seat)

    def leave(self, seat: Seat) -> None:
        self.give(seat, 0, more=False)
        with self._lock:
            if seat in self._turns.places:
                self._turns.places.remove(seat)
                seat.since, seat.is_in = None, False
                self._wake_next(seat)

    # Under the lock

    def _note(self, seat: Seat, out: list[Place]) -> None:
        names = tuple(victim.name for victim in out)
        self._swaps.append(Swap(names, seat.name, seat.swap_s, self._served))
        self._served = 0

    def _wake_next(self, giver: Seat) -> None:
        """Tell who goes next; where nobody may yet, all who wait for memory, to ask when."""
        if self._turns.holder is not None:
            return
        chosen, _ = self._turns.choose(self._clock())
        for seat in [chosen] if chosen else self._turns.waiting:
            if seat is not giver:
                seat.wake()
