"""Ratings: the fit against an outside tool and by hand, intervals, copies, anchors, verdicts."""

import math
import random

import choix
import pytest

from arena.ratings import PRIOR_SD, SCALE, RatedGame, fit

RESULTS = ("1-0", "1/2-1/2", "0-1")


def pairs(a: str, b: str, results: list[tuple[str, str]], start: int = 0) -> list[RatedGame]:
    """Pairs of games: the result with `a` first, then with `b` first."""
    games = []
    for unit, (home, away) in enumerate(results, start):
        games += [RatedGame(a, b, home, unit), RatedGame(b, a, away, unit)]
    return games


def simulated(
    truth: dict[str, float], count: int, draws: float, first: float, seed: int
) -> list[RatedGame]:
    rng, games, unit = random.Random(seed), [], 0
    names = sorted(truth)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            for _ in range(count):
                unit += 1
                for x, y in ((a, b), (b, a)):
                    half = (truth[x] - truth[y] + first) / SCALE / 2
                    weights = (math.exp(half), draws, math.exp(-half))
                    games.append(RatedGame(x, y, rng.choices(RESULTS, weights)[0], unit))
    return games


@pytest.mark.parametrize("prior_sd", [200.0, PRIOR_SD, 2000.0])
def test_without_draws_and_first_move_it_is_choix(prior_sd: float) -> None:
    truth = {"a": 150.0, "b": 20.0, "c": -40.0, "d": -130.0}
    games = simulated(truth, 12, draws=0.0, first=0.0, seed=3)
    names = sorted(truth)
    won = [
        (names.index(first), names.index(second))
        for game in games
        for first, second in [
            (game.first, game.second) if game.result == "1-0" else (game.second, game.first)
        ]
    ]
    penalty = (SCALE / prior_sd) ** 2 / 2  # choix subtracts penalty · Σθ²
    expected = choix.opt_pairwise(4, won, alpha=penalty, tol=1e-10) * SCALE
    found = fit(games, prior_sd=prior_sd, first_move=False, replicates=10)
    ratings = {line.name: line.rating for line in found.ratings}
    assert [ratings[name] for name in names] == pytest.approx(expected, abs=1e-3)


def test_a_score_of_three_quarters_is_191_elo_but_for_the_prior() -> None:
    games = pairs("a", "b", [("1-0", "0-1")] * 150 + [("1-0", "1-0")] * 50 + [("0-1", "0-1")] * 50)
    found = fit(games, replicates=10, prior_sd=1e6)
    (line,) = found.differences
    assert line.difference == pytest.approx(400 * math.log10(400 / 100), abs=0.01)
    assert found.first_move == pytest.approx(0, abs=1e-6)
    assert sum(rating.rating or 0 for rating in found.ratings) == pytest.approx(0, abs=1e-6)


def test_the_first_move_and_draws_are_found_again() -> None:
    truth = {"a": 100.0, "b": 0.0, "c": -100.0}
    found = fit(simulated(truth, 800, draws=2.0, first=60.0, seed=1), replicates=200)
    assert found.first_move == pytest.approx(60, abs=12)
    assert found.first_move_low is not None
    assert found.first_move_high is not None
    assert found.first_move_low < 60 < found.first_move_high
    for line in found.ratings:  # 3,200 games each: a standard deviation of 7
        assert line.rating == pytest.approx(truth[line.name], abs=22)


def test_a_perfect_score_is_finite_and_uncertain_both_ways() -> None:
    (best, worst) = fit(pairs("a", "b", [("1-0", "0-1")] * 5)).ratings
    assert best.name == "a"
    assert best.rating is not None
    assert best.low is not None
    assert best.high is not None
    assert 100 < best.rating < 500
    assert best.low < best.rating - 100
    assert best.rating + 50 < best.high < 1000
    assert worst.rating == pytest.approx(-best.rating)


def test_more_games_narrow_the_interval() -> None:
    def span(count: int) -> float:
        results = [("1-0", "1-0"), ("1-0", "0-1"), ("0-1", "0-1")] * count
        (line,) = fit(pairs("a", "b", results)).differences
        return line.high - line.low

    assert span(40) < span(10) / 1.6
    assert span(10) < span(2) / 1.5


def test_copies_of_a_game_count_once_and_are_counted() -> None:
    def played(count: int, *, copies: bool) -> list[RatedGame]:
        return [
            RatedGame(first, second, result, unit, first if copies else f"{first}{unit}")
            for unit in range(count)
            for first, second, result in (("a", "b", "1-0"), ("b", "a", "0-1"))
        ]

    copied, other, once = (
        fit(played(50, copies=True)), fit(played(50, copies=False)), fit(played(1, copies=True))
    )  # fmt: skip
    assert (copied.ratings[0].games, copied.ratings[0].distinct) == (100, 2)
    assert (other.ratings[0].games, other.ratings[0].distinct) == (100, 100)
    assert copied.ratings[0].rating == pytest.approx(once.ratings[0].rating)
    assert not copied.differences[0].told_apart
    assert other.differences[0].told_apart


