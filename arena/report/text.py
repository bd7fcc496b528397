"""The same figures for a terminal: aligned columns, every rating with its interval.

How lines and columns are made to fit is `arena.report.layout`'s business.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from arena.store import Store

from .layout import table, terminal_width, without_empty, wrapped
from .standings import standings
from .summary import summary

Row = Mapping[str, Any]
SMALL_MODEL = "A 135M model tests the plumbing and not chess: read the tables as such."


def standings_text(
    store: Store,
    run_id: int | Sequence[int] | None = None,
    columns: int | None = None,
    **words: Any,
) -> str:
    """Every table of `standings`, which takes `words`; `columns` None: the terminal's."""
    return tables_text(standings(store, run_id, **words), columns or terminal_width())


def tables_text(found: Row, columns: int) -> str:
    """Every table of what `standings` gave."""
    return "\n\n".join(_standings(pool, columns) for pool in found["games"])


def summary_text(store: Store, run_id: int | None = None, columns: int | None = None) -> str:
    """Standings, endings, latency and the engine's use of a run."""
    columns = columns or terminal_width()
    found = summary(store, run_id)
    run = found["run"]
    parts = [_standings(pool, columns) for pool in standings(store, run["id"])["games"]]
    parts += [
        endings_text(found["games"], columns),
        latency_text(found["players"], columns),
        engines_text(found["engines"], columns),
    ]
    if any("135m" in model.lower() for model in run["models"]):
        parts.append(SMALL_MODEL)
    return "\n\n".join(part for part in parts if part)


def _standings(pool: Row, columns: int) -> str:
    title = f"{pool['game']}, {pool['rules']}: {pool['rules_text']}"
    lines = [title, *([f"under {pool['terms']}"] if pool["terms"] else [])]
    if not any(player["games"] for player in pool["players"]):
        return f"{wrapped(title, columns)}\nno rated game yet"
    tables = [_table(pool, columns)]
    notes = [*pool["verdicts"]]
    if first := pool["first_move"]:
        notes.append(f"moving first: {_signed(first['rating'])} ({_range(first)})")
    if pool["board"]["games"] < sum(player["games"] for player in pool["players"]) / 2:
        tables.append(_board(pool, columns))
    if match := pool["match"]:
        notes.append(match_line(match))
    head = "\n".join(wrapped(line, columns) for line in lines)
    said = "\n".join(wrapped(note, columns) for note in notes)
    return "\n".join(part for part in (head, "\n\n".join(tables), said) if part)


def _table(pool: Row, columns: int) -> str:
    league = any("league" in player for player in pool["players"])
    headers = ["player", "games", "score", pool["scale"], "95 %", "distinct"]
    headers += ["forfeits", "legality", "legal mass", *(["league"] if league else [])]
    rows = [_standing(player, league) for player in pool["players"]]
    return table(*without_empty(headers, rows), columns=columns)


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


def _board(pool: Row, columns: int) -> str:
    """The second table: what the games say that nobody forfeited and nobody adjudicated."""
    count = pool["board"]["games"]
    if not count:
        return "decided on the board: none"
    rows = [
        [p["name"], str(p["games"]), f"{p['score']:g}", _signed(p["rating"]), _range(p)]
        for p in pool["board"]["players"]
        if p["games"]
    ]
    headers = ["player", "games", "score", pool["scale"], "95 %"]
    return f"decided on the board: {count}\n{table(headers, rows, columns=columns)}"


def match_line(match: Row) -> str:
    """What a match of two says, seen by the better of them."""
    counts = " ".join(map(str, match["pentanomial"]))
    elo, nelo = (_figure(match, name) for name in ("elo", "nelo"))
    los = "–" if match["los"] is None else f"{match['los']:.1%}"
    test = match["sprt"]
    return (
        f"{match['a']} − {match['b']}: Elo {elo}, normalised {nelo}, LOS {los}, "
        f"pairs 0 ½ 1 1½ 2: {counts}, LLR {test['llr']:.2f} "
        f"({test['bounds'][0]:.2f}, {test['bounds'][1]:.2f}) [{test['elo0']:g}, {test['elo1']:g}]"
        f"{_decision(test)}"
    )


def _decision(test: Row) -> str:
    if test.get("decision") is None:
        return ""
    elo = test["elo1"] if test["decision"] == "H1" else test["elo0"]
    return f": {test['decision']} accepted (normalised Elo {elo:g})"


def _figure(match: Row, name: str) -> str:
    low, high = match[f"{name}_low"], match[f"{name}_high"]
    if match[name] is None:
        return "–"
    return f"{_signed(match[name])} ({_signed(low)} to {_signed(high)})"


def endings_text(games: Sequence[Row], columns: int) -> str:
    rows = [
        (game["game"], end["ending"], end["termination"], end["result"], str(end["games"]))
        for game in games
        for end in game["endings"]
    ]
    rows += [(game["game"], "open", "", "", str(game["open"])) for game in games if game["open"]]
    if not rows:
        return ""
    headers = ("game", "by", "termination", "result", "games")
    return "How games ended\n" + table(headers, rows, 4, columns)


def latency_text(players: Sequence[Row], columns: int) -> str:
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
    return f"{title}\n{table(*without_empty(headers, rows), 2, columns)}"


def engines_text(engines: Sequence[Row], columns: int) -> str:
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
    return table(*without_empty(headers, rows), columns=columns) if rows else ""


def _spread(times: Row | None) -> str:
    if times is None:
        return "–"
    return " / ".join(_seconds(times[p]) for p in ("p50", "p90", "p95"))


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value >= 0.001 or value == 0 else "<0.001"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.0f}".replace("-", "−")


def _range(row: Row) -> str:
    if row["low"] is None:
        return "–"
    return f"{_signed(row['low'])} to {_signed(row['high'])}"
