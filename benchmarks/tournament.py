"""The arena itself, models aside: real games at several widths, and an engine beside python-chess.

    python -m benchmarks.tournament [--games 10000] [--plies 20] [--in-flight 1 50 500]
                                    [--nodes 2000] [--engine-plies 120]

Random players play whole games through agents, referee and store, every move acknowledged after its
commit; each width plays `--games` games into a database of its own, in turns so that a busy machine
disturbs all alike. Of the widest run: bytes a move, standings, and the start of `arena resume` with
two games left to play. Then Stockfish plays itself at fixed nodes, one process, first in
python-chess's own engine loop and then here, turn and turn about; the moves must be the same.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import chess.engine

from agents.uci_client import find_binary
from arena.config import Config, build_config
from arena.events import Subscription
from arena.report import standings
from arena.running import run_new
from arena.store import Store, queries

Figures = dict[str, object]
PLAYERS = 10
TURNS = 4


class Silent:
    async def follow(self, events: Subscription) -> None:
        async for _ in events:
            pass


def play(config: Config, db: Path) -> tuple[float, float, int]:
    """(wall, CPU seconds of this process, moves) of a whole run."""
    with Store.open(db) as store:
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(run_new(config, store, Silent(), lambda text: None))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return wall, cpu, queries.run_status(store, queries.latest_run(store).id).moves


def random_config(games: int, plies: int, in_flight: int, seed: int) -> Config:
    pairings = PLAYERS * (PLAYERS - 1) // 2
    pairs = -(-games // (2 * pairings))  # no fewer games than were asked for
    section = {"game": "chess", "pairs": pairs, "max_plies": plies, "at_cap": "material"}
    players = [{"kind": "random", "name": f"random-{number}"} for number in range(PLAYERS)]
    run = {"concurrency": in_flight, "seed": seed}
    return build_config({"run": run, "games": [section], "players": players})


def widths(folder: Path, args: argparse.Namespace) -> tuple[list[Figures], Path]:
    """Moves a second and CPU a move at each width; the database of the last."""
    total = {width: [0.0, 0.0, 0] for width in args.in_flight}
    db = folder
    for turn in range(TURNS):
        for width in args.in_flight:
            db = folder / f"{width}.db"
            config = random_config(args.games // TURNS, args.plies, width, turn)
            for place, value in enumerate(play(config, db)):
                total[width][place] += value
    rows: list[Figures] = [
        {
            "in_flight": width,
            "moves": moves,
            "moves_per_s": round(moves / wall),
            "cpu_us_per_move": round(cpu / moves * 1e6),
        }
        for width, (wall, cpu, moves) in total.items()
    ]
    return rows, db


def of_the_record(db: Path) -> Figures:
    """What a database of many games costs to keep, to rate and to go on with."""
    with Store.open(db) as store:
        runs = [info.id for info in queries.runs(store)]
        games = sum(queries.run_status(store, run).finished for run in runs)
        moves = sum(queries.run_status(store, run).moves for run in runs)
        began = time.perf_counter()
        standings(store, runs)
        rated = time.perf_counter() - began
    found: Figures = {"games": games, "moves": moves, "standings_s": round(rated, 3)}
    found["bytes_per_move"] = round(db.stat().st_size / moves)
    reopened = db.with_suffix(".resume.db")
    shutil.copy(db, reopened)
    run = max(runs)
    with sqlite3.connect(reopened) as connection:  # as if the last two had been interrupted
        connection.execute(
            "UPDATE games SET status = 'aborted', result = '*', rated = 0 WHERE id IN "
            "(SELECT id FROM games WHERE run_id = ? ORDER BY id DESC LIMIT 2)", (run,)
        )  # fmt: skip
    connection.close()
    found["resume_start_s"] = round(resume_start(reopened, run), 2)
    return found


def resume_start(db: Path, run: int) -> float:
    """Seconds from the start of the process to the line of its first game."""
    command = [sys.executable, "-m", "arena.cli", "resume", str(run), "--db", str(db)]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        took = time.perf_counter() - began
        assert line.startswith("Started game"), line
        process.stdout.read()
    return took


def chess_loop(binary: str, nodes: int, plies: int) -> tuple[float, list[str]]:
    """(seconds, moves): python-chess's own loop, a fresh search for every move as here."""
    board = chess.Board()
    with chess.engine.SimpleEngine.popen_uci(binary) as engine:
        limit = chess.engine.Limit(nodes=nodes)
        began = time.perf_counter()
        while len(board.move_stack) < plies and not board.is_game_over(claim_draw=True):
            move = engine.play(board, limit, game=object()).move
            assert move is not None
            board.push(move)
        return time.perf_counter() - began, [move.uci() for move in board.move_stack]


def our_loop(nodes: int, plies: int, db: Path) -> tuple[float, list[str]]:
    """The same game as a tournament of one slot, recorded."""
    fish = {"kind": "uci", "path": "stockfish", "nodes": nodes, "processes": 1}
    section = {"game": "chess", "format": "match", "swap": False, "max_plies": plies}
    config = build_config(
        {"games": [section], "players": [{**fish, "name": "a"}, {**fish, "name": "b"}]}
    )
    with Store.open(db) as store:
        asyncio.run(run_new(config, store, Silent(), lambda text: None))
        run = queries.latest_run(store).id
        (game,) = queries.games_with_moves(store, run)
        started, ended = game.started, game.ended
        assert ended is not None
        return ended - started, [move.uci for move in game.moves]


def engine_overhead(folder: Path, nodes: int, plies: int) -> Figures:
    binary = find_binary("stockfish")
    if binary is None:
        return {"skipped": "no stockfish (Debian: apt install stockfish)"}
    theirs, ours, num_moves = [], [], 0
    for _ in range(TURNS):
        outside, moves = chess_loop(binary, nodes, plies)
        inside, same = our_loop(nodes, plies, folder / "engine.db")
        assert moves[: len(same)] == same, "not the same game"
        num_moves = len(same)
        theirs.append(outside / len(moves) * 1000)
        ours.append(inside / num_moves * 1000)
    return {
        "nodes": nodes,
        "moves": num_moves,
        "python_chess_ms_per_move": round(statistics.median(theirs), 3),
        "ours_ms_per_move": round(statistics.median(ours), 3),
        "overhead_ms_per_move": round(statistics.median(ours) - statistics.median(theirs), 3),
        "turns": TURNS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--plies", type=int, default=20)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 50, 500])
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--engine-plies", type=int, default=120)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, db = widths(Path(folder), args)
        found: Figures = {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python "
            + platform.python_version(),
            "load_1min": round(os.getloadavg()[0], 1),
            "widths": rows,
            "record": of_the_record(db),
            "engine": engine_overhead(Path(folder), args.nodes, args.engine_plies),
        }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
