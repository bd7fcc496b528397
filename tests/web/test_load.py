"""A hundred viewers on one wall of fifty games: nothing is lost, whatever is cut off between.

Delay and CPU are printed, not asserted: they depend on what else the machine does.
"""

import asyncio
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.base import AgentInfo
from arena.records import MoveRecord, Slot
from arena.store import Store
from games.registry import get_game

from . import sample

pytest.importorskip("fastapi", reason="no fastapi here (pip install madang[web])")

VIEWERS, GAMES, ROUNDS = 100, 50, 20
EVENT = re.compile(rb'data: {"seq":(\d+),"at":([\d.]+),"kind":"move"')
PERIOD_S = 1.0  # one move in every game
SERVE = "import sys; from arena.web.server import serve; serve(sys.argv[1], port=int(sys.argv[2]))"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def viewer_process(tmp_path: Path) -> Iterator[tuple[Path, int, int]]:
    """A database, and the port and process id of a server over it."""
    path, port = tmp_path / "load.db", free_port()
    Store.open(path).close()
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": str(root)}
    with subprocess.Popen([sys.executable, "-c", SERVE, str(path), str(port)], env=env) as process:
        yield path, port, process.pid
        process.terminate()


async def watch(port: int, last: int, upto: int, delays: list[float], cut: random.Random) -> int:
    """Follow until event `upto`, dropping the connection now and then; how many were seen."""
    seen = 0
    while last < upto:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.2)
            continue
        head = (
            f"GET /api/runs/1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {last}\r\n\r\n"
        )
        writer.write(head.encode())
        left = cut.randint(200, 900)  # events until this connection is dropped
        async for line in reader:
            event = EVENT.match(line)
            if event is None:
                continue
            assert int(event[1]) == last + 1, f"a hole after {last}: {event[1]!r}"
            last, seen, left = last + 1, seen + 1, left - 1
            delays.append(time.time() - float(event[2]))
            if last >= upto or left == 0:
                break
        writer.close()
    return seen


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.drill
def test_a_hundred_viewers_lose_nothing(viewer_process: tuple[Path, int, int]) -> None:
    path, port, pid = viewer_process

    async def scene(store: Store) -> None:
        players = [AgentInfo(name, "random", {}, deterministic=False) for name in ("a", "b")]
        slots = [
            Slot(n, *(("chess", "standard") if n % 2 else ("janggi", "fairy")), "a", "b", pair=n)
            for n in range(GAMES)
        ]
        run = await store.create_run(name="load", seed=1, config={}, players=players, slots=slots)
        states = [get_game(slot.game).start(rules=slot.rules) for slot in slots]
        games = [
            await store.start_game(run, slot, state.fen())
            for slot, state in zip(slots, states, strict=True)
        ]
        first, upto = 1 + GAMES, 1 + GAMES * (1 + ROUNDS)
        delays: list[float] = []
        tasks = [
            asyncio.create_task(watch(port, first, upto, delays, random.Random(n)))
            for n in range(VIEWERS)
        ]
        await asyncio.sleep(3)
        before, began, draw = cpu_seconds(pid), time.perf_counter(), random.Random(1)
        for _ in range(ROUNDS):
            due = time.perf_counter() + PERIOD_S
            for number, state in enumerate(states):
                uci = sample.choose(state, draw, goes_on=True)
                after = state.apply(state.parse_move(uci))
                ply = len(after.moves)
                move = MoveRecord(ply, state.turn, "a", uci, uci, after.fen(), 0.1)
                await store.append_move(games[number], move)
                states[number] = after
            await asyncio.sleep(max(0, due - time.perf_counter()))
        seen = await asyncio.gather(*tasks)
        wall, used = time.perf_counter() - began, cpu_seconds(pid) - before
        assert seen == [GAMES * ROUNDS] * VIEWERS
        ordered = sorted(delays)
        p50, p95 = (ordered[len(ordered) * p // 100] for p in (50, 95))
        rate = GAMES * ROUNDS / wall
        print(f"\n{VIEWERS} viewers, {rate:.0f} moves/s: server {used / wall:.1%} of a core, ")
        print(
            f"delay p50 {1e3 * p50:.0f} ms, p95 {1e3 * p95:.0f} ms; load {os.getloadavg()[0]:.1f}"
        )

    with Store.open(path) as store:
        asyncio.run(scene(store))
