"""A run as its events tell it: counts, games in flight, scores, engine rates. Plain data.

`RunView.apply` folds one event in; `arena.panel` draws the result, `arena.lines` words it. Knows
nothing about terminals. Times are seconds of the clock it is given.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.base import ModelSwap, Telemetry
from arena.events import (
    AgentReady,
    Event,
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
from arena.records import NO_RESULT_ENDS, GameRecord, Slot

RECENT = 50
PACE_PLIES = 100
RATE_SAMPLES = 6  # rates are taken over so many samples, about as many seconds


@dataclass(slots=True)
class LiveGame:
    slot: Slot
    fen: str
    plies: int = 0
    last_move: str = ""


@dataclass(slots=True)
class Score:
    """One player's rated games so far in one game under one set of rules."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        return self.wins + self.draws / 2


@dataclass(frozen=True, slots=True)
class Rated:
    """A rating with its 95 % interval."""

    rating: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class EngineRates:
    """One model's engine over the last seconds; None: too early to tell."""

    last: Telemetry
    batch: float | None = None  # mean sequences a step
    prefill_tps: float | None = None  # prompt tokens a second, cached ones left out
    decode_tps: float | None = None
    hit_rate: float | None = None  # prefix cache, of the whole run


@dataclass(slots=True)
class Waves:
    """How models that do not fit together have been exchanged so far."""

    last: ModelSwap
    num_swaps: int = 0
    seconds: float = 0.0
    served: int = 0  # requests

    def add(self, swap: ModelSwap) -> None:
        self.last = swap
        self.num_swaps += 1
        self.seconds += swap.seconds
        self.served += swap.served


@dataclass(slots=True)
class RunView:
    """State of one run. Only `apply` changes it, but for `ratings`."""

    now: Callable[[], float]
    run_id: int = 0
    name: str = ""
    num_games: int = 0
    num_finished: int = 0
    num_no_result: int = 0
    status: str = "starting"
    started: float = 0.0
    plies: int = 0
    max_plies: tuple[int | None, ...] = ()  # the cap of each section
    lengths: list[int] = field(default_factory=list)  # plies of the finished games
    pace: deque[float] = field(
        default_factory=lambda: deque(maxlen=PACE_PLIES)
    )  # last moves' times
    agents: dict[str, str] = field(default_factory=dict)  # name → "", or why it cannot start
    waiting: set[str] = field(default_factory=set)  # agents that have not started yet
    live: dict[int, LiveGame] = field(default_factory=dict)
    scores: dict[str, dict[str, Score]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Score))
    )
    results: list[GameRecord] = field(default_factory=list)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    tests: dict[int, str] = field(default_factory=dict)  # section → how its SPRT stands
    ratings: dict[str, dict[str, Rated]] = field(default_factory=dict)  # set by who computes them
    samples: dict[str, deque[tuple[float, Telemetry]]] = field(default_factory=dict)
    waves: Waves | None = None

    def apply(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.run_id, self.name, self.status = event.run_id, event.name, "running"
                self.num_games, self.num_finished = event.num_games, event.num_finished
                self.max_plies = event.max_plies
                self.started = self.now()
                self.waiting = {info.name for info in event.players}
            case AgentReady():
                self.waiting.discard(event.player)
                self.agents[event.player] = event.error
                if event.error:
                    self.recent.append(event.error)
            case GameStarted():
                self.live[event.game_id] = LiveGame(event.slot, event.start_fen)
            case MovePlayed():
                self.plies += 1
                self.pace.append(self.now())
                game = self.live.setdefault(event.game_id, LiveGame(event.slot, ""))
                game.fen, game.plies, game.last_move = (
                    event.move.fen,
                    event.move.ply,
                    event.move.uci,
                )
            case GameFinished():
                self.live.pop(event.game_id, None)
                self._finished(event.record)
            case SprtTested():
                self.tests[event.section] = event.text
            case TelemetrySampled():
                self._sampled(event.samples)
            case ModelsSwapped():
                self._swapped(event.swap)
            case Noted():
                self.recent.append(event.text)
            case RunFinished():
                self.status = event.status

    def _sampled(self, samples: tuple[Telemetry, ...]) -> None:
        for sample in samples:
            kept = self.samples.setdefault(sample.model, deque(maxlen=RATE_SAMPLES))
            kept.append((self.now(), sample))

    def _swapped(self, swap: ModelSwap) -> None:
        self.waves = self.waves or Waves(swap)
        self.waves.add(swap)

    def _finished(self, record: GameRecord) -> None:
        self.recent.append(finished_line(record))
        if record.termination in NO_RESULT_ENDS:
            self.num_no_result += 1
            return
        self.num_finished += 1
        self.lengths.append(record.plies)
        if not record.rated or record.result == "*":
            return
        self.results.append(record)
        slot = record.slot
        first, second = (self.scores[slot.game][name] for name in (slot.first, slot.second))
        match record.result:
            case "1-0":
                first.wins += 1
                second.losses += 1
            case "0-1":
                first.losses += 1
                second.wins += 1
            case "1/2-1/2":
                first.draws += 1
                second.draws += 1

    @property
    def elapsed(self) -> float:
        return self.now() - self.started if self.started else 0.0

    def eta(self) -> float | None:
        """Seconds to the end, by the pace of the last moves; None: too early to tell.

        A game that has not ended goes to its cap, or to the mean length of those that have.
        """
        left = self.num_games - self.num_finished
        usual = sum(self.lengths) / len(self.lengths) if self.lengths else None
        if not left or len(self.pace) < 2 or self.now() <= self.pace[0]:
            return None
        caps = {cap for cap in self.max_plies if cap is not None}
        length = max(caps) if caps and None not in self.max_plies else usual
        if length is None:
            return None
        under_way = sum(game.plies for game in self.live.values())
        to_play = max(0.0, left * length - under_way)
        return to_play * (self.now() - self.pace[0]) / len(self.pace)

    def rates(self) -> list[EngineRates]:
        return [_rates(list(kept)) for kept in self.samples.values() if kept]


def _rates(samples: list[tuple[float, Telemetry]]) -> EngineRates:
    (begin, old), (end, new) = samples[0], samples[-1]
    queried = new.prefix_cache_queries
    hit_rate = new.prefix_cache_hits / queried if queried else None
    steps, seconds = new.steps - old.steps, end - begin
    if steps <= 0 or seconds <= 0:
        return EngineRates(new, hit_rate=hit_rate)
    cached = new.prefix_cache_hits - old.prefix_cache_hits
    prompt = new.prompt_tokens - old.prompt_tokens - cached
    return EngineRates(
        new,
        batch=(new.sequences - old.sequences) / steps,
        prefill_tps=max(0, prompt) / seconds,
        decode_tps=(new.completion_tokens - old.completion_tokens) / seconds,
        hit_rate=hit_rate,
    )


def started_line(slot: Slot, num_games: int) -> str:
    return f"Started game {slot.id} of {num_games} ({slot.first} vs {slot.second})"


def swapped_line(swap: ModelSwap) -> str:
    out = ", ".join(swap.out) or "none"
    return (
        f"Swapped models: {out} → {swap.into} ({swap.seconds:.1f} s), {swap.served} requests served"
    )


def finished_line(record: GameRecord) -> str:
    slot = record.slot
    players = f"{slot.first} vs {slot.second}"
    return f"Finished game {slot.id} ({players}): {record.result} {{{record.detail}}}"
