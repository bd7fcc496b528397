"""Ratings of one pool: one joint fit of all its games, with an interval on everything.

The model is `arena.bradley_terry`: strengths, draws (where any was played) and the first move.
The prior is stated and weak, so that perfect scores stay finite: every strength is normal with
mean 0 and a standard deviation of 400 Elo, the first-move advantage 200 Elo, the draw term 2 nats.
Without anchors the ratings have mean 0 and are not Elo; anchors hold players at known Elo, and the
others' prior is centred on the anchors' mean.

Intervals (95 %) come from `arena.bootstrap`: pairs of games reweighted, and the prior's means drawn
anew for each replicate. Identical games between the same players add to scores and not to evidence:
estimate and interval take them as one.
Pure functions over rows. A pool holds games of one game and one rule set, and every player keeps
its settings throughout; `arena.report.standings` sees to that.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .bootstrap import Pool, RatedGame, gather, replicate
from .bradley_terry import Array, Counts, Model, probabilities, solve

__all__ = ["Difference", "Fit", "RatedGame", "Rating", "fit"]

SCALE = 400 / math.log(10)  # Elo of one nat
PRIOR_SD = 400.0  # Elo
FIRST_MOVE_SD = 200.0  # Elo
DRAW_SD = 2.0  # nats
REPLICATES = 1000
Z95 = 1.959963984540054
MANY = 10_000  # pairs; beyond it a number means nothing
FEW = 6  # players, among whom every difference is told; of more, the neighbours'


@dataclass(frozen=True, slots=True)
class Rating:
    """One line of the standings. Ratings are None for a player without a game."""

    name: str
    games: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    distinct: int = 0  # games, identical ones counted once
    rating: float | None = None
    low: float | None = None
    high: float | None = None
    group: int = 0  # players of two groups never met, directly or through others

    @property
    def score(self) -> float:
        return self.wins + self.draws / 2


@dataclass(frozen=True, slots=True)
class Difference:
    """A − B on the rating scale, with its 95 % interval."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    more_pairs: int | None  # that would tell them apart; None: they are, or it is beyond MANY
    comparable: bool = True

    @property
    def told_apart(self) -> bool:
        return self.comparable and not self.low <= 0 <= self.high

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        pair = f"{self.a} − {self.b}"
        if not self.comparable:
            return f"{pair}: never met, directly or through others"
        if self.told_apart:
            spread = f"{self.low:+.0f} to {self.high:+.0f}"
            figures = f"{self.difference:+.0f} (95 %: {spread})".replace("-", "−")
            return f"{pair}: {figures}"
        count = f"more than {MANY:,}" if self.more_pairs is None else f"about {self.more_pairs:,}"
        plural = "pair" if self.more_pairs == 1 else "pairs"
        return f"{pair}: cannot be told apart; {count} more {plural} needed"


@dataclass(frozen=True, slots=True)
class Fit:
    """Ratings, the best first, and what holds for the pool. First move: None where not fitted."""

    ratings: tuple[Rating, ...]
    differences: tuple[Difference, ...] = ()
    first_move: float | None = None  # advantage of moving first, on the rating scale
    first_move_low: float | None = None
    first_move_high: float | None = None
    anchored: bool = False

    @property
    def scale(self) -> str:
        return "Elo" if self.anchored else "rating, mean 0"


@dataclass(frozen=True, slots=True)
class _Solution:
    """The estimate [n + 2] and its bootstrap [B, n + 2], in nats."""

    pool: Pool
    model: Model
    best: Array
    sample: Array
    groups: tuple[int, ...]  # by player


def fit(
    games: Iterable[RatedGame],
    *,
    players: Sequence[str] = (),
    anchors: Mapping[str, float] | None = None,
    seed: int = 0,
    replicates: int = REPLICATES,
    prior_sd: float = PRIOR_SD,
    first_move: bool = True,
) -> Fit:
    """Ratings of everybody who played, and a line for those of `players` who did not yet.

    `anchors`: name → Elo held fixed. `first_move=False` leaves that term out. The same rows and
    seed give the same figures. Raises ValueError for a game that cannot count.
    """
    pool = gather(list(games))
    unplayed = tuple(Rating(name) for name in players if name not in pool.names)
    if not pool.names:
        return Fit(unplayed)
    held = {name: elo for name, elo in (anchors or {}).items() if name in pool.names}
    centre = sum(held.values()) / len(held) if held else 0.0
    totals = pool.totals(distinct=True)
    model = _model(pool, held, centre, prior_sd, first_move, bool(totals[:, 1].any()))
    wins, draws, losses = (totals[None, :, column] for column in range(3))
    best = solve(model, Counts(wins, draws, losses), np.zeros((1, len(model.start))))[0]
    centres = _prior_sample(model, bool(held), replicates, seed)
    copies = replicate(pool, replicates, seed)
    sample = solve(replace(model, start=best), copies, centres, tolerance=1e-4)
    solution = _Solution(pool, model, best, sample, _groups(pool))
    ratings = _ratings(solution, centre)
    differences = _differences(solution, [rating.name for rating in ratings])
    found = Fit((*ratings, *unplayed), differences, anchored=bool(held))
    if not first_move:
        return found
    advantage, low, high = _with_interval(float(best[-2]), sample[:, -2])
    return replace(found, first_move=advantage, first_move_low=low, first_move_high=high)


