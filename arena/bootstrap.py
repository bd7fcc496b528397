"""The games of one pool as numbers, and reweighted copies of them for intervals.

What is reweighted is the pair of games (same opening, colours swapped), within each two players:
Dirichlet weights, Rubin's Bayesian bootstrap. One imagined pair a player, spread over its
opponents and over the four sweeps (A both, B both, the first mover both, the second mover both),
keeps a perfect score from looking certain. Identical games between the same players share the
weight of one: a thousand copies of a game weigh as one.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .bradley_terry import Array, Counts

RESULTS = ("1-0", "1/2-1/2", "0-1")
WIN, _, LOSS = range(3)

Couple = tuple[int, int]  # two players, the lower number first
Outcome = tuple[tuple[int, int], ...]  # of one pair: (meeting, result) of each game, sorted


@dataclass(frozen=True, slots=True)
class RatedGame:
    """One game that counts. Games with the same `unit` between the same players are a pair."""

    first: str
    second: str
    result: str  # 1-0, 0-1 or 1/2-1/2
    unit: object = None  # None: on its own
    signature: str = ""  # equal for identical games; "" is like no other


@dataclass(slots=True)
class Pool:
    """Filled by `gather`; E meetings, each (first mover, second mover)."""

    names: tuple[str, ...]
    meetings: dict[tuple[int, int], int] = field(default_factory=dict)
    outcomes: Counter[tuple[Couple, Outcome]] = field(default_factory=Counter)
    units: Counter[Couple] = field(default_factory=Counter)  # pairs of games
    distinct_units: dict[Couple, float] = field(default_factory=lambda: defaultdict(float))
    distinct_games: Counter[int] = field(default_factory=Counter)  # by player

    def totals(self, *, distinct: bool = False) -> Array:
        """[E, 3]: wins, draws and losses of the first mover; `distinct`: as far as they inform.

        Copies of a game then scale the results of their couple down, all alike.
        """
        totals = np.zeros((len(self.meetings), 3))
        for (couple, outcome), count in self.outcomes.items():
            share = self.distinct_units[couple] / self.units[couple] if distinct else 1.0
            for place in outcome:
                totals[place] += count * share
        return totals


def gather(games: Sequence[RatedGame]) -> Pool:
    """Raises ValueError for a result that is none, or a player who meets himself."""
    pool = Pool(tuple(sorted({name for game in games for name in (game.first, game.second)})))
    number = {name: place for place, name in enumerate(pool.names)}
    copies = Counter(_identity(game) for game in games if game.signature)
    played: dict[tuple[object, Couple], list[tuple[int, int]]] = defaultdict(list)
    shares: dict[tuple[object, Couple], list[float]] = defaultdict(list)
    seen = set()
    for alone, game in enumerate(games):
        if game.result not in RESULTS or game.first == game.second:
            raise ValueError(f"not a game that counts: {game}")
        a, b = number[game.first], number[game.second]
        for meeting in ((a, b), (b, a)):  # both ways round: the imagined pairs need them
            pool.meetings.setdefault(meeting, len(pool.meetings))
        unit = (("alone", alone) if game.unit is None else game.unit, (min(a, b), max(a, b)))
        played[unit].append((pool.meetings[a, b], RESULTS.index(game.result)))
        identity = _identity(game)
        shares[unit].append(1 / copies.get(identity, 1))
        if not game.signature or identity not in seen:
            seen.add(identity)
            pool.distinct_games.update((a, b))
    for unit, results in played.items():
        couple = unit[1]
        pool.outcomes[couple, tuple(sorted(results))] += 1
        pool.units[couple] += 1
        pool.distinct_units[couple] += sum(shares[unit]) / len(shares[unit])
    return pool


def _identity(game: RatedGame) -> tuple[str, str, str]:
    return game.first, game.second, game.signature


def replicate(pool: Pool, count: int, seed: int) -> Counts:
    """`count` reweighted copies of the pool's results, each [count, E]."""
    rows = _real_rows(pool) + _imagined_rows(pool)
    of_couple, effect = _matrices(pool, rows)
    shapes = np.array([shape for _, _, shape in rows])
    weights = np.random.default_rng(seed).gamma(shapes, size=(count, len(rows)))
    wanted = np.array([pool.distinct_units[couple] for couple in pool.units])
    weights *= (wanted / (weights @ of_couple)) @ of_couple.T
    counted = (weights @ effect).reshape(count, len(pool.meetings), 3)
    return Counts(counted[..., 0], counted[..., 1], counted[..., 2])


def _matrices(
    pool: Pool, rows: Sequence[tuple[Couple, Outcome, float]]
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Row → its couple [R, C], and row → the results it adds [R, 3 E]."""
    couples = {couple: place for place, couple in enumerate(pool.units)}
    belongs = [couples[couple] for couple, _, _ in rows]
    numbers = np.arange(len(rows))
    ones = np.ones(len(rows))
    of_couple = sparse.csr_array((ones, (numbers, belongs)), shape=(len(rows), len(couples)))
    places = [
        (row, meeting * 3 + result)
        for row, (_, outcome, _) in enumerate(rows)
        for meeting, result in outcome
    ]
    shape = (len(rows), 3 * len(pool.meetings))
    effect = sparse.csr_array((np.ones(len(places)), tuple(zip(*places, strict=True))), shape=shape)
    return of_couple, effect


def _real_rows(pool: Pool) -> list[tuple[Couple, Outcome, float]]:
    """Each outcome of a pair with the weight it carries on average."""
    return [
        (couple, outcome, times * pool.distinct_units[couple] / pool.units[couple])
        for (couple, outcome), times in pool.outcomes.items()
    ]


def _imagined_rows(pool: Pool) -> list[tuple[Couple, Outcome, float]]:
    opponents = Counter(player for couple in pool.units for player in couple)
    rows: list[tuple[Couple, Outcome, float]] = []
    for couple in pool.units:
        a, b = couple
        home, away = pool.meetings[a, b], pool.meetings[b, a]
        shape = 1 / max(opponents[a], opponents[b]) / 4
        for here, there in ((WIN, LOSS), (LOSS, WIN), (WIN, WIN), (LOSS, LOSS)):
            rows.append((couple, ((home, here), (away, there)), shape))
    return rows
