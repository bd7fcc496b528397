"""What the tests of the store share: records to write, and a private PostgreSQL server."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.base import AgentInfo, Attempt, Belief, Telemetry, Timing, Usage
from arena.records import GameRecord, MoveRecord, Slot, Status
from arena.store import Store
from arena.store.migrations import HEAD

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
PLAYERS = (
    AgentInfo("ann", "random", {"kind": "random"}, True),
    AgentInfo("bob", "llm", {"kind": "llm", "mode": "free"}, False),
)


def slots(count: int = 4) -> list[Slot]:
    names = ("ann", "bob")
    return [
        Slot(i, "chess", "standard", names[i % 2], names[1 - i % 2], pair=i // 2)
        for i in range(count)
    ]


def attempt(number: int = 1, **changes: object) -> Attempt:
    values: dict[str, object] = {
        "number": number,
        "kind": "move",
        "answer": "I play e4.",
        "thinking": "<think>",
        "uci": "e2e4",
        "span": (7, 9),
        "prompt": "Your move?",
        "prompt_hash": "template-7",
        "seed": 2**63 - 1,
        "timing": Timing(0.5, 0.1, 0.2, 0.2, 0.3),
        "usage": Usage(100, 60, 5),
    }
    return Attempt(**(values | changes))  # type: ignore[arg-type]


def move(ply: int = 1, **changes: object) -> MoveRecord:
    values: dict[str, object] = {
        "ply": ply,
        "side": (ply - 1) % 2,
        "player": "ann" if ply % 2 else "bob",
        "uci": "e2e4",
        "san": "e4",
        "fen": START,
        "seconds": 0.25,
        "attempts": (attempt(1, kind="illegal", uci="e2e5", detail="e2e5 is illegal"), attempt(2)),
        "belief": Belief(0.25, 0.5, "none", "d2d4", (("e2e4", 0.25), ("d2d4", 0.125))),
    }
    return MoveRecord(**(values | changes))  # type: ignore[arg-type]


def end(slot: Slot, **changes: object) -> GameRecord:
    values: dict[str, object] = {
        "slot": slot,
        "status": Status.FINISHED,
        "start_fen": START,
        "result": "1-0",
        "termination": "checkmate",
        "detail": "White mates",
        "plies": 1,
    }
    return GameRecord(**(values | changes))  # type: ignore[arg-type]


def telemetry(**changes: object) -> Telemetry:
    return Telemetry(**({"model": "smollm2-135m", "loading": False} | changes))  # type: ignore[arg-type]


def server_programs() -> Path | None:
    """The folder of `initdb`, which Debian keeps off the PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "pg_ctl").exists()), None)


@contextmanager
def private_server(programs: Path) -> Iterator[str]:
    """A PostgreSQL server of our own; its URL without a database name.

    The server refuses to run as root, so root runs it as `nobody`.
    """
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    prefix = as_nobody if os.geteuid() == 0 else []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="madang-pg-") as folder:
        if prefix:
            os.chown(folder, 65534, 65534)
        data = f"{folder}/data"

        def run(program: str, *words: str) -> None:
            command = [*prefix, str(programs / program), "-D", data, *words]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60)

        run("initdb", "-U", "madang", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        options = f"-F -h 127.0.0.1 -p {port} -k ''"
        run("pg_ctl", "-l", f"{folder}/log", "-w", "-o", options, "start")
        try:
            yield f"postgresql://madang@127.0.0.1:{port}"
        finally:
            run("pg_ctl", "-m", "immediate", "-w", "stop")


def clean_database(server: str) -> str:
    """The one database of that server, up to date and without rows; its URL."""
    import psycopg  # of the extra `postgres`

    url = f"{server}/madang"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'madang'").fetchone()
        if known is None:
            connection.execute("CREATE DATABASE madang")
            Store.open(url).close()
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'madang'"
        )
    with psycopg.connect(url) as connection:
        connection.execute("TRUNCATE runs, slots, games, prompts RESTART IDENTITY CASCADE")
        connection.execute("UPDATE alembic_version SET version_num = %s", (HEAD,))
    return url
