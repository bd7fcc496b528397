"""The same figures for a terminal: aligned columns, every rating with its interval.

Widths count terminal cells, so Hangul names stand straight. Names and details come from outside:
control characters in them are shown, never sent.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from arena.store import Store

from .standings import standings
from .summary import summary

Row = Mapping[str, Any]
SMALL_MODEL = "A 135M model tests the plumbing and not chess: read the tables as such."


def standings_text(store: Store, run_id: int | Sequence[int] | None = None) -> str:
    """Every table of `standings`."""
    return "\n\n".join(_standings(table) for table in standings(store, run_id)["games"])


def summary_text(store: Store, run_id: int | None = None) -> str:
    """Standings, endings, latency and the engine's use of a run."""
    found = summary(store, run_id)
    run = found["run"]
    parts = [_standings(table) for table in standings(store, run["id"])["games"]]
    parts += [_endings(found["games"]), _latency(found["players"]), _engines(found["engines"])]
    if any("135m" in model.lower() for model in run["models"]):
        parts.append(SMALL_MODEL)
    return "\n\n".join(part for part in parts if part)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Aligned columns, the first `left` of them to the left."""
    cells = [[clean(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(headers))]
    lines = []
    for row in cells:
        parts = []
        for column, cell in enumerate(row):
            space = " " * (widths[column] - width(cell))
            parts.append(cell + space if column < left else space + cell)
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def width(text: str) -> int:
    """Terminal cells."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def clean(text: str) -> str:
    """One line without control characters or marks that turn the direction of writing."""
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join("·" if unicodedata.category(char) in hidden else char for char in text)


def _standings(pool: Row) -> str:
    league = any("league" in player for player in pool["players"])
    headers = ["player", "games", "score", pool["scale"], "95 %", "distinct"]
    headers += ["forfeits", "legality", "legal mass", *(["league"] if league else [])]
    rows = [_standing(player, league) for player in pool["players"]]
    lines = [f"{pool['game']}, {pool['rules']}: {pool['rules_text']}", table(headers, rows)]
    if pool["terms"]:
        lines.insert(1, f"under {pool['terms']}")
    lines += [clean(verdict) for verdict in pool["verdicts"]]
    played = any(player["games"] for player in pool["players"])
    if first := pool["first_move"]:
        lines.append(f"moving first: {_signed(first['rating'])} ({_range(first)})")
    if played and pool["board"]["games"] < sum(p["games"] for p in pool["players"]) / 2:
        lines.append(_board(pool))
    if match := pool["match"]:
        lines.append(_match(match))
    return "\n".join(lines) if played else f"{lines[0]}\nno rated game yet"


def _standing(player: Row, league: bool) -> list[str]:
    legality = player["legality"]
    shown = f"{legality:.1%}" if isinstance(legality, float) else legality or "–"
    mass = player["legal_mass"]
    return [
        player["name"],
        str(player["games"]),
        f"{player['score']:g}",
        _signed(player["rating"]),
        _range(player),
        str(player["distinct"]),
        str(player["forfeits"]),
        shown,
        "–" if mass is None else f"{mass:.1%}",
        *([f"{player['league']:g}"] if league else []),
    ]


def _board(pool: Row) -> str:
    count = pool["board"]["games"]
    if not count:
        return "decided on the board: none"
    shown = [
        f"{clean(p['name'])} {_signed(p['rating'])} ({_range(p)})"
        for p in pool["board"]["players"]
        if p["games"]
    ]
    return f"decided on the board ({count}): {', '.join(shown)}"


def _match(match: Row) -> str:
    counts = " ".join(map(str, match["pentanomial"]))
    elo, nelo = (_figure(match, name) for name in ("elo", "nelo"))
    los = "–" if match["los"] is None else f"{match['los']:.1%}"
    test = match["sprt"]
    return (
        f"{clean(match['a'])} − {clean(match['b'])}: Elo {elo}, normalised {nelo}, LOS {los}, "
        f"pairs 0 ½ 1 1½ 2: {counts}, LLR {test['llr']:.2f} "
        f"({test['bounds'][0]:.2f}, {test['bounds'][1]:.2f}) [{test['elo0']:g}, {test['elo1']:g}]"
    )


def _figure(match: Row, name: str) -> str:
    low, high = match[f"{name}_low"], match[f"{name}_high"]
    if match[name] is None:
        return "–"
    return f"{_signed(match[name])} ({_signed(low)} to {_signed(high)})"


def _endings(games: Sequence[Row]) -> str:
    rows = [
        (game["game"], end["ending"], end["termination"], end["result"], str(end["games"]))
        for game in games
        for end in game["endings"]
    ]
    rows += [(game["game"], "open", "", "", str(game["open"])) for game in games if game["open"]]
    if not rows:
        return ""
    return "How games ended\n" + table(("game", "by", "termination", "result", "games"), rows, 4)


def _latency(players: Sequence[Row]) -> str:
    headers = ("player", "game", "moves", "move", "queue", "TTFT", "decode", "tokens/s", "hits")
    rows = []
    for player in players:
        times = [_spread(player[name]) for name in ("seconds", "queue", "ttft", "decode")]
        speed = player["tokens_per_s"]
        rate = player["prefix_hit_rate"]
        rows.append(
            (
                player["name"],
                player["game"],
                str(player["moves"]),
                *times,
                "–" if speed is None else f"{speed['p50']:.3g}",
                "–" if rate is None else f"{rate:.0%}",
            )
        )
    if not rows:
        return ""
    title = "Latency, seconds: p50 / p90 / p95 (TTFT contains the queue)"
    return f"{title}\n{table(headers, rows, 2)}"


def _engines(engines: Sequence[Row]) -> str:
    rows = [
        (
            engine["model"],
            str(engine["steps"]),
            _number(engine["mean_batch"], ".2f"),
            _number(engine["mean_rows"], ".1f"),
            _number(engine["prefix_hit_rate"], ".0%"),
            _number(engine["tokens_per_s"], ".3g"),
            str(engine["peak_running"]),
            f"{engine['peak_kv_usage']:.0%}",
            str(engine["num_preemptions"]),
        )
        for engine in engines
    ]
    headers = ["engine", "steps", "mean batch", "rows/step", "prefix hits", "tokens/s"]
    headers += ["peak running", "peak KV", "preemptions"]
    return table(headers, rows) if rows else ""


def _spread(times: Row | None) -> str:
    return "–" if times is None else " / ".join(f"{times[p]:.3g}" for p in ("p50", "p90", "p95"))


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.0f}".replace("-", "−")


def _range(row: Row) -> str:
    if row["low"] is None:
        return "–"
    return f"{_signed(row['low'])} to {_signed(row['high'])}"
