"""Backups, checks and vacuum: a copy taken while moves are written, broken promises named."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from arena.store import Store, StoreError, queries
from arena.store.maintenance import backup, check, vacuum

from .store_kit import PLAYERS, START, end, move, slots


async def write(store: Store, plies: int) -> int:
    planned = slots(2)
    run_id = await store.create_run(name="demo", seed=1, config={}, players=PLAYERS, slots=planned)
    game = await store.start_game(run_id, planned[0], START)
    for ply in range(1, plies + 1):
        await store.append_move(game, move(ply))
    await store.finish_game(game, end(planned[0], plies=plies))
    return game


def test_a_sound_database_has_no_faults(target: str) -> None:
    with Store.open(target) as store:
        asyncio.run(write(store, 5))
        assert check(store) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("DELETE FROM moves WHERE ply = 2", "moves without a gap"),
        ("UPDATE games SET result = '*'", "a result for every rated finished game"),
        ("DELETE FROM events WHERE seq = 3", "events of a run numbered from 1"),
        ("UPDATE attempts SET ply = 99 WHERE ply = 2 AND number = 1", "attempts on a ply"),
        ("DELETE FROM prompts", "a row of attempts points at no row of prompts"),
    ],
)
def test_broken_promises_are_named(tmp_path: Path, change: str, fault: str) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        asyncio.run(write(store, 5))
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    with Store.open(path) as store:
        found = check(store)
        assert found
        assert all(fault in line for line in found)


def test_a_backup_is_whole_while_the_store_is_written(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"

    async def both(store: Store) -> None:
        writing = asyncio.create_task(write(store, 60))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(backup, store, copy)
        await writing

    with Store.open(path) as store:
        asyncio.run(both(store))
        with pytest.raises(StoreError, match="is there already: name a new file"):
            backup(store, copy)
        with pytest.raises(StoreError, match="none"):
            backup(store, tmp_path / "none" / "copy.db")
    with Store.open(copy, create=False) as again:
        assert check(again) == []
        assert len(queries.games(again)) <= 1


def test_vacuum_gives_space_back(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        game = asyncio.run(write(store, 200))
        before = path.stat().st_size
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM attempts")
        connection.close()
        vacuum(store)
        assert len(queries.moves(store, game)) == 200
    assert path.stat().st_size < before


def test_a_server_has_its_own_tools(postgres: str, tmp_path: Path) -> None:
    from .store_kit import clean_database

    with Store.open(clean_database(postgres)) as store:
        with pytest.raises(StoreError, match="use its own `pg_dump`"):
            backup(store, tmp_path / "a.db")
        with pytest.raises(StoreError, match="use its own `VACUUM`"):
            vacuum(store)
