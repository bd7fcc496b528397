"""A run judged again from its stored answers: which games change, and the standings that follow.

    replay(store, run_id, policy={"attempts": 1}) -> {"run", "parser", "policy", "games":
        [{"game_id", "slot", "how", "before", "after", "ply", "detail"}],
        "readings": [{"player", "before", "after", "answers"}], "counts": {"same", "changed",
        "open"}, "standings": `arena.report.standings`}

Only games that change are listed. Open games count for nobody.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from agents.policy import Policy
from agents.spec import nearest
from arena.rescore import Reader, Rescored, rescore
from arena.store import Store, StoreError, queries

from .layout import table, terminal_width, wrapped
from .pools import pools
from .standings import standings_of
from .text import tables_text

Parser = Literal["current", "stored"]
BATCH = 200  # games held at a time
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Judged:
    games: list[Rescored]
    standings: Row


def replay(
    store: Store,
    run_id: int,
    *,
    parser: Parser = "current",
    policy: Mapping[str, Any] | None = None,
) -> Row:
    """Judge every finished game again; nothing is written. Raises StoreError."""
    found = _judge(store, run_id, parser == "current", policy or {})
    readings = Counter[tuple[str, str, str]]()
    for one in found.games:
        readings += one.readings
    return {
        "run": run_id,
        "parser": parser,
        "policy": dict(policy or {}),
        "counts": _counts(found.games),
        "games": [_row(store, one) for one in found.games if one.how != "same"],
        "readings": [
            {"player": name, "before": before, "after": after, "answers": count}
            for (name, before, after), count in sorted(readings.items())
        ],
        "standings": found.standings,
    }


def replay_text(found: Row, columns: int | None = None) -> str:
    """What `replay` found, for a terminal."""
    columns = columns or terminal_width()
    counts = found["counts"]
    parts = [
        f"{counts['same']} games as before, {counts['changed']} with another end, "
        f"{counts['open']} open (what would follow is not known; they count for nobody)"
    ]
    moved = [r for r in found["readings"] if r["before"] != r["after"]]
    if moved:
        rows = [[r["player"], r["before"], r["after"], str(r["answers"])] for r in moved]
        parts.append(table(["player", "was read as", "now", "answers"], rows, 3, columns))
    games = [
        f"game {row['game_id']}: {row['before']} before, now {row['after']} "
        f"at ply {row['ply']}: {row['detail']}"
        for row in found["games"]
    ]
    parts.append("\n".join(wrapped(line, columns) for line in games))
    parts.append(tables_text(found["standings"], columns))
    return "\n\n".join(wrapped(part, columns) if at == 0 else part for at, part in enumerate(parts))


def _judge(store: Store, run_id: int, again: bool, policy: Mapping[str, Any]) -> _Judged:
    readers = _readers(store, run_id, policy)
    run = queries.run(store, run_id)
    judged: list[Rescored] = []
    games = queries.games(store, run_id, status="finished")
    for at in range(0, len(games), BATCH):
        ids = [game.id for game in games[at : at + BATCH]]
        judged += [
            rescore(game, readers, run.seed, again=again)
            for game in queries.games_by_id(store, ids)
        ]
    after = {one.game.id: one.game for one in judged}
    pooled = pools(store, [run_id])
    for pool in pooled:
        pool.games = [new for game in pool.games if (new := after[game.id]).rated]
    return _Judged(judged, standings_of(store, [run_id], pooled))


def _readers(store: Store, run_id: int, policy: Mapping[str, Any]) -> dict[str, Reader | None]:
    """Raises StoreError for a policy that is none, and where nobody's answers are read."""
    unknown = [key for key in policy if key not in Policy.model_fields]
    if unknown:
        near = nearest(unknown[0], Policy.model_fields)
        known = ", ".join(Policy.model_fields)
        raise StoreError(f"--policy: unknown key {unknown[0]!r}{near}: known are {known}")
    try:
        players = queries.players(store, run_id)
        readers = {info.name: Reader.of(info, policy) for info in players}
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise StoreError(f"--policy: {where}: {fault['msg']}") from None
    if not any(readers.values()):
        raise StoreError(
            f"run {run_id} has no answers to read again: no player of it is in mode free"
        )
    return readers


def _counts(judged: list[Rescored]) -> dict[str, int]:
    counts = Counter(one.how for one in judged)
    return {how: counts[how] for how in ("same", "changed", "open")}


def _row(store: Store, one: Rescored) -> Row:
    before = queries.game_info(store, one.game.id)
    return {
        "game_id": one.game.id,
        "slot": one.game.slot_id,
        "how": one.how,
        "before": f"{before.result} {before.termination}",
        "after": f"{one.game.result} {one.game.termination or 'open'}",
        "ply": one.ply,
        "detail": one.detail,
    }