def _model(
    pool: Pool,
    held: Mapping[str, float],
    centre: float,
    prior_sd: float,
    first_move: bool,
    draws: bool,
) -> Model:
    size = len(pool.names)
    precision = np.full(size + 2, (SCALE / prior_sd) ** 2)
    precision[size:] = (SCALE / FIRST_MOVE_SD) ** 2, 1 / DRAW_SD**2
    fixed, start = np.zeros(size + 2, dtype=np.bool_), np.zeros(size + 2)
    for name, elo in held.items():
        place = pool.names.index(name)
        fixed[place], start[place] = True, (elo - centre) / SCALE
    fixed[size:] = not first_move, not draws
    first, second = np.array(list(pool.meetings), dtype=np.intp).T
    return Model(first, second, size, precision, fixed, start, draws)


def _prior_sample(model: Model, anchored: bool, replicates: int, seed: int) -> Array:
    """Prior means drawn from the prior, one set a replicate: [B, n + 2].

    Without them the prior would count as knowledge, and a perfect score could not be exceeded.
    """
    rng = np.random.default_rng((seed, 1))
    centres = rng.standard_normal((replicates, len(model.start))) / np.sqrt(model.precision)
    if not anchored:
        strengths = centres[:, : model.players]
        strengths -= strengths.mean(axis=1, keepdims=True)  # ratings keep mean 0
    return centres


def _with_interval(best: float, sample: Array) -> tuple[float, float, float]:
    """(estimate, low, high) on the rating scale; the interval always holds the estimate."""
    low, high = np.percentile(sample, (2.5, 97.5))
    return best * SCALE, min(best, float(low)) * SCALE, max(best, float(high)) * SCALE


def _ratings(solution: _Solution, centre: float) -> tuple[Rating, ...]:
    pool = solution.pool
    totals = pool.totals()
    scores = np.zeros((len(pool.names), 3), dtype=int)
    for (a, b), meeting in pool.meetings.items():
        scores[a] += totals[meeting].astype(int)
        scores[b] += totals[meeting][::-1].astype(int)
    lines = []
    for place, name in enumerate(pool.names):
        figures = _with_interval(float(solution.best[place]), solution.sample[:, place])
        rating, low, high = (figure + centre for figure in figures)
        wins, draws, losses = map(int, scores[place])
        lines.append(
            Rating(
                name, wins + draws + losses, wins, draws, losses, pool.distinct_games[place],
                rating, low, high, solution.groups[place],
            )
        )  # fmt: skip
    return tuple(sorted(lines, key=lambda line: (-(line.rating or 0.0), line.name)))


def _groups(pool: Pool) -> tuple[int, ...]:
    """The connected part of the meetings that each player belongs to, numbered from 0."""
    group = list(range(len(pool.names)))

    def root(player: int) -> int:
        while group[player] != player:
            player = group[player]
        return player

    for a, b in pool.meetings:
        group[root(a)] = root(b)
    roots = [root(player) for player in range(len(pool.names))]
    numbers = {first: number for number, first in enumerate(dict.fromkeys(roots))}
    return tuple(numbers[found] for found in roots)


def _differences(solution: _Solution, ranked: Sequence[str]) -> tuple[Difference, ...]:
    """Every two of a few players, else the neighbours in the standings; the better one first."""
    reach = len(ranked) if len(ranked) <= FEW else 1
    couples = [
        (a, b) for place, a in enumerate(ranked) for b in ranked[place + 1 : place + 1 + reach]
    ]
    return tuple(_difference(solution, a, b) for a, b in couples)


def _difference(solution: _Solution, a: str, b: str) -> Difference:
    i, j = solution.pool.names.index(a), solution.pool.names.index(b)
    best, sample = solution.best, solution.sample
    figures = _with_interval(float(best[i] - best[j]), sample[:, i] - sample[:, j])
    comparable = solution.groups[i] == solution.groups[j]
    told = Difference(a, b, *figures, more_pairs=None, comparable=comparable)
    if not comparable or told.told_apart:
        return told
    return replace(told, more_pairs=_more_pairs(solution, figures))


def _more_pairs(solution: _Solution, figures: tuple[float, float, float]) -> int | None:
    """How many pairs between the two would bring 0 to the edge of the interval, about.

    The precision of the difference grows by a pair's information at the estimate.
    """
    difference, low, high = (figure / SCALE for figure in figures)
    first, draw = solution.best[-2], solution.best[-1]
    information = 0.0
    for log_odds in (difference + first, difference - first):  # A moves first, then B
        win, _, loss = probabilities(np.array([log_odds]), draw, solution.model.draws)
        information += float((win + loss - (win - loss) ** 2)[0]) / 4
    have = (2 * Z95 / (high - low)) ** 2
    if difference == 0 or information == 0:
        return None
    pairs = ((Z95 / difference) ** 2 - have) / information
    return _rounded(max(pairs, 1.0)) if pairs <= MANY else None


def _rounded(pairs: float) -> int:
    """Up to two significant digits, away from promising too much."""
    unit = int(10 ** max(0, math.floor(math.log10(pairs)) - 1))
    return math.ceil(pairs / unit) * unit
