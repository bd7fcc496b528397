"""The store under load: moves a second, CPU and bytes a move, standings, opening, open slots.

    python -m benchmarks.store [--games 10000] [--plies 60] [--in-flight 1 50 500] [--target URL]

Two dozen real random chess games are written again and again with the number of games in flight
that is asked for; each move waits for its commit, as in a tournament. Every in-flight setting
writes a run of its own share of `--games`; standings are of all games together.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agents.base import AgentInfo
from arena.records import GameRecord, MoveRecord, Result, Slot, Status
from arena.report import standings
from arena.store import Store
from games.registry import get_game

PLAYERS = tuple(AgentInfo(f"random-{n}", "random", {"kind": "random"}, True) for n in range(10))
RESULTS: tuple[Result, ...] = ("1-0", "0-1", "1/2-1/2")


def sample_games(count: int, plies: int) -> list[tuple[str, list[MoveRecord]]]:
    """(start, moves) of random games."""
    rng, games = random.Random(1), []
    for _ in range(count):
        state = get_game("chess").start()
        moves: list[MoveRecord] = []
        while len(moves) < plies and state.outcome() is None:
            move, side = rng.choice(state.legal_moves()), state.turn
            san, state = state.format_move(move, "san"), state.apply(move)
            fen = state.fen()
            moves.append(MoveRecord(len(moves) + 1, side, "", move.uci, san, fen, 0.001))
        games.append((state.start_fen, moves))
    return games


def slots(count: int) -> list[Slot]:
    rng = random.Random(2)
    found: list[Slot] = []
    for pair in range(count // 2):
        a, b = rng.sample([player.name for player in PLAYERS], 2)
        for first, second in ((a, b), (b, a)):
            found.append(Slot(len(found), "chess", "standard", first, second, pair))
    return found


async def write_run(
    store: Store, planned: list[Slot], games: list[tuple[str, list[MoveRecord]]], in_flight: int
) -> int:
    """Moves written."""
    run_id = await store.create_run(
        name=f"{in_flight} in flight", seed=1, config={}, players=PLAYERS, slots=planned
    )
    waiting: Iterator[Slot] = iter(planned)
    written = 0

    async def worker() -> None:
        nonlocal written
        for slot in waiting:
            start, moves = games[slot.id % len(games)]
            game_id = await store.start_game(run_id, slot, start)
            for move in moves:
                await store.append_move(game_id, move)
            written += len(moves)
            result = RESULTS[slot.id % 3]
            record = GameRecord(slot, Status.FINISHED, start, result, "resigned", plies=len(moves))
            await store.finish_game(game_id, record)

    await asyncio.gather(*(worker() for _ in range(in_flight)))
    await store.finish_run(run_id, "finished")
    return written


def timed(store: Store, count: int, in_flight: int, plies: int) -> dict[str, object]:
    games = sample_games(24, plies)
    planned = slots(count)
    commits = store.writer.num_commits
    wall, cpu = time.perf_counter(), time.process_time()
    written = asyncio.run(write_run(store, planned, games, in_flight))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "in_flight": in_flight,
        "games": count,
        "moves": written,
        "moves_per_s": round(written / wall),
        "cpu_us_per_move": round(cpu / written * 1e6),
        "moves_per_commit": round(written / (store.writer.num_commits - commits), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--plies", type=int, default=60)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 50, 500])
    parser.add_argument("--target", default="")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = args.target or str(Path(folder) / "bench.db")
        each = args.games // len(args.in_flight) // 2 * 2
        with Store.open(target) as store:
            rows = [timed(store, each, count, args.plies) for count in args.in_flight]
        found: dict[str, object] = {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python "
            + platform.python_version(),
            "load_1min": round(os.getloadavg()[0], 1),
            "runs": rows,
        }
        if not args.target:
            moves = sum(int(str(row["moves"])) for row in rows)
            found["bytes_per_move"] = round(os.path.getsize(target) / moves)
        began = time.perf_counter()
        with Store.open(target) as store:
            found["open_s"] = round(time.perf_counter() - began, 4)
            began = time.perf_counter()
            found["open_slots"] = len(store.open_slots(len(rows)))
            found["open_slots_s"] = round(time.perf_counter() - began, 4)
            began = time.perf_counter()
            table = standings(store, range(1, len(rows) + 1))["games"][0]
            found["standings_s"] = round(time.perf_counter() - began, 3)
            found["standings_games"] = sum(player["games"] for player in table["players"]) // 2
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
