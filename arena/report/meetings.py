"""Who met whom and how it went, as data: the crosstable of a run, and two players head to head.

    crosstable(store) -> {"games": [{"game", "rules", "terms", "players": [{"name", "games",
        "score", "against": {rival: {"wins", "draws", "losses"}}}]}]}
    head_to_head(store, a, b) -> {"a", "b", "games": [{"game", "rules", "terms", "wins", "draws",
        "losses", "first": {...}, "second": {...}, "match": {...} or null, "list": [...]}]}

Counted from rated games alone; wins are those of the player named first. `first` and `second` part
them by who moved first. Figures with intervals are `arena.report.standings`' business.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.spec import nearest
from arena.store import Store, StoreError, queries
from arena.store.queries import GameInfo

from .pools import Pool, pools, run_list, shown_terms
from .standings import POINTS, match_figures

Row = dict[str, Any]
WON, DRAWN, LOST = "wins", "draws", "losses"


def crosstable(store: Store, run_id: int | Sequence[int] | None = None) -> Row:
    """Every meeting, one table a pool of games; players by score, the best first."""
    run_ids = run_list(store, run_id)
    found = pools(store, run_ids)
    terms = shown_terms(found)
    return {"games": [_head(pool, terms) | {"players": _players(pool)} for pool in found]}


def head_to_head(store: Store, a: str, b: str, run_id: int | Sequence[int] | None = None) -> Row:
    """The games of two players. Raises StoreError for a name that no player has."""
    run_ids = run_list(store, run_id)
    known = {agent.name for one in run_ids for agent in queries.players(store, one)}
    for name in (a, b):
        if name not in known:
            listed = ", ".join(sorted(known))
            raise StoreError(f"no player {name!r}{nearest(name, known)}: there are {listed}")
    if a == b:
        raise StoreError(f"{a!r} does not play itself: name two players")
    found = pools(store, run_ids)
    terms = shown_terms(found)
    tables = []
    for pool in found:
        games = [game for game in pool.games if {game.first, game.second} == {a, b}]
        if games:
            tables.append(_head(pool, terms) | _duel(a, games, pool))
    return {"a": a, "b": b, "games": tables}


def _head(pool: Pool, terms: Mapping[Any, str]) -> Row:
    return {
        "game": pool.key.game,
        "rules": pool.key.rules,
        "terms": terms.get(pool.key, ""),
    }


def _players(pool: Pool) -> list[Row]:
    names = dict.fromkeys([*pool.players, *(n for g in pool.games for n in (g.first, g.second))])
    against: dict[str, dict[str, Row]] = {name: {} for name in names}
    for game in pool.games:
        for mine, rival in ((game.first, game.second), (game.second, game.first)):
            cell = against[mine].setdefault(rival, {WON: 0, DRAWN: 0, LOST: 0})
            cell[_how(game, mine)] += 1
    rows = [
        {"name": name, "games": sum(map(num_games, cells.values())), "score": _score(cells)}
        | {"against": cells}
        for name, cells in against.items()
    ]
    return sorted(rows, key=lambda row: (-row["score"], row["name"]))


def _duel(a: str, games: Sequence[GameInfo], pool: Pool) -> Row:
    whole, first, second = ({WON: 0, DRAWN: 0, LOST: 0} for _ in range(3))
    for game in games:
        for counts in (whole, first if game.first == a else second):
            counts[_how(game, a)] += 1
    listed = ("id", "run_id", "slot_id", "first", "result", "termination", "detail", "plies")
    return {
        **whole,
        "first": first,
        "second": second,
        "match": match_figures(games, pool.sprt, pool.order),
        "list": [{name: getattr(game, name) for name in listed} for game in games],
    }


def _how(game: GameInfo, player: str) -> str:
    points = POINTS[game.result][0 if game.first == player else 1]
    return {1.0: WON, 0.5: DRAWN, 0.0: LOST}[points]


def num_games(cell: Mapping[str, int]) -> int:
    return cell[WON] + cell[DRAWN] + cell[LOST]


def score(cell: Mapping[str, int]) -> float:
    return cell[WON] + cell[DRAWN] / 2


def _score(cells: Mapping[str, Mapping[str, int]]) -> float:
    return sum(map(score, cells.values()))
