"""Every kind of player in one tournament, while some die, stall, flood, break and fail: it runs to
its end, and each game ends as it should."""

import asyncio
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.mqtt_client import MqttClient
from agents.random_move import RandomAgent
from agents.spec import RandomSpec
from agents.uci_client import find_binary
from arena.config import build_config
from arena.plan import make_plan
from arena.records import Slot
from arena.store import Store, queries
from arena.store.queries import GameInfo
from games.registry import get_game
from tests.agents.broker import running_broker
from tests.agents.endpoint_double import Reply, serving
from tests.agents.test_mqtt import running

from .test_tournament import perform
from .tiny import tiny_model

HOSTILE = Path(__file__).resolve().parents[1] / "agents" / "hostile_uci.py"
LOSES = {"dies": "crash", "stalls": "stall", "floods": "unparsable", "cheats": "illegal"}
"""By protocol: the faulty side loses, and the kind is stored."""
NO_RESULT = {"breaks": "bug", "down": "endpoint_error", "ignores": "constraint_ignored"}
"""Our failure or the infrastructure's: nobody scores."""
CAPPED = {"max_plies": 6, "swap": False}
_UCI = re.compile(r"[a-i]\d0?[a-i]\d0?[qrbn]?( |$)")


class Person(io.StringIO):
    """Somebody at a terminal: asks for the legal moves whenever it is their turn, types one."""

    def __init__(self, keyboard: int) -> None:
        super().__init__()
        self._keyboard = keyboard

    def write(self, text: str) -> int:
        if re.search(r" to move.*:$", text):
            os.write(self._keyboard, b"?\n")
        elif _UCI.match(text):
            os.write(self._keyboard, text.split()[len(text) % 3].encode() + b"\n")
        return len(text)


@contextlib.contextmanager
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input is a pipe on which somebody types who reads standard error."""
    read, write = os.pipe()
    with os.fdopen(read) as typed, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", typed)
        patched.setattr(sys, "stderr", Person(write))
        try:
            yield
        finally:
            os.close(write)  # ends the thread that reads it, which closing would wait for


def serves(path: str, body: Mapping[str, Any]) -> Reply:
    """`m` obeys, `down` fails once it was probed, `ignores` says what it likes."""
    held = body.get("structured_outputs", {}).get("choice")
    if held is None:
        return Reply(("x",))  # a probe
    if body["model"] == "down":
        return Reply(status=500, body=b"out of memory")
    return Reply((held[len(held) // 2] if body["model"] == "m" else "Tuesday",))


def players(model: Path, url: str, broker: str) -> list[dict[str, Any]]:
    endpoint = {
        "kind": "endpoint",
        "base_url": f"{url}/v1",
        "mode": "constrained",
        "constraint": "structured_outputs",
        "retries": 0,
    }
    uci = {"kind": "uci", "path": sys.executable, "restarts": 99, "startup_timeout": 60}
    return [
        {"kind": "llm", "name": "model", "model": str(model), "temperature": 1.0},
        {"kind": "uci", "name": "engine", "path": "stockfish", "nodes": 20, "stall_timeout": 300},
        {"kind": "random"},
        {"kind": "material"},
        {"kind": "human", "name": "person"},
        {"kind": "mqtt", "name": "remote", "broker": broker, "agent": "lab"},
        {**endpoint, "name": "endpoint", "model": "m"},
        {**endpoint, "name": "down", "model": "down"},
        {**endpoint, "name": "ignores", "model": "ignores"},
        {**uci, "name": "dies", "args": [str(HOSTILE), "crash"]},
        {**uci, "name": "stalls", "args": [str(HOSTILE), "stall"], "stall_timeout": 0.1},
        {"kind": "scripted", "name": "floods", "behaviour": "flood"},
        {"kind": "scripted", "name": "cheats", "behaviour": "illegal"},
        {"kind": "scripted", "name": "breaks", "behaviour": "crash"},
    ]


def check(slot: Slot, game: GameInfo) -> None:
    """The first mover that is at fault decides how the game ends."""
    for mover, won in ((slot.first, "0-1"), (slot.second, "1-0")):
        if mover in LOSES:
            assert (game.status, game.termination, game.result) == ("finished", LOSES[mover], won)
            return
        if mover in NO_RESULT:
            ended = (game.status, game.termination, game.result)
            assert ended == ("aborted", NO_RESULT[mover], "*")
            return
    assert game.status == "finished"
    on_the_board = game.termination in get_game(game.game).terminations
    assert on_the_board or game.termination.startswith("adjudicated_"), game


def test_every_kind_at_once_while_some_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_binary("stockfish") is None:
        pytest.skip("skipped: no stockfish (Debian: apt install stockfish)")
    model = tiny_model(tmp_path / "model")
    with running_broker(tmp_path) as broker, serving(serves) as double:
        cast = players(model, double.url, broker.url)
        able = [p["name"] if "name" in p else p["kind"] for p in cast[:7] if p["kind"] != "uci"]
        chess = {"game": "chess", **CAPPED, "at_cap": "material"}
        janggi = {"game": "janggi", **CAPPED, "at_cap": "points", "players": able}
        run = {"seed": 1, "concurrency": 12, "retries": 0}
        config = build_config({"run": run, "games": [chess, janggi], "players": cast})

        async def scenario(store: Store) -> Any:
            lab = MqttClient(RandomAgent(RandomSpec(name="lab")), broker.url, "lab")
            async with running(lab.run()):
                return await asyncio.wait_for(perform(config, store), 240)

        with Store.open(tmp_path / "a.db") as store, person(monkeypatch):
            result, _ = asyncio.run(scenario(store))
            games = {game.slot_id: game for game in queries.games(store, result.run_id)}
    slots = {slot.id: slot for slot in make_plan(config).slots}
    stopped = result.failed_agents
    assert set(stopped) <= {"ignores"}, "an ignored constraint stops its player and nobody else"
    assert len(slots) == 14 * 13 // 2 + 6 * 5 // 2
    for number, slot in slots.items():
        if number in games:
            check(slot, games[number])
        else:
            assert "ignores" in (slot.first, slot.second)
    kinds = {game.termination for game in games.values()}
    assert kinds >= {*LOSES.values(), *NO_RESULT.values()}
    scored = [game for game in games.values() if game.status == "finished"]
    assert all(game.result != "*" for game in scored)
