"""What a match of two players says: Elo, normalised Elo, LOS, and the sequential test (SPRT).

The unit is the pair: two games of one opening with colours swapped, whose scores depend on each
other. Counts are pentanomial: how many pairs scored 0, ½, 1, 1½ and 2 for A. Normalised Elo is
(s − ½) / (√2 σ) · 800 / ln 10 with mean s and standard deviation σ of a pair's score in [0, 1]
(M. Van den Bergh, "Normalized Elo"); the log-likelihood ratio is that of two values of it, each at
its own maximum-likelihood distribution over the five scores.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
NELO = 800 / math.log(10)  # normalised Elo of one standard deviation a game
ELO = 400 / math.log(10)  # Elo of one nat
Z95 = 1.959963984540054
MOST_STEPS = 200  # a handful are enough
MOST_ELO = 5000.0  # of a hypothesis, normalised
MOST_TILT = 40.0  # of the scores; normalised Elo beyond ±70,000
EMPTY = 1e-3  # stands for a count of 0 in the likelihood ratio, as is usual

Pentanomial = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class MatchStats:
    """From A's point of view. None: cannot be said (a score of 0 or 1, or no spread)."""

    pentanomial: Pentanomial
    pairs: int
    score: float  # share of the points
    elo: float | None
    elo_low: float | None
    elo_high: float | None
    nelo: float | None
    nelo_low: float | None
    nelo_high: float | None
    los: float | None  # likelihood of superiority


@dataclass(frozen=True, slots=True)
class Sprt:
    """H1: A is `elo1` better, against H0: `elo0`, in normalised Elo, with error rates α and β.

    Without a decision a run ends after `max_pairs`.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # it is a table of the configuration
    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05
    max_pairs: int = 5000

    def __post_init__(self) -> None:
        if self.max_pairs < 1:
            raise ValueError("SPRT needs max_pairs of 1 or more")
        if not self.elo0 < self.elo1:
            raise ValueError(f"SPRT needs elo0 < elo1, not {self.elo0} and {self.elo1}")
        if max(abs(self.elo0), abs(self.elo1)) > MOST_ELO:
            raise ValueError(f"SPRT needs elo0 and elo1 within ±{MOST_ELO:g}")
        if not (0 < self.alpha < 1 and 0 < self.beta < 1 and self.alpha + self.beta < 1):
            raise ValueError("SPRT needs error rates above 0 with a sum below 1")

    @property
    def bounds(self) -> tuple[float, float]:
        """(accept H0 at or below, accept H1 at or above)."""
        low = math.log(self.beta / (1 - self.alpha))
        return low, math.log((1 - self.beta) / self.alpha)

    def decide(self, pairs: Sequence[int]) -> Literal["H0", "H1"] | None:
        """The hypothesis accepted, or None: go on."""
        return self.verdict(llr(pairs, self.elo0, self.elo1))

    def verdict(self, ratio: float) -> Literal["H0", "H1"] | None:
        """The hypothesis that a log-likelihood ratio accepts; None: go on."""
        low, high = self.bounds
        if ratio >= high:
            return "H1"
        return "H0" if ratio <= low else None


@dataclass(frozen=True, slots=True)
class SprtState:
    """How a sequential test stands, from A's point of view."""

    test: Sprt
    counts: Pentanomial
    llr: float
    verdict: Literal["H0", "H1"] | None

    @property
    def text(self) -> str:
        """`LLR 0.35 (-2.94, 2.94) [0, 10], pairs 0 ½ 1 1½ 2: 1 2 4 2 3`, and the decision."""
        low, high = self.test.bounds
        words = (
            f"LLR {self.llr:.2f} ({low:.2f}, {high:.2f}) [{self.test.elo0:g}, {self.test.elo1:g}], "
            f"pairs 0 ½ 1 1½ 2: {' '.join(map(str, self.counts))}"
        )
        if self.verdict is None:
            return words
        elo = self.test.elo1 if self.verdict == "H1" else self.test.elo0
        return f"{words}: {self.verdict} accepted (normalised Elo {elo:g})"


class Sequential:
    """The test as pairs come in, in their order; nothing counts after its decision."""

    def __init__(self, test: Sprt) -> None:
        self.test = test
        self.counts = [0] * len(SCORES)
        self.llr = 0.0
        self.verdict: Literal["H0", "H1"] | None = None

    @property
    def num_pairs(self) -> int:
        return sum(self.counts)

    def state(self) -> SprtState:
        a, b, c, d, e = self.counts
        return SprtState(self.test, (a, b, c, d, e), self.llr, self.verdict)

    def add(self, score: float) -> None:
        """One more pair by A's points in it (0, ½, 1, 1½, 2)."""
        if self.verdict is not None:
            return
        self.counts[int(2 * score)] += 1
        self.llr = llr(self.counts, self.test.elo0, self.test.elo1)
        self.verdict = self.test.verdict(self.llr)


