"""Databases that are wrong, full, read-only, newer, shared or killed: one line, nothing lost."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from arena.store import NewerDatabase, Store, StoreError, queries
from arena.store.transaction import Transaction

from .store_kit import PLAYERS, START, attempt, move, slots


async def begin(store: Store, name: str = "demo") -> tuple[int, int]:
    planned = slots(2)
    run_id = await store.create_run(name=name, seed=1, config={}, players=PLAYERS, slots=planned)
    return run_id, await store.start_game(run_id, planned[0], START)


def refusal(target: str | Path, *, create: bool = True) -> str:
    with pytest.raises(StoreError) as caught:
        Store.open(target, create=create)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_what_is_no_database_of_ours_is_named_and_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database at all, but long enough to be read as one " * 50)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()
    before = notes.read_bytes(), other.read_bytes()
    assert "notes.txt is not a madang database" in refusal(notes)
    assert "other.db holds other tables than madang's" in refusal(other)
    assert (notes.read_bytes(), other.read_bytes()) == before
    assert "is a folder: name a database file in it" in refusal(tmp_path)
    assert "a record needs a file" in refusal("sqlite://")
    assert "unknown kind of database 'mysql'" in refusal("mysql://host/x")
    assert "cannot read the database URL" in refusal("://")


def test_a_missing_database_is_made_only_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    assert "there is no database" in refusal(path, create=False)
    assert not path.exists()
    assert "cannot open" in refusal(tmp_path / "none" / "a.db")
    path.touch()
    Store.open(path, create=False).close()
    assert path.stat().st_size > 0


def test_a_newer_database_is_left_alone(target: str) -> None:
    with Store.open(target) as store, store._database.writer.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerDatabase, match="was written by a newer madang") as caught:
        Store.open(target)
    assert "upgrade madang, or name another database" in str(caught.value)


def test_a_read_only_database_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        asyncio.run(begin(store))
    with Store.open(f"sqlite:///{path}?mode=ro") as store:
        assert len(queries.games(store)) == 1
        with pytest.raises(StoreError, match="is read-only: nothing more can be recorded"):
            asyncio.run(begin(store))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")
def test_files_of_another_user(tmp_path: Path) -> None:
    """As `nobody`: an archive in a folder that may not be written, and an unreadable one."""
    for name in ("open.db", "closed.db"):
        with Store.open(tmp_path / name) as store:
            asyncio.run(begin(store))
    (tmp_path / "closed.db").chmod(0o600)
    (tmp_path / "open.db").chmod(0o644)
    for folder in [tmp_path, *tmp_path.parents]:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    code = (
        "import os, sys, asyncio; from arena.store import Store, StoreError, queries\n"
        "from tests.arena.test_store_faults import begin\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        with Store.open(name) as store:\n"
        "            print(len(queries.games(store)))\n"
        "            asyncio.run(begin(store))\n"
        "    except StoreError as error: print(error)\n"
    )
    words = [sys.executable, "-c", code, "open.db", "closed.db"]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=env, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[0] == "1", done.stderr
    assert "open.db" in lines[1]
    assert "closed.db" in lines[2]
    assert len(lines) == 3


def test_a_full_disk_stops_in_one_line_and_loses_nothing(tmp_path: Path) -> None:
    """The limit is SQLite's own page limit, which gives its own error for a full disk."""

    def shrink(tx: Transaction) -> None:
        pages = tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        tx.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 4}")

    def grow(tx: Transaction) -> None:
        tx.connection.exec_driver_sql("PRAGMA max_page_count = 1000000")

    async def write(store: Store) -> tuple[int, int]:
        _, game = await begin(store)
        await store.writer.submit(shrink)
        big = attempt(1, answer="x" * 3000)
        written = 0

        async def fill() -> None:
            nonlocal written
            for ply in range(1, 100):
                await store.append_move(game, move(ply, attempts=(big,)))
                written = ply

        with pytest.raises(StoreError, match=r"no space left for .*free some space, then resume"):
            await fill()
        waiting = [store.append_move(game, move(ply, attempts=(big,))) for ply in range(200, 210)]
        refused = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(answer) for answer in refused} == {StoreError}
        await store.writer.submit(grow)
        await store.append_move(game, move(written + 1))
        return game, written

    path = tmp_path / "a.db"
    with Store.open(path) as store:
        game, written = asyncio.run(write(store))
    assert written > 0
    with Store.open(path) as store:
        assert [m.ply for m in queries.moves(store, game)] == list(range(1, written + 2))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        asyncio.run(begin(store))
        busy = sqlite3.connect(path, isolation_level=None)
        busy.execute("BEGIN IMMEDIATE")
        busy.execute("UPDATE runs SET name = 'half-way'")
        assert queries.latest_run(store).name == "demo"
        with Store.open(path) as other:
            assert queries.latest_run(other).name == "demo"
        busy.execute("COMMIT")
        busy.close()
        assert queries.latest_run(store).name == "half-way"


