"""Crosstable and head to head for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from arena.store import Store

from .layout import clean, table, terminal_width, wrapped
from .meetings import crosstable, head_to_head, num_games, score
from .text import match_line

Row = Mapping[str, Any]


def crosstable_text(
    store: Store, run_id: int | Sequence[int] | None = None, columns: int | None = None
) -> str:
    """Points of every player against every other one, the best first."""
    columns = columns or terminal_width()
    return "\n\n".join(_cross(pool, columns) for pool in crosstable(store, run_id)["games"])


def head_to_head_text(
    store: Store,
    a: str,
    b: str,
    run_id: int | Sequence[int] | None = None,
    columns: int | None = None,
) -> str:
    """What two players did against each other, seen by the first, with every game."""
    columns = columns or terminal_width()
    found = head_to_head(store, a, b, run_id)
    if not found["games"]:
        return wrapped(f"{a} and {b} have no rated game yet", columns)
    return "\n\n".join(_duel(a, b, pool, columns) for pool in found["games"])


def _title(pool: Row, columns: int) -> list[str]:
    lines = [f"{pool['game']}, {pool['rules']}"]
    lines += [f"under {pool['terms']}"] if pool["terms"] else []
    return [wrapped(line, columns) for line in lines]


def _cross(pool: Row, columns: int) -> str:
    players = pool["players"]
    numbers = [str(number) for number in range(1, len(players) + 1)]
    rows = []
    for number, player in zip(numbers, players, strict=True):
        cells = [_cell(player, rival) for rival in players]
        rows.append([f"{number:>{len(numbers[-1])}} {player['name']}", _points(player), *cells])
    grid = table(["player", "points", *numbers], rows, columns=columns)
    return "\n".join([*_title(pool, columns), grid])


def _points(player: Row) -> str:
    return f"{player['score']:g}/{player['games']}"


def _cell(player: Row, rival: Row) -> str:
    if player is rival:
        return "·"
    met = player["against"].get(rival["name"])
    return "–" if met is None else f"{score(met):g}/{num_games(met)}"


def _duel(a: str, b: str, pool: Row, columns: int) -> str:
    rows = [
        _counts("all games", pool),
        _counts(f"{a} moves first", pool["first"]),
        _counts(f"{b} moves first", pool["second"]),
    ]
    head = ["", "games", "+", "=", "−", "score"]
    lines = [*_title(pool, columns), wrapped(f"{a} against {b}", columns)]
    lines.append(table(head, rows, columns=columns))
    if pool["match"] is not None:
        lines.append(wrapped(match_line(pool["match"]), columns))
    games = [
        [str(game["id"]), game["first"], game["result"], str(game["plies"]), clean(game["detail"])]
        for game in pool["list"]
    ]
    lines += ["", *_games(games, columns)]
    return "\n".join(lines)


def _counts(name: str, cell: Row) -> list[str]:
    counts = [str(cell[how]) for how in ("wins", "draws", "losses")]
    return [name, str(num_games(cell)), *counts, f"{score(cell):g}"]


def _games(games: Sequence[Sequence[str]], columns: int) -> list[str]:
    lines = []
    for number, first, result, plies, detail in games:
        words = f"game {number}: {first} moved first, {result} after {plies} plies: {detail}"
        lines.append(wrapped(words, columns))
    return lines