def test_the_same_seed_gives_the_same_figures_and_order_does_not_matter() -> None:
    games = simulated({"a": 50, "b": 0, "c": -50}, 10, draws=1.0, first=0.0, seed=5)
    assert fit(games, seed=4) == fit(games, seed=4)
    shuffled = fit([*games[10:], *games[:10]], seed=4).ratings
    for one, other in zip(fit(games, seed=4).ratings, shuffled, strict=True):
        assert (one.name, one.games) == (other.name, other.games)
        assert one.rating == pytest.approx(other.rating, abs=1e-6)


def test_anchors_hold_and_name_the_scale() -> None:
    games = simulated({"a": 100, "b": 0, "c": -100}, 40, draws=1.0, first=0.0, seed=2)
    free = fit(games, replicates=50)
    held = fit(games, anchors={"b": 1500.0, "nobody": 3000.0}, replicates=50)
    both = fit(games, anchors={"a": 2000.0, "c": 1000.0}, replicates=50)
    lines = {line.name: line for line in held.ratings}
    assert (free.scale, held.scale) == ("rating, mean 0", "Elo")
    assert (lines["b"].rating, lines["b"].low, lines["b"].high) == (1500, 1500, 1500)
    apart = {(line.a, line.b): line.difference for line in free.differences}
    assert lines["a"].rating == pytest.approx(1500 + apart["a", "b"], abs=10)
    ends = {line.name: line.rating for line in both.ratings}
    assert ends["a"] == pytest.approx(2000)
    assert ends["c"] == pytest.approx(1000)
    assert ends["b"] is not None
    assert 1000 < ends["b"] < 2000


def test_players_who_never_met_are_not_compared() -> None:
    games = [*pairs("a", "b", [("1-0", "0-1")] * 9), *pairs("c", "d", [("1-0", "0-1")] * 9, 50)]
    found = fit(games, players=["a", "b", "c", "d", "late"])
    groups = {line.name: line.group for line in found.ratings}
    assert groups["a"] == groups["b"] != groups["c"] == groups["d"]
    texts = {(line.a, line.b): line.text for line in found.differences}
    assert texts["a", "c"] == "a − c: never met, directly or through others"
    assert found.ratings[-1].name == "late"
    assert found.ratings[-1].rating is None


def test_verdicts_say_how_many_pairs_would_tell_and_are_about_right() -> None:
    truth = {"a": 30.0, "b": -30.0}
    (line,) = fit(simulated(truth, 12, draws=1.0, first=0.0, seed=8)).differences
    assert not line.told_apart
    assert line.more_pairs is not None
    expected = f"cannot be told apart; about {line.more_pairs:,} more pairs needed"
    assert line.text == f"{line.a} − {line.b}: {expected}"
    share = 1 / (1 + math.exp(-line.difference / SCALE))
    later = 12 + line.more_pairs
    wins = round(later * share)
    results = [("1-0", "0-1")] * (2 * wins - later) + [("1-0", "1-0"), ("0-1", "0-1")] * (
        later - wins
    )
    (settled,) = fit(pairs(line.a, line.b, results)).differences
    assert abs(settled.low) < 0.6 * settled.difference  # near the edge of being told apart


def test_equal_players_need_more_pairs_than_anyone_plays() -> None:
    (line,) = fit(pairs("a", "b", [("1-0", "1-0"), ("0-1", "0-1")] * 3)).differences
    assert line.text == "a − b: cannot be told apart; more than 10,000 more pairs needed"


def test_no_games_and_impossible_games() -> None:
    assert fit([]).ratings == ()
    assert [line.games for line in fit([], players=["a"]).ratings] == [0]
    with pytest.raises(ValueError, match="not a game that counts"):
        fit([RatedGame("a", "b", "*")])
    with pytest.raises(ValueError, match="not a game that counts"):
        fit([RatedGame("a", "a", "1-0")])


def test_only_draws() -> None:
    found = fit(pairs("a", "b", [("1/2-1/2", "1/2-1/2")] * 20))
    assert found.ratings[0].rating == pytest.approx(0, abs=1e-6)
    assert found.ratings[0].draws == 40


@pytest.mark.drill
@pytest.mark.parametrize("gap", [0.0, 100.0, 300.0])
@pytest.mark.parametrize("count", [10, 40])
def test_intervals_hold_the_truth_as_often_as_they_say(gap: float, count: int) -> None:
    truth = {"a": gap / 2, "b": -gap / 2}
    held = 0
    for seed in range(300):
        (line,) = fit(
            simulated(truth, count, draws=1.0, first=40.0, seed=seed), replicates=300
        ).differences
        sign = 1 if line.a == "a" else -1
        held += line.low <= sign * gap <= line.high
    assert 0.90 <= held / 300 <= 0.99


def test_names_keep_their_own_signs() -> None:
    found = fit(pairs("a-1", "b-2", [("1-0", "0-1")] * 20), replicates=50)
    (line,) = found.differences
    assert line.text.startswith("a-1 − b-2: +")
