"""What a run was like, as data: how games ended, where the time went, how the engine was used.

    summary(store, run_id) -> {"run": {...}, "games": [{"game", "rules", "finished", "open",
        "endings": [{"ending", "termination", "result", "games"}],
        "forfeits": {player: {kind: games}}}],
        "players": [{"game", "name", "moves", "seconds", "queue", "prefill", "decode", "ttft",
                     "tokens_per_s", "prompt_tokens", "cached_tokens", "completion_tokens",
                     "prefix_hit_rate", "random_moves"}],
        "engines": [{"model", "steps", "mean_batch", "prefix_hit_rate", "tokens_per_s", ...}]}

A time is {"p50", "p90", "p95"} in seconds (nearest rank), null where it is not known: never a bare
mean. `ttft` counts from submission and contains `queue`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from arena.store import Store, queries
from arena.store.queries import GameInfo

Row = dict[str, Any]
COUNTERS = (
    "steps", "rows", "sequences", "prompt_tokens", "completion_tokens", "prefix_cache_queries",
    "prefix_cache_hits", "num_preemptions", "busy_seconds",
)  # fmt: skip


def summary(store: Store, run_id: int | None = None) -> Row:
    """The summary of a run (None: the latest). Raises StoreError where there is none."""
    info = queries.latest_run(store) if run_id is None else queries.run(store, run_id)
    status = queries.run_status(store, info.id)
    ended = info.finished
    return {
        "run": {
            "id": info.id,
            "name": info.name,
            "status": info.status,
            "seed": info.seed,
            "slots": status.slots,
            "finished": status.finished,
            "open": status.open,
            "moves": status.moves,
            "seconds": None if ended is None else max(0.0, ended - info.created),
            "models": sorted(_models(store, info.id)),
        },
        "games": _endings(store, info.id),
        "players": _players(queries.latency_rows(store, info.id)),
        "engines": _engines(queries.telemetry(store, info.id)),
    }


def percentiles(values: Iterable[float | None]) -> Row | None:
    """p50, p90 and p95 by nearest rank of the values that are known; None without any."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    ranks = {p: -(-len(known) * p // 100) for p in (50, 90, 95)}
    return {f"p{p}": known[rank - 1] for p, rank in ranks.items()}


def _models(store: Store, run_id: int) -> set[str]:
    configs = (agent.config for agent in queries.players(store, run_id))
    return {str(config["model"]) for config in configs if config.get("model")}


def _endings(store: Store, run_id: int) -> list[Row]:
    tables: dict[tuple[str, str], list[GameInfo]] = defaultdict(list)
    for one in queries.games(store, run_id):
        tables[one.game, one.rules].append(one)
    slots = Counter((slot.game, slot.rules) for slot in queries.slots(store, run_id))
    rows = []
    for (game, rules), planned in sorted(slots.items()):
        games = tables[game, rules]
        finished = sum(one.status == "finished" for one in games)
        ways = Counter((one.ending, one.termination, one.result) for one in games if one.ending)
        endings = [
            {"ending": way[0], "termination": way[1], "result": way[2], "games": count}
            for way, count in sorted(ways.items(), key=lambda item: (-item[1], item[0]))
        ]
        row = {"game": game, "rules": rules, "finished": finished, "open": planned - finished}
        rows.append(row | {"endings": endings, "forfeits": _forfeits(games)})
    return rows


def _forfeits(games: Sequence[GameInfo]) -> dict[str, dict[str, int]]:
    """Player → by protocol end → games lost so."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for game in games:
        if game.ending == "protocol" and game.result in ("1-0", "0-1"):
            loser = game.second if game.result == "1-0" else game.first
            found[loser][game.termination] += 1
    return {name: dict(kinds) for name, kinds in sorted(found.items())}


def _players(moves: Sequence[Row]) -> list[Row]:
    by_player: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for move in moves:
        by_player[move["game"], move["player"]].append(move)
    return [_player(game, name, rows) for (game, name), rows in sorted(by_player.items())]


def _player(game: str, name: str, moves: Sequence[Row]) -> Row:
    prompt, cached, completion = (
        sum(move[key] for move in moves)
        for key in ("prompt_tokens", "cached_tokens", "completion_tokens")
    )
    return {
        "game": game,
        "name": name,
        "moves": len(moves),
        "seconds": percentiles(move["seconds"] for move in moves),
        "queue": percentiles(move["queue_s"] for move in moves),
        "prefill": percentiles(move["prefill_s"] for move in moves),
        "decode": percentiles(move["decode_s"] for move in moves),
        "ttft": percentiles(move["ttft_s"] for move in moves),
        "tokens_per_s": percentiles(
            move["completion_tokens"] / move["decode_s"] for move in moves if move["decode_s"]
        ),
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "completion_tokens": completion,
        "prefix_hit_rate": cached / prompt if prompt else None,
        "random_moves": sum(bool(move["random_move"]) for move in moves),
    }


def _engines(samples: Sequence[Row]) -> list[Row]:
    by_model: dict[str, list[Row]] = defaultdict(list)
    for sample in samples:
        by_model[sample["model"]].append(sample)
    return [_engine(model, rows) for model, rows in sorted(by_model.items())]


def _engine(model: str, samples: Sequence[Row]) -> Row:
    """Counters start again with the process, so a resumed run adds the last of each life."""
    lasts = [
        sample
        for sample, following in zip(samples, [*samples[1:], None], strict=True)
        if following is None or following["steps"] < sample["steps"]
    ]
    total = {name: sum(last[name] for last in lasts) for name in COUNTERS}
    steps, busy = total["steps"], total["busy_seconds"]
    asked = total["prefix_cache_queries"]
    return {
        "model": model,
        "samples": len(samples),
        **total,
        "mean_batch": total["sequences"] / steps if steps else None,
        "mean_rows": total["rows"] / steps if steps else None,
        "prefix_hit_rate": total["prefix_cache_hits"] / asked if asked else None,
        "tokens_per_s": total["completion_tokens"] / busy if busy else None,
        "queue_depth": percentiles(sample["num_requests_waiting"] for sample in samples),
        "peak_running": max(sample["num_requests_running"] for sample in samples),
        "peak_kv_usage": max(sample["kv_cache_usage_perc"] for sample in samples),
    }
