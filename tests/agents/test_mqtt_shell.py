"""Players in processes of their own, through a real mosquitto: a shell script and our command."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.random_move import RandomAgent
from agents.spec import RandomSpec
from arena.match import Limits, play
from arena.records import GameRecord, MoveRecord, Slot
from games.registry import get_game

from .broker import MISSING, Broker
from .kit import ROOT
from .test_mqtt import agent

SCRIPT = ROOT / "examples" / "mqtt_player.sh"
LIMIT_S = 120  # of a busy machine; a game takes about a second
pytestmark = [
    pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason=MISSING),
    pytest.mark.timeout(2 * LIMIT_S),
]


def _hear_interrupts() -> None:
    """A test run in the background may be deaf to Ctrl-C, and its children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def player(command: list[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A player in a session of its own; it and all it started are dead afterwards."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder)},
        preexec_fn=_hear_interrupts,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def retained(port: int) -> str:
    """The status that the broker keeps of the player."""
    command = ["mosquitto_sub", "-V", "mqttv5", "-p", str(port), "-t", "madang/agents/lab/status"]
    done = subprocess.run(
        [*command, "-C", "1", "-W", "10"], capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip()


async def _game(broker: Broker, name: str, plies: int) -> tuple[GameRecord, list[MoveRecord]]:
    far, near = (
        agent(broker, stall_timeout=60, startup_timeout=100),
        RandomAgent(RandomSpec(name="near")),
    )
    moves: list[MoveRecord] = []

    async def keep(move: MoveRecord) -> None:
        moves.append(move)

    rules = get_game(name)
    slot = Slot(1, name, next(iter(rules.rule_sets)), "far", "near", 1)
    try:
        await far.start()
        limits = Limits(max_plies=plies)
        return await play("1", slot, rules.start(), (far, near), limits, 1, keep), moves
    finally:
        await far.close()


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_a_shell_script_plays_a_legal_game(broker: Broker, tmp_path: Path, game: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = ["sh", str(SCRIPT), "lab", "127.0.0.1", str(broker.port)]
    with player(command, scratch) as process:
        record, moves = asyncio.run(asyncio.wait_for(_game(broker, game, 16), LIMIT_S))
        assert (record.termination, record.plies) == ("cut_short", 16), record
        tried = [attempt.kind for move in moves for attempt in move.attempts]
        assert tried == ["move"] * 8
        assert retained(broker.port) == "online"
        process.terminate()
        process.wait(30)
        assert retained(broker.port) == "offline"
    assert not list(scratch.iterdir()), "it leaves nothing behind"


def test_the_command_plays_until_it_is_interrupted(broker: Broker, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "arena.cli", "agent", "connect", broker.url]
    with player([*command, "--name", "lab", "--with", "material"], tmp_path) as process:
        record, moves = asyncio.run(asyncio.wait_for(_game(broker, "chess", 8), LIMIT_S))
        assert (record.termination, record.plies) == ("cut_short", 8), record
        assert [move.player for move in moves] == ["far", "near"] * 4
        for _ in range(20):  # a publish that is just acknowledged swallows one
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3)
                break
        assert process.returncode == 130
