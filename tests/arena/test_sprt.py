"""Match figures: by hand, and against log-likelihood ratios that others published."""

import math
import random
from typing import Any

import pytest

from arena.sprt import Sequential, Sprt, elo_of, llr, match_stats, pentanomial

# Results of Stockfish's test framework as printed in its commit messages (Ptnml, bounds, LLR).
PUBLISHED = [
    ((1721, 77704, 208246, 77189, 1732), -1.75, 0.25, 3.19),
    ((210, 9236, 25655, 9432, 187), -1.75, 0.25, 2.93),
    ((134, 5897, 13530, 6129, 118), -1.75, 0.25, 2.93),
    ((178, 43099, 113790, 42954, 169), -1.75, 0.25, 2.97),
    ((372, 17511, 39320, 17934, 399), 0.0, 2.0, 2.93),
    ((39, 11353, 31686, 11822, 33), 0.5, 2.5, 2.96),
    ((153, 7022, 20132, 7354, 155), 0.0, 2.0, 2.93),
]


@pytest.mark.parametrize(("counts", "elo0", "elo1", "printed"), PUBLISHED)
def test_published_likelihood_ratios(
    counts: tuple[int, ...], elo0: float, elo1: float, printed: float
) -> None:
    assert llr(counts, elo0, elo1) == pytest.approx(printed, abs=0.0051)


def test_the_figures_of_a_match_by_hand() -> None:
    # 10 pairs: 1 of 0, 2 of ½, 3 of 1, 3 of 1½, 1 of 2; mean (0+.5+1.5+2.25+1)/10 = 0.525
    stats = match_stats((1, 2, 3, 3, 1))
    assert stats is not None
    # variance: (.525² + 2·.275² + 3·.025² + 3·.225² + .475²) / 10 = 0.080625
    deviation = math.sqrt(0.080625)
    assert stats.pairs == 10
    assert stats.score == pytest.approx(0.525)
    assert stats.elo == pytest.approx(400 * math.log10(0.525 / 0.475))
    assert stats.nelo == pytest.approx(0.025 / (math.sqrt(2) * deviation) * 800 / math.log(10))
    z = 0.025 / (deviation / math.sqrt(10))
    assert stats.los == pytest.approx(0.5 * (1 + math.erf(z / math.sqrt(2))))
    assert stats.elo_high == pytest.approx(elo_of(0.525 + 1.959964 * deviation / math.sqrt(10)))


def test_swapping_the_players_turns_every_figure_round() -> None:
    counts = (3, 10, 25, 14, 6)
    one, other = match_stats(counts), match_stats(counts[::-1])
    assert one is not None
    assert other is not None
    assert one.elo == pytest.approx(-(other.elo or 0))
    assert one.nelo_low == pytest.approx(-(other.nelo_high or 0))
    assert one.los == pytest.approx(1 - (other.los or 0))
    assert llr(counts, 0, 10) == pytest.approx(-llr(counts[::-1], -10, 0), abs=1e-6)


def test_what_cannot_be_said_is_none() -> None:
    assert match_stats((0, 0, 0, 0, 0)) is None
    swept = match_stats((0, 0, 0, 0, 7))
    assert swept is not None
    assert (swept.score, swept.elo, swept.nelo, swept.los) == (1.0, None, None, None)
    drawn = match_stats((0, 0, 4, 0, 0))
    assert drawn is not None
    assert (drawn.elo, drawn.elo_low) == (0.0, None)
    assert llr((0, 0, 0, 0, 0), 0, 5) == 0.0


def test_decisions() -> None:
    test = Sprt(0, 10)
    assert test.bounds == pytest.approx((-2.9444, 2.9444), abs=1e-4)
    assert test.decide((5, 20, 40, 22, 6)) is None
    assert test.decide((39, 113, 316, 180, 80)) == "H1"
    assert test.decide((80, 1130, 3160, 1100, 75)) == "H0"
    assert Sprt(0, 10, alpha=0.01, beta=0.2).bounds[1] == pytest.approx(math.log(0.8 / 0.01))


@pytest.mark.parametrize(
    "words",
    [
        {"elo0": 5, "elo1": 5},
        {"elo0": 0, "elo1": 5, "alpha": 0},
        {"elo0": 0, "elo1": 5, "alpha": 0.6, "beta": 0.5},
        {"elo0": 0, "elo1": 5, "max_pairs": 0},
        {"elo0": 0, "elo1": 9999},
    ],
)
def test_a_test_that_cannot_be_run(words: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="SPRT needs"):
        Sprt(**words)


def test_pairs_to_counts() -> None:
    assert pentanomial([0, 0.5, 1, 1, 1.5, 2, 2]) == (1, 1, 2, 1, 2)
    with pytest.raises(ValueError, match="cannot score"):
        pentanomial([2.5])


def test_nothing_counts_after_the_decision() -> None:
    walk = Sequential(Sprt(0, 100))
    for score in [2.0, 1.5] * 40:
        walk.add(score)
    decided = walk.state()
    assert decided.verdict == "H1"
    assert 0 < walk.num_pairs < 80
    before = list(decided.counts)
    before[4 if walk.num_pairs % 2 else 3] -= 1
    assert Sprt(0, 100).decide(before) is None
    assert decided.llr == llr(decided.counts, 0, 100)
    walk.add(0.0)
    assert walk.state() == decided
    assert "H1 accepted (normalised Elo 100)" in decided.text


@pytest.mark.parametrize(("weights", "right"), [((1, 2, 6, 6, 3), "H1"), ((2, 4, 6, 4, 2), "H0")])
def test_errors_are_as_rare_as_promised(weights: tuple[int, ...], right: str) -> None:
    """The truth is 0 for H0 and about 100 for H1: about 5 % are wrong, seven at most."""
    wrong = 0
    for seed in range(60):
        draw, walk = random.Random(seed), Sequential(Sprt(0, 100))
        while walk.verdict is None:
            walk.add(draw.choices((0, 0.5, 1, 1.5, 2), weights)[0])
        wrong += walk.verdict != right
    assert wrong <= 7


@pytest.mark.parametrize("counts", [(0, 0, 0, 0, 1), (7, 0, 0, 0, 0), (20, 3, 0, 1, 20)])
@pytest.mark.parametrize("elo1", [30.0, 300.0, 900.0])
def test_hypotheses_far_apart_have_a_ratio_too(counts: tuple[int, ...], elo1: float) -> None:
    ratio = llr(counts, 0, elo1)
    assert math.isfinite(ratio)
    assert ratio == pytest.approx(-llr(counts[::-1], -elo1, 0), rel=1e-5)
