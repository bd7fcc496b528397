"""Who goes next and who makes room: the policy of `engine.pool`, which calls it under its lock.

- Of the models in memory, the one that has computed least (in seconds) since it began to wait goes
  next; a model that was idle is credited nothing for it.
- A swap is due when nothing in memory has work and a moment has passed (an answer often brings the
  next request at once); or when a model has waited for `max_wave_s`, and for SWAP_SHARE times what
  its swap takes, while others were served. So no endless work starves another model, and beside
  endless work swaps take a tenth of the time at most.
- Those without work leave first, longest unused first; then the others, likewise.
"""

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

SWAP_SHARE = 9  # times a swap's seconds are worked, at least, before work is cut short for it
LINGER_S = (0.02, 0.25)  # bounds of a tenth of the swap's seconds
NEVER = float("inf")


class Weights(Protocol):
    """What moves. `offload` and `reload` are called while no step of theirs runs."""

    def offload(self) -> None:
        """Give up the memory of the weights, keep everything else. Never fails; idempotent."""

    def reload(self) -> None:
        """Bring back the very same weights. Raises where they cannot be had."""


@dataclass(slots=True, eq=False)
class Place:
    """One model as the policy sees it; times are the pool's clock's."""

    name: str
    num_bytes: int
    weights: Weights | None = None  # None: not loaded for the first time yet
    is_in: bool = False  # its bytes are counted: in memory, or coming in
    since: float | None = None  # waits for the turn since
    used: float = 0.0  # seconds computed, or credited
    last: float = 0.0  # when it last gave the turn back
    swap_s: float = 0.0  # how long its last coming in took
    victims: "list[Place] | None" = None  # who makes room before it may compute


P = TypeVar("P", bound=Place)


@dataclass(slots=True)
class Turns(Generic[P]):
    """`limit` of all bytes that are in, None: none; `idle_since` and `swapped` as of the start."""

    limit: int | None
    max_wave_s: float
    idle_since: float  # nobody computes since, if nobody does
    swapped: float  # the last time that weights came in
    places: list[P] = field(default_factory=list)
    holder: P | None = None
    credit: float = 0.0  # what the last to go had used: newcomers begin there

    def wait(self, place: P, now: float) -> None:
        if place.since is None:
            place.since = now
            place.used = max(place.used, self.credit)

    @property
    def waiting(self) -> list[P]:
        return [place for place in self.places if place.since is not None]

    def choose(self, now: float) -> tuple[P | None, float]:
        """Who goes next; if nobody may yet, the seconds until somebody may."""
        ready = [place for place in self.waiting if place.is_in]
        outside = [place for place in self.waiting if not place.is_in]
        first = min(outside, key=lambda place: place.since or 0.0, default=None)
        pause = NEVER
        if first is not None and self.victims(first) is not None:
            pause = self._due(first, bool(ready)) - now
            if pause <= 0:
                return first, 0.0
        if ready:
            return min(ready, key=lambda place: place.used), 0.0
        return None, pause

    def _due(self, place: P, is_busy: bool) -> float:
        """When it may come in."""
        if not is_busy:
            least, most = LINGER_S
            return self.idle_since + min(most, max(least, place.swap_s / 10))
        begin = max(place.since or 0.0, self.swapped)
        return begin + max(self.max_wave_s, SWAP_SHARE * place.swap_s)

    def victims(self, place: P) -> list[P] | None:
        """Who has to leave for it; None where not even that makes room now."""
        if self.limit is None:
            return []
        inside = [other for other in self.places if other.is_in and other is not place]
        over = sum(other.num_bytes for other in inside) + place.num_bytes - self.limit
        victims = []
        movable = [p for p in inside if p.weights is not None and p is not self.holder]
        for other in sorted(movable, key=lambda p: (p.since is not None, p.last)):
            if over <= 0:
                break
            victims.append(other)
            over -= other.num_bytes
        return victims if over <= 0 else None

    def take(self, place: P) -> None:
        """It has the turn; where it is out, its bytes count from here on, its victims' do not."""
        self.holder, self.credit, place.since = place, place.used, None
        if not place.is_in:
            place.victims = [*(self.victims(place) or ())]
            place.is_in = True
            for victim in place.victims:
                victim.is_in = False

    def give(self, place: P, used: float, now: float) -> None:
        """It gives the turn back; where it did not come in, nobody has left."""
        place.used += used
        place.last = self.idle_since = now
        self.holder = None
        if place.victims is not None:
            for victim in place.victims:
                victim.is_in = True
            place.victims, place.is_in = None, False
