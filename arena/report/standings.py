"""Standings as data: one table a pool of games, each rating with its interval.

    standings(store) -> {"games": [{"game", "rules", "rules_text", "terms", "scale", "planned",
        "players": [{"name", "games", "wins", "draws", "losses", "score", "distinct", "rating",
                     "low", "high", "forfeits", "legality", "legal_mass", "league"}],
        "verdicts": ["A − B: cannot be told apart; about 40 more pairs needed"],
        "differences": [...], "first_move": {"rating", "low", "high"} or null,
        "board": {"games", "players": [...]}, "match": {...} or null}]}

`legality` is the share of turns whose first answer was a legal move; "forced" where the player can
play nothing else (then `legal_mass`, the median raw probability of legal moves, tells); null where
no answer is read. `board` rates the games decided on the board alone. `match` stands where two
players met: Elo, normalised Elo, LOS, pentanomial counts of complete pairs, LLR.
Games that were cut short or have no result never count. `scale` names what ratings mean.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from agents.base import AgentInfo
from arena.ratings import Fit, RatedGame, Rating, fit
from arena.sprt import Sequential, Sprt, llr, match_stats, pentanomial
from arena.store import Store, queries
from arena.store.queries import GameInfo
from games.registry import get_game

from .pools import Pool, pools, run_list, shown_terms

FORCED_MODES = frozenset({"constrained", "choice", "think"})
SPRT = Sprt(0.0, 10.0)  # what the LLR of a two-player table tests, in normalised Elo
POINTS = {"1-0": (1.0, 0.0), "0-1": (0.0, 1.0), "1/2-1/2": (0.5, 0.5)}

Row = dict[str, Any]


def standings(
    store: Store,
    run_id: int | Sequence[int] | None = None,
    *,
    anchors: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Row:
    """The standings of a run (None: the latest), or of several runs counted together.

    Raises StoreError: no such run, or a player whose settings differ between the runs.
    """
    run_ids = run_list(store, run_id)
    return standings_of(store, run_ids, pools(store, run_ids), anchors=anchors, seed=seed)


def standings_of(
    store: Store,
    run_ids: Sequence[int],
    found: Sequence[Pool],
    *,
    anchors: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Row:
    """The standings of pools that are gathered already."""
    terms = shown_terms(found)
    answers = queries.attempt_counts(store, run_ids)
    masses = queries.legal_masses(store, run_ids)
    tables = []
    for pool in found:
        legality = _legality(pool, answers, masses)
        table = _table(pool, legality, anchors, seed)
        tables.append({**table, "terms": terms.get(pool.key, "")})
    return {"games": tables}


def rated(games: Sequence[GameInfo]) -> list[RatedGame]:
    """Rows for `arena.ratings.fit`: a pair is two slots of one run with the same pair number."""
    return [
        RatedGame(game.first, game.second, game.result, (game.run_id, game.pair), game.moves_hash)
        for game in games
    ]


def _table(
    pool: Pool, legality: Mapping[str, Row], anchors: Mapping[str, float] | None, seed: int
) -> Row:
    names = list(pool.players)
    whole = fit(rated(pool.games), players=names, anchors=anchors, seed=seed)
    decided = [game for game in pool.games if game.ending == "board"]
    board = fit(rated(decided), players=names, anchors=anchors, seed=seed)
    league = _league(pool)
    forfeits = _forfeits(pool.games)
    rows = []
    for rating in whole.ratings:
        row = _rating_row(rating) | {"forfeits": forfeits[rating.name]}
        row |= legality.get(rating.name, {"legality": None, "legal_mass": None})
        rows.append(row if league is None else row | {"league": league[rating.name]})
    return {
        "game": pool.key.game,
        "rules": pool.key.rules,
        "rules_text": get_game(pool.key.game).rule_sets.get(pool.key.rules, ""),
        "scale": whole.scale,
        "planned": pool.slots,
        "players": rows,
        "verdicts": [difference.text for difference in whole.differences],
        "differences": [
            asdict(difference) | {"told_apart": difference.told_apart}
            for difference in whole.differences
        ],
        "first_move": _first_move(whole),
        "board": {"games": len(decided), "players": [_rating_row(r) for r in board.ratings]},
        "match": match_figures(pool.games, pool.sprt, pool.order),
    }


def _rating_row(rating: Rating) -> Row:
    row = asdict(rating) | {"score": rating.score}
    first = ("name", "games", "wins", "draws", "losses", "score", "distinct")
    return {name: row[name] for name in (*first, "rating", "low", "high", "group")}


def _first_move(found: Fit) -> Row | None:
    if found.first_move is None:
        return None
    low, high = found.first_move_low, found.first_move_high
    return {"rating": found.first_move, "low": low, "high": high}


def _forfeits(games: Sequence[GameInfo]) -> Counter[str]:
    """Games that each player lost by protocol."""
    losers = {"1-0": "second", "0-1": "first"}
    return Counter(
        getattr(game, losers[game.result])
        for game in games
        if game.ending == "protocol" and game.result in losers
    )


def _legality(pool: Pool, answers: Sequence[Row], masses: Sequence[Row]) -> dict[str, Row]:
    legal: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    for row in answers:
        here = (row["run_id"], row["section"]) in pool.sections
        if here and row["is_first"] and row["kind"] not in ("resign", "draw_offer"):
            turns[row["player"]] += row["answers"]
            if row["kind"] == "move":
                legal[row["player"]] += row["answers"]
    mass: dict[str, list[float]] = defaultdict(list)
    for row in masses:
        if (row["run_id"], row["section"]) in pool.sections:
            mass[row["player"]].append(row["legal_mass"])
    found: dict[str, Row] = {}
    for name, agent in pool.players.items():
        share: float | str | None = legal[name] / turns[name] if turns[name] else None
        held = median(mass[name]) if mass[name] else None
        found[name] = {"legality": "forced" if _forced(agent) else share, "legal_mass": held}
    return found


def _forced(agent: AgentInfo) -> bool:
    return agent.kind in ("llm", "endpoint") and agent.config.get("mode") in FORCED_MODES


def _league(pool: Pool) -> Mapping[str, float] | None:
    """League points where the rules have them: (win, points win, points loss, loss).

    A win on points pays less than mate or a forfeit. A draw, which these rules do not know but
    players may agree, shares what a points game pays.
    """
    presets = getattr(get_game(pool.key.game), "presets", {})
    pays = getattr(presets.get(pool.key.rules), "league", None)
    if pays is None:
        return None
    win, points_win, points_loss, loss = map(float, pays)
    points: dict[str, float] = dict.fromkeys(pool.players, 0.0)
    for game in pool.games:
        by_points = game.termination.endswith("_points") or game.ending == "adjudicated"
        gains = (points_win, points_loss) if by_points else (win, loss)
        if game.result == "1/2-1/2":
            gains = ((points_win + points_loss) / 2,) * 2
        winner = game.second if game.result == "0-1" else game.first
        loser = game.first if winner == game.second else game.second
        points[winner] += gains[0]
        points[loser] += gains[1]
    return points


def match_figures(
    games: Sequence[GameInfo], test: Sprt | None = None, order: Sequence[str] = ()
) -> Row | None:
    """The figures of a match of two, seen by the better of them; None for more players or none.

    With a sequential `test` they are seen by the first of `order`, the player under test.
    """
    names = {name for game in games for name in (game.first, game.second)}
    if len(names) != 2:
        return None
    scores = dict.fromkeys(names, 0.0)
    for game in games:
        scores[game.first] += POINTS[game.result][0]
        scores[game.second] += POINTS[game.result][1]
    a, b = sorted(names, key=lambda name: (-scores[name], name))
    if test is not None and b == next(iter(order), None):
        a, b = b, a
    pair_scores = _pair_scores(games, a)
    stats = match_stats(pentanomial(pair_scores))
    if stats is None:
        return None
    return {"a": a, "b": b} | asdict(stats) | {"sprt": _tested(pair_scores, test)}


def _pair_scores(games: Sequence[GameInfo], player: str) -> list[float]:
    """The player's points in each complete pair of games, in the pairs' order."""
    pairs: dict[tuple[int, int], list[tuple[str, float]]] = defaultdict(list)
    for game in games:
        side = 0 if game.first == player else 1
        pairs[game.run_id, game.pair].append((game.first, POINTS[game.result][side]))
    complete = [p for _, p in sorted(pairs.items()) if len(p) == 2 and p[0][0] != p[1][0]]
    return [first[1] + second[1] for first, second in complete]


def _tested(pair_scores: Sequence[float], test: Sprt | None) -> Row:
    """What the LLR says: of a sequential test up to its decision, else of all pairs."""
    if test is None:
        test, decided = SPRT, None
        ratio = llr(pentanomial(pair_scores), test.elo0, test.elo1)
    else:
        walk = Sequential(test)
        for score in pair_scores:
            walk.add(score)
        ratio, decided = walk.llr, walk.verdict
    bounds = list(test.bounds)
    found: Row = {"elo0": test.elo0, "elo1": test.elo1, "llr": ratio, "bounds": bounds}
    return found | {"decision": decided}
