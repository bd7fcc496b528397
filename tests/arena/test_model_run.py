"""Runs with the real model through the whole arena: the same games at any concurrency, all kept."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CUP = """
[run]
seed = 7
[[games]]
game = "chess"
max_plies = 2
at_cap = "material"
[[players]]
kind = "llm"
model = "{model}"
name = "model"
temperature = 1.0
[[players]]
kind = "material"
"""


def played(db: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(db)
    try:
        return list(
            connection.execute(
                "SELECT g.slot_id, m.ply, m.uci, g.termination, g.result FROM moves m "
                "JOIN games g ON g.id = m.game_id WHERE g.status = 'finished' "
                "ORDER BY g.slot_id, m.ply"
            )
        )
    finally:
        connection.close()


def rows(db: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(db)
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


def run(config: Path, db: Path, concurrency: int, limit_s: float) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "arena.cli", "run", str(config), "--db", str(db),
         "--concurrency", str(concurrency)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=limit_s,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_a_sampling_model_plays_the_same_games_alone_and_among_others(
    tmp_path: Path, smollm2_dir: Path
) -> None:
    config = tmp_path / "cup.toml"
    config.write_text(CUP.format(model=smollm2_dir))
    found = []
    for concurrency in (1, 2):
        db = tmp_path / f"{concurrency}.db"
        out = run(config, db, concurrency, 280)
        assert "Finished game 2 (" in out
        found.append(played(db))
    assert len(found[0]) == 2 * 2
    assert found[0] == found[1]
    times = "SELECT count(*) FROM moves WHERE player = 'model' AND ttft_s > 0 AND decode_s >= 0"
    assert rows(tmp_path / "2.db", times) == [(2,)]
    answers = "SELECT count(*) FROM attempts WHERE prompt IS NOT NULL AND player = 'model'"
    assert rows(tmp_path / "2.db", answers) == [(2,)]


@pytest.mark.drill
def test_the_demo_is_the_same_at_concurrency_1_and_12(tmp_path: Path, smollm2_dir: Path) -> None:
    found = []
    for concurrency in (1, 12):
        db = tmp_path / f"{concurrency}.db"
        out = run(ROOT / "examples" / "demo.toml", db, concurrency, 3000)
        assert "tests the plumbing and not chess" in out
        assert rows(db, "SELECT DISTINCT status FROM games") == [("finished",)]
        assert rows(db, "SELECT count(*) FROM games") == [(16,)]
        assert rows(db, "SELECT count(*) FROM games WHERE termination = '' OR plies = 0") == [(0,)]
        found.append(played(db))
    assert found[0] == found[1]
