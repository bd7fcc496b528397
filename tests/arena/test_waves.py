"""Models that do not fit together: the same games in waves, and what happens when one is lost."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from arena.config import Config, build_config
from arena.events import Subscription
from arena.records import MoveRecord
from arena.running import run_new
from arena.store import Store, queries
from arena.tournament import RunResult
from engine import hub
from engine.footprint import weights_bytes
from engine.model_config import read_config
from tests.engine.small_model import small_model

ROOT = Path(__file__).resolve().parents[2]


class Nobody:
    """Follows a run without showing it."""

    async def follow(self, events: Subscription) -> None:
        async for _ in events:
            pass


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [small_model(folder / name, seed) for seed, name in enumerate(("north", "south"))]


def cup(models: list[Path], limit: int | None, **game: Any) -> Config:
    """Both models, one of them sampling, and a random mover."""
    engine = {"num_gpu_blocks_override": 2000}
    players: list[dict[str, Any]] = [
        {"kind": "llm", "model": str(model), "name": model.name, "temperature": i, "engine": engine}
        for i, model in enumerate(models)
    ]
    section = {"game": "chess", "max_plies": 6, "at_cap": "material", "pairs": 2, **game}
    return build_config(
        {
            "run": {"seed": 3},
            "memory": {} if limit is None else {"weights_bytes": limit},
            "players": [*players, {"kind": "random"}],
            "games": [section],
        }
    )


def play(config: Config, store: Store) -> RunResult:
    return asyncio.run(run_new(config, store, Nobody(), lambda line: None))


def one_fits(models: list[Path]) -> int:
    return weights_bytes(read_config(models[0])) * 3 // 2


def test_the_same_games_together_and_in_waves(tmp_path: Path, models: list[Path]) -> None:
    found, swaps = [], []
    for number, limit in enumerate((None, one_fits(models))):
        with Store.open(tmp_path / f"{number}.db") as store:
            result = play(cup(models, limit), store)
            assert result.exit_code == 0
            games = queries.games_with_moves(store, result.run_id)
            found.append(
                {g.slot_id: (g.result, g.termination, [m.uci for m in g.moves]) for g in games}
            )
            events = queries.events(store, result.run_id)
            swaps.append([e.payload for e in events if e.kind == "models_swapped"])
    assert len(found[0]) == 12
    assert all(len(moves) == 6 for _, _, moves in found[0].values())
    assert found[0] == found[1]
    assert swaps[0] == []
    assert len(swaps[1]) >= 4
    names = {name.name for name in models}
    assert all({swap["into"], *swap["out"]} == names for swap in swaps[1])
    model_moves = 2 * 4 * 3 + 4 * 6  # against random every other move, among them all
    assert sum(swap["served"] for swap in swaps[1]) <= model_moves


class Losing(Store):
    """Takes a model's file away when it has played some moves."""

    lost: Path
    num_moves = 0

    async def append_move(self, game_id: int, move: MoveRecord) -> None:
        self.num_moves += move.player == "lost"
        if self.num_moves == 4:
            (self.lost / "model.safetensors").unlink(missing_ok=True)
        await super().append_move(game_id, move)


def test_a_model_lost_on_the_way_loses_no_game(tmp_path: Path, models: list[Path]) -> None:
    lost = small_model(tmp_path / "lost", 5)
    with Losing.open(tmp_path / "a.db") as store:
        assert isinstance(store, Losing)
        store.lost = lost
        result = play(cup([models[0], lost], one_fits(models), max_plies=12), store)
        assert (result.exit_code, result.status) == (3, "unresolved")
        games = queries.games(store, result.run_id)
        open_slots = {slot.id: slot for slot in store.open_slots(result.run_id)}
    finished = [game for game in games if game.status == "finished"]
    assert {g.termination for g in games if g.status != "finished"} == {"engine_error"}
    assert all("lost" in (slot.first, slot.second) for slot in open_slots.values())
    assert sum("lost" not in (g.first, g.second) for g in finished) == 4
    broken = [game for game in games if game.termination == "engine_error"]
    assert broken
    for game in broken:
        assert (game.result, game.rated) == ("*", False)
        assert "lost could not be loaded again" in game.detail


def test_a_limit_below_one_model_stops_its_player_before_its_games(
    tmp_path: Path, models: list[Path]
) -> None:
    with Store.open(tmp_path / "a.db") as store:
        result = play(cup(models, 1000), store)
    assert result.exit_code == 4
    needed = weights_bytes(read_config(models[0]))
    assert (
        f"less than the weights of north alone; set it to {needed}"
        in (result.failed_agents["north"])
    )


REAL = {"smol": "smollm2-135m", "gemma": "gemma3-270m"}


@pytest.mark.drill
def test_the_real_models_play_the_same_games_in_waves(tmp_path: Path) -> None:
    """SmolLM2 against Gemma 3 270M: 2.0 GB hold either, not both."""
    try:
        for model in REAL.values():
            hub.ensure(model)
    except hub.NoNetwork as error:
        pytest.skip(f"skipped: no network for a model ({error})")
    players = [
        {"kind": "llm", "model": model, "name": name, "temperature": float(name == "gemma")}
        for name, model in REAL.items()
    ]
    found: list[dict[int, object]] = []
    for limit in ({}, {"weights_bytes": 2_000_000_000}):
        section = {"game": "chess", "openings": "builtin", "pairs": 4, "max_plies": 4}
        config = build_config(
            {
                "run": {"seed": 5},
                "memory": {"kv_cache_bytes": 1_000_000_000, **limit},
                "players": players,
                "games": [{**section, "at_cap": "material"}],
            }
        )
        with Store.open(tmp_path / f"{len(found)}.db") as store:
            result = play(config, store)
            assert result.exit_code == 0
            games = queries.games_with_moves(store, result.run_id)
            found.append({g.slot_id: (g.result, [m.uci for m in g.moves]) for g in games})
            kinds = [event.kind for event in queries.events(store, result.run_id)]
        assert (kinds.count("models_swapped") >= 4) == bool(limit)
    assert len(found[0]) == 8
    assert found[0] == found[1]


SLOW = """
import sys, time
from engine.runner import ModelRunner

def reload(self):
    print("SWAPPING", flush=True)
    time.sleep(600)

ModelRunner.reload = reload
from arena.cli import main
sys.argv = ["arena", *sys.argv[1:]]
main()
"""
TOML = """
[memory]
weights_bytes = {limit}
[[games]]
game = "chess"
max_plies = 6
at_cap = "material"
[[players]]
kind = "llm"
model = "{north}"
[[players]]
kind = "llm"
model = "{south}"
"""


@pytest.mark.drill
def test_an_interrupt_during_a_swap_ends_within_seconds(tmp_path: Path, models: list[Path]) -> None:
    file = tmp_path / "cup.toml"
    north, south = models
    file.write_text(TOML.format(limit=one_fits(models), north=north, south=south))
    arena = subprocess.Popen(
        [sys.executable, "-c", SLOW, "run", str(file), "--db", str(tmp_path / "a.db")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert arena.stdout is not None
    while "SWAPPING" not in (line := arena.stdout.readline()):
        assert line, "it ended early"
    began = time.monotonic()
    arena.send_signal(signal.SIGINT)
    _, errors = arena.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert arena.returncode == 130, errors
    assert "Go on with: arena resume" in errors
