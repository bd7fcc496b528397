"""The forecast of waves: by hand on small runs, then measured, and as `--dry-run` says it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agents.base import AgentError
from arena.plan import make_plan
from arena.wave_plan import plan_waves, wave_lines
from arena.waves import Cost, Meeting, forecast
from engine.footprint import weights_bytes
from engine.model_config import read_config
from tests.arena.test_waves import cup, one_fits
from tests.engine.small_model import small_model

ROOT = Path(__file__).resolve().parents[2]
COSTS = {"a": Cost(10, 2.0, 0.5), "b": Cost(10, 4.0, 0.25)}


def swapped_pairs(count: int, plies: int) -> list[Meeting]:
    return [Meeting(("a", "b") if i % 2 else ("b", "a"), plies) for i in range(count)]


def test_all_games_of_a_wave_share_a_swap() -> None:
    found = forecast(swapped_pairs(32, 80), COSTS, 10, 32)
    # half a wave, then 79 whole ones, then what is left: both begin 16 games
    assert found.num_swaps == 80
    assert found.moves_per_swap == pytest.approx(32.0)
    computing = 32 * 40 * (0.5 + 0.25)
    swapping = 80 / 2 * (2.0 + 4.0)
    assert found.swap_share == pytest.approx(swapping / (computing + swapping), abs=0.02)
    assert found.games_per_hour == pytest.approx(32 * 3600 / (computing + swapping), rel=0.02)


def test_fewer_games_in_flight_swap_more() -> None:
    few, many = (forecast(swapped_pairs(64, 40), COSTS, 10, c).swap_share for c in (4, 64))
    assert few > 2 * many


def test_models_that_fit_are_loaded_once_and_never_swapped() -> None:
    found = forecast(swapped_pairs(8, 10), COSTS, 20, 8)
    assert (found.num_swaps, found.moves_per_swap, found.swap_share) == (0, None, 0.0)


def test_endless_work_is_cut_as_the_pool_does() -> None:
    alone = [Meeting(("a", None), 4000)] * 4
    found = forecast([*alone, Meeting(("a", "b"), 40)], COSTS, 10, 8)
    assert found.num_swaps > 30
    assert found.swap_share < 0.1


def test_games_without_models_cost_nothing() -> None:
    found = forecast([Meeting((None, None), 80)] * 3, COSTS, 10, 2)
    assert found.num_swaps == 0


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [small_model(folder / name, seed) for seed, name in enumerate(("north", "south"))]


def test_a_plan_measures_only_where_it_must(models: list[Path]) -> None:
    told: list[str] = []
    config = cup(models, None)
    assert plan_waves(config, make_plan(config).slots, told.append) is None
    config = cup(models, 2 * one_fits(models))
    plan = plan_waves(config, make_plan(config).slots, told.append)
    assert plan is not None
    assert (plan.forecast, told) == (None, [])
    assert wave_lines(plan)[0].endswith("they fit together under 1.3 MB")
    config = cup(models, one_fits(models))
    plan = plan_waves(config, make_plan(config).slots, told.append)
    assert plan is not None
    assert plan.forecast is not None
    assert plan.forecast.num_swaps > 0
    assert len(told) == 1
    lines = wave_lines(plan)
    assert len(lines) == 4
    assert lines[1].startswith("  north: a swap 0.0")
    assert "moves a swap" in lines[3]
    needed = weights_bytes(read_config(models[0]))
    config = cup(models, needed - 1)
    with pytest.raises(AgentError, match=rf"north: \[memory\] weights_bytes is {needed - 1}, its"):
        plan_waves(config, make_plan(config).slots, told.append)


def test_dry_run_tells_it_in_words_and_json(tmp_path: Path, models: list[Path]) -> None:
    north, south = models
    file = tmp_path / "cup.toml"
    file.write_text(
        f"[memory]\nweights_bytes = {one_fits(models)}\n"
        "[[games]]\ngame = 'chess'\n"
        f"[[players]]\nkind = 'llm'\nmodel = '{north}'\n"
        f"[[players]]\nkind = 'llm'\nmodel = '{south}'\n"
    )
    command = [sys.executable, "-m", "arena.cli", "run", str(file), "--dry-run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "loading each once to time it" in done.stderr
    waves = json.loads(done.stdout)["waves"]
    assert [cost["name"] for cost in waves["costs"]] == ["north", "south"]
    assert all(cost["swap_s"] > 0 for cost in waves["costs"])
    assert waves["forecast"]["games_per_hour"] > 0
