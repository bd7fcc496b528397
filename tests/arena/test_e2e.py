"""Whole processes: without torch, interrupted, killed, resumed; what is recorded is never lost."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.uci_client import find_binary

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, "-m", "arena.cli"]

# What only the engine needs; importing one of them fails as if it were not installed.
BLOCKED = ("torch", "triton", "tokenizers", "safetensors", "gguf", "transformers")
WITHOUT = f"""
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
from arena.cli import main
sys.argv = ["arena", *sys.argv[1:]]
main()
"""

CUP = """
[run]
seed = 1
concurrency = 4
[[games]]
game = "chess"
pairs = 2
max_plies = 30
at_cap = "material"
[[games]]
game = "janggi"
max_plies = 30
at_cap = "points"
[[players]]
kind = "random"
[[players]]
kind = "material"
[[players]]
kind = "scripted"
behaviour = "late"
seconds = {seconds}
"""
SLOTS = 18
PATIENCE_S = 600  # of a busy machine; nothing here is measured by it
pytestmark = pytest.mark.timeout(3000)


def cup(folder: Path, seconds: float = 0.005) -> str:
    """A small tournament; one player waits so long before each of its moves."""
    file = folder / "cup.toml"
    file.write_text(CUP.format(seconds=seconds))
    return str(file)


def arena(*args: str, without: bool = False) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WITHOUT] if without else RUN
    return subprocess.run(
        [*command, *args], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S
    )


def start(*args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*RUN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


def rows(db: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(db)
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


def played(db: Path) -> list[tuple[object, ...]]:
    """Every move of the finished games, by slot."""
    return rows(
        db,
        "SELECT g.slot_id, m.ply, m.uci FROM moves m JOIN games g ON g.id = m.game_id "
        "WHERE g.status = 'finished' ORDER BY g.slot_id, m.ply",
    )


def wait_for_moves(db: Path, process: "subprocess.Popen[str]", number: int) -> None:
    """Until the record holds so many moves."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        try:
            if rows(db, "SELECT count(*) FROM moves")[0][0] >= number:  # type: ignore[operator]
                return
        except sqlite3.OperationalError:
            pass  # not there yet
        time.sleep(0.02)
    raise AssertionError("the run does not get on")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    """The moves of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    done = arena("run", cup(folder), "--db", str(folder / "cup.db"), "-q")
    assert done.returncode == 0, done.stderr
    assert rows(folder / "cup.db", "SELECT count(*) FROM games WHERE status = 'finished'") == [
        (SLOTS,)
    ]
    return played(folder / "cup.db")


def test_random_and_uci_players_need_no_torch(tmp_path: Path) -> None:
    if find_binary("stockfish") is None:
        pytest.skip("skipped: no stockfish (Debian: apt install stockfish)")
    db = tmp_path / "a.db"
    engine = "stockfish?nodes=50&startup_timeout=300&stall_timeout=300"  # the machine may be busy
    done = arena(
        "play", "random", engine, "--db", str(db), "--max-plies", "12",
        "--at-cap", "material", without=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Finished game 2 (stockfish:n50 vs random): " in done.stdout
    assert rows(db, "SELECT status, count(*) FROM games GROUP BY status") == [("finished", 2)]


def test_a_model_without_torch_is_one_line(tmp_path: Path) -> None:
    done = arena("play", "smollm2-135m", "random", "--db", str(tmp_path / "a.db"), without=True)
    assert done.returncode == 4
    faults = [line for line in done.stderr.splitlines() if line.startswith("arena: ")]
    assert len(faults) == 1
    assert "pip install 'madang[local]'" in faults[0]
    assert "Traceback" not in done.stderr


def test_ctrl_c_stops_and_resume_finishes(tmp_path: Path, whole: list[tuple[object, ...]]) -> None:
    db = tmp_path / "cup.db"
    process = start("run", cup(tmp_path), "--db", str(db))
    wait_for_moves(db, process, 40)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert f"Go on with: arena resume 1 --db {db}" in err
    assert "Traceback" not in err
    assert rows(db, "SELECT count(*) FROM games WHERE status = 'running'") == [(0,)]
    kept = played(db)
    done = arena("resume", "--db", str(db), "-q")
    assert done.returncode == 0, done.stderr
    assert played(db) == whole
    assert set(kept) <= set(whole)


def test_a_second_process_may_not_play_the_same_run(tmp_path: Path) -> None:
    db = tmp_path / "cup.db"
    process = start("run", cup(tmp_path, seconds=30), "--db", str(db))
    try:
        wait_for_moves(db, process, 1)
        done = arena("resume", "1", "--db", str(db))
        assert done.returncode == 2
        assert "is being played by another process" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        fresh = arena("run", cup(tmp_path), "--db", str(db), "--fresh")
        assert fresh.returncode == 2
        assert "is being played by another process" in fresh.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130


def kill_and_resume(folder: Path, kills: int, seed: int) -> Path:
    """Kill a run so often at random instants, going on each time; the database at its end."""
    db = folder / "cup.db"
    draw = random.Random(seed)
    process = start("run", cup(folder), "--db", str(db), "-q")
    seen = 0
    for _ in range(kills):
        wait_for_moves(db, process, seen + draw.randrange(1, 40))
        time.sleep(draw.random() * 0.05)
        process.kill()
        process.communicate()
        seen = int(str(rows(db, "SELECT count(*) FROM moves")[0][0]))
        process = start("resume", "--db", str(db), "-q")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return db


def check_whole(db: Path, whole: list[tuple[object, ...]]) -> None:
    """Every slot finished once, no game twice, the moves those of an uninterrupted run."""
    finished = "SELECT slot_id, count(*) FROM games WHERE status = 'finished' GROUP BY slot_id"
    assert rows(db, finished) == [(slot, 1) for slot in range(1, SLOTS + 1)]
    others = rows(db, "SELECT DISTINCT status FROM games WHERE status <> 'finished'")
    assert others in ([], [("superseded",)])
    assert played(db) == whole
    wrong = (
        "SELECT count(*) FROM games g WHERE g.plies <> "
        "(SELECT count(*) FROM moves WHERE game_id = g.id)"
    )
    assert rows(db, wrong) == [(0,)]
    assert rows(db, "PRAGMA integrity_check") == [("ok",)]


def test_kill_at_random_instants(tmp_path: Path, whole: list[tuple[object, ...]]) -> None:
    check_whole(kill_and_resume(tmp_path, kills=10, seed=int(os.environ.get("SEED", "1"))), whole)


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(10))
def test_kill_drill(tmp_path: Path, whole: list[tuple[object, ...]], seed: int) -> None:
    check_whole(kill_and_resume(tmp_path, kills=10, seed=100 + seed), whole)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_a_full_disk_stops_cleanly(tmp_path: Path) -> None:
    """A limit on file size stands for the full disk: SQLite meets it as one."""
    db = tmp_path / "cup.db"
    limited = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
        "from arena.cli import main\n"
        "sys.argv = ['arena', *sys.argv[1:]]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, "run", cup(tmp_path), "--db", str(db), "-q"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert str(db) in done.stderr
    again = arena("resume", "--db", str(db), "-q")
    assert again.returncode == 0, again.stderr
    assert rows(db, "SELECT count(*) FROM games WHERE status = 'finished'") == [(SLOTS,)]
