"""How a run of models that do not fit together would go: moves a swap, swaps' share, games an hour.

A coarse simulation of `engine.pool` in which a wave serves every game that waits for a model one
move, over and over, until none waits; then the weights longest unused leave for the model that has
waited longest. Players without a model move at once.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CUT_S, CUT_SHARE = 60.0, 9  # as engine.turns cuts endless work short
MOST_GAMES = 4  # times the concurrency: enough to see how it goes on


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one model: bytes in memory, seconds to come in, seconds a move in a full batch."""

    num_bytes: int
    swap_s: float
    move_s: float


@dataclass(frozen=True, slots=True)
class Meeting:
    """A game to come: the models of its two players (None: needs none), and how long it goes."""

    models: tuple[str | None, str | None]
    plies: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """`moves_per_swap` counts models' moves; None: nothing is swapped."""

    num_swaps: int
    moves_per_swap: float | None
    swap_share: float  # of the time, 0 … 1
    games_per_hour: float


def forecast(
    meetings: Sequence[Meeting], costs: Mapping[str, Cost], limit: int, concurrency: int
) -> Forecast:
    """Of the first games, as many as show how the rest goes. Every model fits alone."""
    run = _Run(dict(costs), limit, deque(meetings[: MOST_GAMES * concurrency]))
    num_games = len(run.pending)
    while run.fill(concurrency):
        run.serve(run.choose())
    hours = max(run.now, 1e-9) / 3600
    return Forecast(
        num_swaps=run.num_swaps,
        moves_per_swap=run.num_moves / run.num_swaps if run.num_swaps else None,
        swap_share=run.swap_s / run.now if run.now else 0.0,
        games_per_hour=num_games / hours,
    )


@dataclass(slots=True)
class _Game:
    meeting: Meeting
    ply: int = 0
    since: float = 0.0  # it waits for its model

    @property
    def waits_for(self) -> str | None:
        """The model to move; None: the game is over."""
        while self.ply < self.meeting.plies:
            model = self.meeting.models[self.ply % 2]
            if model is not None:
                return model
            self.ply += 1
        return None


@dataclass(slots=True)
class _Run:
    costs: dict[str, Cost]
    limit: int
    pending: deque[Meeting]
    live: list[_Game] = field(default_factory=list)
    resident: list[str] = field(default_factory=list)  # longest unused first
    now: float = 0.0
    swapped: float = 0.0  # the last time
    swap_s: float = 0.0
    num_swaps: int = 0
    num_moves: int = 0

    def fill(self, concurrency: int) -> bool:
        """Start games; whether any waits for a model."""
        self.live = [game for game in self.live if game.waits_for is not None]
        while self.pending and len(self.live) < concurrency:
            game = _Game(self.pending.popleft(), since=self.now)
            if game.waits_for is not None:
                self.live.append(game)
        return bool(self.live)

    def choose(self) -> str:
        """The model served next, which is in memory then."""
        first: dict[str, float] = {}
        for game in self.live:
            model = str(game.waits_for)
            first[model] = min(first.get(model, self.now), game.since)
        inside = [model for model in self.resident if model in first]
        outside = sorted((m for m in first if m not in self.resident), key=lambda m: first[m])
        if inside and not (outside and self._is_cut(outside[0], first[outside[0]])):
            return inside[0]
        self._swap(outside[0])
        return outside[0]

    def _is_cut(self, model: str, since: float) -> bool:
        waited = self.now - max(since, self.swapped)
        return waited >= max(CUT_S, CUT_SHARE * self.costs[model].swap_s)

    def _swap(self, model: str) -> None:
        cost = self.costs[model]
        is_first = True
        while sum(self.costs[m].num_bytes for m in self.resident) + cost.num_bytes > self.limit:
            self.resident.pop(0)
            is_first = False
        self.resident.append(model)
        self.now += cost.swap_s
        self.swapped = self.now
        if not is_first:
            self.num_swaps += 1
            self.swap_s += cost.swap_s

    def serve(self, model: str) -> None:
        """One move in every game that waits for it."""
        waiting = [game for game in self.live if game.waits_for == model]
        self.now += len(waiting) * self.costs[model].move_s
        self.num_moves += len(waiting)
        for game in waiting:
            game.ply += 1
            game.since = self.now
        self.resident.remove(model)
        self.resident.append(model)