def pentanomial(pair_scores: Sequence[float]) -> Pentanomial:
    """Counts of pairs by A's points in them (0, ½, 1, 1½, 2). Raises ValueError for others."""
    counts = [0] * 5
    for score in pair_scores:
        if score not in (0, 0.5, 1, 1.5, 2):
            raise ValueError(f"a pair of games cannot score {score}")
        counts[int(2 * score)] += 1
    return (counts[0], counts[1], counts[2], counts[3], counts[4])


def match_stats(counts: Sequence[int]) -> MatchStats | None:
    """The figures of a match; None where no pair is complete."""
    pairs = sum(counts)
    if pairs == 0:
        return None
    mean, deviation = _moments([count / pairs for count in counts])
    error = Z95 * deviation / math.sqrt(pairs)
    nelo = los = nelo_error = None
    if deviation > 0:
        nelo = (mean - 0.5) / (math.sqrt(2) * deviation) * NELO
        nelo_error = Z95 / math.sqrt(2 * pairs) * NELO
        z = (mean - 0.5) * math.sqrt(pairs) / deviation
        los = math.erfc(-z / math.sqrt(2)) / 2
    return MatchStats(
        pentanomial=(counts[0], counts[1], counts[2], counts[3], counts[4]),
        pairs=pairs,
        score=mean,
        elo=elo_of(mean),
        elo_low=elo_of(mean - error) if deviation > 0 else None,
        elo_high=elo_of(mean + error) if deviation > 0 else None,
        nelo=nelo,
        nelo_low=None if nelo is None or nelo_error is None else nelo - nelo_error,
        nelo_high=None if nelo is None or nelo_error is None else nelo + nelo_error,
        los=los,
    )


def elo_of(score: float) -> float | None:
    """The Elo difference that expects this share of the points; None outside (0, 1)."""
    return ELO * math.log(score / (1 - score)) if 0 < score < 1 else None


def llr(counts: Sequence[int], elo0: float, elo1: float) -> float:
    """log(likelihood under `elo1` ÷ likelihood under `elo0`), normalised Elo; 0 without pairs."""
    if sum(counts) == 0:
        return 0.0
    filled = [count or EMPTY for count in counts]
    total = sum(filled)
    shares = [count / total for count in filled]
    under0, under1 = (_closest(shares, elo / NELO * math.sqrt(2)) for elo in (elo0, elo1))
    return total * sum(
        p * math.log(p1 / p0) for p, p0, p1 in zip(shares, under0, under1, strict=True)
    )


def _moments(shares: Sequence[float]) -> tuple[float, float]:
    mean = sum(p * x for p, x in zip(shares, SCORES, strict=True))
    variance = sum(p * (x - mean) ** 2 for p, x in zip(shares, SCORES, strict=True))
    return mean, math.sqrt(max(variance, 0.0))


def _closest(shares: Sequence[float], t: float) -> list[float]:
    """The likeliest distribution with (mean − ½) / deviation = t, where `shares` were seen.

    The constraint is made linear at the current distribution, solved, and made linear again. It
    begins where the constraint holds: far from there the linear one may have no solution.
    """
    current = list(_tilted(t))
    for _ in range(100):
        mean, deviation = _moments(current)
        slopes = [x - 0.5 - t * deviation * (1 + ((x - mean) / deviation) ** 2) / 2 for x in SCORES]
        following = _with_zero_mean(shares, slopes)
        moved = max(abs(a - b) for a, b in zip(current, following, strict=True))
        current = following
        if moved < 1e-10:
            break
    return current


@lru_cache
def _tilted(t: float) -> tuple[float, ...]:
    """A distribution with (mean − ½) / deviation = t: even at 0, else p ∝ e^(λ · score)."""
    low, high = -MOST_TILT, MOST_TILT
    while True:  # the left side grows with λ
        tilt = (low + high) / 2
        weights = [math.exp(tilt * (x - 0.5)) for x in SCORES]
        shares = tuple(weight / sum(weights) for weight in weights)
        mean, deviation = _moments(shares)
        if high - low < 1e-12:
            return shares
        low, high = (tilt, high) if (mean - 0.5) / deviation < t else (low, tilt)


def _with_zero_mean(shares: Sequence[float], values: Sequence[float]) -> list[float]:
    """The likeliest distribution over `values` with mean 0: p_i / (1 + θ v_i).

    The mean falls as θ grows, from one pole to the other: Newton's method between brackets.
    """
    low, high = -1 / max(values), -1 / min(values)
    theta = 0.0 if low < 0 < high else (low + high) / 2
    for _ in range(MOST_STEPS):
        mean = slope = 0.0
        for share, value in zip(shares, values, strict=True):
            ratio = value / (1 + theta * value)
            mean += share * ratio
            slope += share * ratio * ratio
        low, high = (theta, high) if mean > 0 else (low, theta)
        following = theta + mean / slope
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - theta) <= 1e-15 * (high - low) or following == theta:
            break
        theta = following
    return [p / (1 + theta * v) for p, v in zip(shares, values, strict=True)]