def test_a_database_held_by_another_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.store.database.BUSY_SECONDS", 0.05)
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        asyncio.run(begin(store))
        busy = sqlite3.connect(path, isolation_level=None)
        busy.execute("BEGIN IMMEDIATE")
        with Store.open(path) as other, pytest.raises(StoreError, match="held by another program"):
            asyncio.run(begin(other))
        busy.close()


def test_a_run_is_written_by_one_store_at_a_time(target: str) -> None:
    with Store.open(target) as one, Store.open(target) as two:
        run_id, game = asyncio.run(begin(one))
        with pytest.raises(StoreError, match=f"run {run_id} of .* is being played by another") as e:
            asyncio.run(two.claim_run(run_id))
        assert f":{os.getpid()})" in str(e.value)
        for write in (
            two.start_game(run_id, slots()[1], START),
            two.append_move(game, move(1)),
            two.finish_run(run_id, "finished"),
        ):
            with pytest.raises(StoreError, match="is being played by another process"):
                asyncio.run(write)
        other, _ = asyncio.run(begin(two, "another run of the same database"))
        assert other != run_id
        one.close()
        asyncio.run(two.claim_run(run_id))
        assert [event.kind for event in queries.events(two, run_id)][-1] == "run_resumed"
    assert not list(Path(target).parent.glob("*-lock"))


WRITER = """
import asyncio, sys
from arena.store import Store
from tests.arena.store_kit import PLAYERS, START, move, slots
async def main():
    store = Store.open(sys.argv[1])
    run_id = await store.create_run(name="r", seed=1, config={}, players=PLAYERS, slots=slots(40))
    async def play(slot):
        game = await store.start_game(run_id, slot, START)
        for ply in range(1, int(sys.argv[2]) + 1):
            await store.append_move(game, move(ply))
            print(game, ply, flush=True)
    await asyncio.gather(*(play(slot) for slot in slots(40)))
    store.close()
asyncio.run(main())
"""


def start_writer(target: str, plies: int) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", WRITER, target, str(plies)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE, text=True)


def test_a_killed_process_loses_nothing_acknowledged(target: str) -> None:
    with start_writer(target, 10_000) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(500)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    acknowledged = [tuple(map(int, line.split())) for line in said if line.endswith("\n")]
    with Store.open(target) as store:
        games = queries.games_with_moves(store, 1)
        kept = {(game.id, m.ply) for game in games for m in game.moves}
        assert set(acknowledged) <= kept
        for game in games:
            assert [m.ply for m in game.moves] == list(range(1, game.plies + 1))
        numbers = [event.seq for event in queries.events(store, 1)]
        assert numbers == list(range(1, len(numbers) + 1))
        asyncio.run(store.claim_run(1))  # the claim died with its process


def test_two_processes_write_two_runs_of_one_database(target: str) -> None:
    Store.open(target).close()
    with start_writer(target, 5) as one, start_writer(target, 5) as two:
        said = [process.communicate(timeout=120)[0] for process in (one, two)]
    assert [process.returncode for process in (one, two)] == [0, 0]
    assert [text.count("\n") for text in said] == [200, 200]
    with Store.open(target) as store:
        assert [queries.run_status(store, run).moves for run in (1, 2)] == [200, 200]
