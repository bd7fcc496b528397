"""Care of a database: a copy while it is written, a check of its promises, its space given back.

`backup` and `vacuum` are SQLite's own; a server has its own tools (`pg_dump`, autovacuum).
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, text

from .errors import StoreError, explain
from .queries import reading
from .store import Store

# Each finds rows that break a promise of the store.
CHECKS: Mapping[str, str] = {
    "moves without a gap from 1 to the game's plies": """
        SELECT g.id FROM games AS g LEFT JOIN moves AS m ON m.game_id = g.id
        GROUP BY g.id, g.plies HAVING count(m.ply) <> g.plies OR coalesce(max(m.ply), 0) <> g.plies
    """,
    "at most one running or finished game a slot": """
        SELECT min(id) FROM games WHERE status IN ('running', 'finished')
        GROUP BY run_id, slot_id HAVING count(*) > 1
    """,
    "a result for every rated finished game, and for no other but a finished one": """
        SELECT id FROM games
        WHERE (status = 'finished' AND rated AND result = '*')
           OR (status <> 'finished' AND result <> '*')
    """,
    "events of a run numbered from 1 without a gap": """
        SELECT r.id FROM runs AS r LEFT JOIN events AS e ON e.run_id = r.id
        GROUP BY r.id, r.last_seq
        HAVING count(e.seq) <> r.last_seq OR coalesce(max(e.seq), 0) <> r.last_seq
    """,
    "attempts on a ply that was asked for": """
        SELECT a.game_id FROM attempts AS a JOIN games AS g ON g.id = a.game_id
        WHERE a.ply < 1 OR a.ply > g.plies + 1
    """,
}


def check(store: Store) -> list[str]:
    """What is wrong, a line each; empty for a sound database. Raises StoreError."""
    faults = []
    with reading(store) as connection:
        if connection.dialect.name == "sqlite":
            faults += _file_faults(connection)
        for promise, query in CHECKS.items():
            found = sorted({str(row[0]) for row in connection.execute(text(query))})
            if found:
                faults.append(f"not kept: {promise} ({', '.join(found[:10])})")
    return faults


def _file_faults(connection: Connection) -> list[str]:
    rows = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    faults = [f"damaged: {row}" for row in rows if row != "ok"]
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return faults + [f"a row of {row[0]} points at no row of {row[2]}" for row in orphans[:10]]


def backup(store: Store, file: str | Path) -> None:
    """A whole, consistent copy in a new file, also while a run is written. Raises StoreError."""
    path, source = Path(file), _path(store, "pg_dump")
    if path.exists():
        raise StoreError(f"{path} is there already: name a new file")
    draft = path.with_name(path.name + ".part")
    try:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(draft)) as new:
            old.backup(new, pages=1000, sleep=0.01)
        draft.replace(path)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise explain(error, str(path)) from None


def vacuum(store: Store) -> None:
    """Give the space of deleted rows back to the disk. Raises StoreError while it is written."""
    try:
        with closing(sqlite3.connect(_path(store, "VACUUM"), timeout=5)) as file:
            file.execute("VACUUM")
    except sqlite3.Error as error:
        raise explain(error, store.label) from None


def _path(store: Store, instead: str) -> Path:
    if store.path is None:
        raise StoreError(f"{store.label} is a server's: use its own `{instead}`")
    return store.path
