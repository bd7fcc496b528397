"""A hundred kills in every format: the record ends as that of a run that nobody disturbed.

Each life is a process of its own, forked from one that has imported the arena already, so that a
hundred of them take seconds; it runs the command line as a person does and is killed with SIGKILL,
some at once, most after a move or more. Run one format with `-k FORMAT -s` to see its figures.
"""

import io
import json
import multiprocessing
import os
import random
import sqlite3
import sys
import time
from collections import defaultdict
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import chess.pgn
import pytest

from arena.report import export, standings
from arena.store import Store, queries
from arena.store.maintenance import check

KILLS = int(os.environ.get("KILLS", "100"))
SEED = int(os.environ.get("SEED", "1"))
GAMES = 200
PATIENCE_S = 600.0  # of a busy machine; nothing here is measured by it
PRELOADED = ["arena.cli", "arena.running", "arena.report", "arena.panel", "agents.scripted"]
PRELOADED += ["agents.random_move", "arena.swiss", "py4swiss.engines"]

# The section's keys, and how many players: 200 games each, if no knockout meeting is tied.
FORMATS: dict[str, tuple[str, int]] = {
    "round_robin": ("pairs = 10", 5),
    "double_round_robin": ("pairs = 5", 5),
    "gauntlet": ("pairs = 25", 5),
    "match": ("pairs = 100", 2),
    "knockout": ("pairs = 20", 6),
    "swiss": ("pairs = 5\nrounds = 5", 8),
    "sprt": ("sprt = { elo0 = 0, elo1 = 3, max_pairs = 100 }", 2),
}


def config(folder: Path, format_: str) -> str:
    """Random movers and ones that wait a little before every move, so that lives last."""
    keys, number = FORMATS[format_]
    late = 'kind = "scripted"\nbehaviour = "late"\nseconds = 0.02\n'
    kinds = (late, 'kind = "random"\n')
    players = [f'[[players]]\nname = "p{n}"\n{kinds[n % 2]}' for n in range(number)]
    file = folder / f"{format_}.toml"
    file.write_text(
        "[run]\nseed = 7\nconcurrency = 4\n"
        f'[[games]]\ngame = "chess"\nformat = "{format_}"\n{keys}\n'
        'openings = "builtin"\nmax_plies = 20\nat_cap = "material"\n' + "".join(players)
    )
    return str(file)


def live(words: list[str], log: str) -> None:
    """One life: the command line, quiet, its faults in a file."""
    sys.argv = ["arena", *words, "-q"]
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    sys.stderr = open(log, "a")  # noqa: SIM115
    from arena.cli import main

    main()


@pytest.fixture(scope="module")
def lives() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def start(lives: ForkServerContext, words: list[str], log: Path) -> BaseProcess:
    process = lives.Process(target=live, args=(words, str(log)))
    process.start()
    return process


def finish(process: BaseProcess, log: Path) -> None:
    process.join(PATIENCE_S)
    assert process.exitcode == 0, log.read_text()


def rows(db: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(db, timeout=PATIENCE_S)
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


def num_moves(db: Path) -> int:
    try:
        return int(rows(db, "SELECT count(*) FROM moves")[0][0])
    except sqlite3.OperationalError:
        return 0  # not there yet


def num_runs(db: Path) -> int:
    try:
        return int(rows(db, "SELECT count(*) FROM runs")[0][0])
    except sqlite3.OperationalError:
        return 0


def killed_and_resumed(lives: ForkServerContext, file: str, db: Path) -> None:
    """Kill a run so often, going on each time; then let it end."""
    draw, log = random.Random(SEED), db.with_suffix(".log")
    first = ["run", file, "--db", str(db)]
    for _ in range(KILLS):
        process = start(lives, ["resume", "--db", str(db)] if num_runs(db) else first, log)
        if draw.random() < 0.8:
            wait_for_moves(db, process, num_moves(db) + draw.randrange(1, 30), log)
            time.sleep(draw.random() * 0.05)
        else:
            time.sleep(draw.random() * 0.5)  # while it starts
        assert process.exitcode is None, f"it ended before its {KILLS} kills: {log.read_text()}"
        process.kill()
        process.join()
    finish(start(lives, ["resume", "--db", str(db)], log), log)


def wait_for_moves(db: Path, process: BaseProcess, number: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while num_moves(db) < number:
        assert process.exitcode is None, log.read_text()
        assert time.monotonic() < deadline, "the run does not get on"
        time.sleep(0.002)


def played(db: Path) -> list[tuple[Any, ...]]:
    """Every finished game by slot: players, result, end and moves."""
    games = rows(
        db,
        "SELECT slot_id, id, first, second, start_fen, result, termination, detail, plies "
        "FROM games WHERE status = 'finished' ORDER BY slot_id",
    )
    moves: dict[int, list[str]] = defaultdict(list)
    for game, uci in rows(db, "SELECT game_id, uci FROM moves ORDER BY game_id, ply"):
        moves[game].append(uci)
    return [(slot, *ends, *moves[game]) for slot, game, *ends in games]


def check_pgn(store: Store, folder: Path) -> int:
    """Every game of the PGN equals the tables, as python-chess reads it; how many."""
    export(store, 1, folder / "games.pgn")
    stream = io.StringIO((folder / "games.pgn").read_text())
    held = queries.games_with_moves(store, 1)
    for game in held:
        read = chess.pgn.read_game(stream)
        assert read is not None
        assert read.errors == []
        assert [move.uci() for move in read.mainline_moves()] == [m.uci for m in game.moves]
        assert read.headers["Result"] == game.result
        assert (read.headers["White"], read.headers["Black"]) == (game.first, game.second)
        assert read.end().board().fen() == (game.moves[-1].fen if game.moves else game.start_fen)
    assert chess.pgn.read_game(stream) is None
    return len(held)


@pytest.mark.drill
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("format_", FORMATS)
def test_a_hundred_kills(lives: ForkServerContext, tmp_path: Path, format_: str) -> None:
    pytest.importorskip("py4swiss")
    file, began = config(tmp_path, format_), time.monotonic()
    whole, db = tmp_path / "whole.db", tmp_path / "killed.db"
    log = tmp_path / "whole.log"
    finish(start(lives, ["run", file, "--db", str(whole)], log), log)
    killed_and_resumed(lives, file, db)

    slots = rows(db, "SELECT id FROM slots ORDER BY id")
    finished = "SELECT slot_id, count(*) FROM games WHERE status = 'finished' GROUP BY slot_id"
    assert rows(db, finished) == [(slot, 1) for (slot,) in slots]
    planned = "SELECT * FROM slots ORDER BY id"
    assert rows(db, planned) == rows(whole, planned)
    assert len(slots) >= GAMES
    others = rows(db, "SELECT DISTINCT status FROM games WHERE status <> 'finished'")
    assert others == [("superseded",)]
    assert played(db) == played(whole)
    with Store.open(db) as store:
        assert check(store) == []
        games = check_pgn(store, tmp_path)
        with Store.open(whole) as other:
            assert standings(store, 1) == standings(other, 1)
    superseded = rows(db, "SELECT count(*) FROM games WHERE status = 'superseded'")[0][0]
    figures = {"format": format_, "kills": KILLS, "games": games, "superseded": superseded}
    print(json.dumps(figures | {"seconds": round(time.monotonic() - began)}))
