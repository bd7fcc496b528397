"""What `--dry-run` promises: by the record where there is one, by the configuration else."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli import app
from arena.config import build_config
from arena.estimate import CHARACTERS, Estimate, estimate, estimate_lines
from arena.plan import make_plan
from arena.store import Store, queries

MODEL = {"kind": "endpoint", "model": "m", "base_url": "http://127.0.0.1:1/v1", "name": "m"}


def reckoned(max_tokens: int | None = None, **game: object) -> tuple[Estimate, str]:
    section = {"game": "chess", "max_plies": 40, "at_cap": "material", **game}
    run = {} if max_tokens is None else {"max_tokens": max_tokens}
    config = build_config({"run": run, "games": [section], "players": [MODEL, {"kind": "random"}]})
    found = estimate(config, make_plan(config), None)
    return found, "\n".join(estimate_lines(found, config))


def test_moves_and_answers_are_bounded_by_the_configuration() -> None:
    found, text = reckoned(pairs=3)
    assert (found.games, found.moves) == (6, 240)
    (model,) = found.tokens
    assert model.completion == 120 * 64  # half the moves, at most max_tokens each
    assert 120 * 100 / CHARACTERS < model.prompt < 120 * 5000 / CHARACTERS
    assert "about 240 moves in 6 games" in text
    assert "prompts at 3 characters a token, answers at most" in text
    assert "time: not known before a first run" in text


def test_longer_games_send_longer_prompts() -> None:
    short, long = reckoned(max_plies=20)[0], reckoned(max_plies=80)[0]
    a_move = [found.tokens[0].prompt / found.moves for found in (short, long)]
    assert a_move[0] < a_move[1]


def test_a_budget_that_is_too_small_is_said() -> None:
    assert "max_tokens = 100 will end the run earlier, resumable" in reckoned(100)[1]
    assert "max_tokens" not in reckoned(10**9)[1]


def test_a_recorded_run_tells_pace_and_length(tmp_path: Path) -> None:
    db = str(tmp_path / "a.db")
    words = ["play", "random", "material", "--max-plies", "30", "--at-cap", "material", "--db", db]
    assert CliRunner().invoke(app, [*words, "-q"]).exit_code == 0
    text = CliRunner().invoke(app, [*words, "--pairs", "5", "--dry-run"]).stdout
    assert "about 300 moves in 10 games" in text
    assert "at the pace of run 1" in text
    found = json.loads(CliRunner().invoke(app, [*words, "--dry-run", "--json"]).stdout)["estimate"]
    with Store.open(db) as store:
        (run,) = queries.runs(store)
        assert run.finished is not None
        pace = queries.run_status(store, 1).moves / (run.finished - run.created)
    assert found["pace_run"] == 1
    assert found["seconds"] == pytest.approx(60 / pace, rel=0.01)


def test_a_model_that_is_not_here_is_said_and_nothing_fails(tmp_path: Path) -> None:
    words = ["play", "llm:/no/such/model:constrained", "random", "--dry-run"]
    done = CliRunner().invoke(app, [*words, "--db", str(tmp_path / "a.db")])
    assert done.exit_code == 0, done.output
    assert "memory: not known: " in done.stdout


def test_prices_make_a_cost() -> None:
    section = {"game": "chess", "max_plies": 40, "at_cap": "material"}
    run = {"prices": {"m": [0, 1000]}, "max_cost": 2}
    config = build_config({"run": run, "games": [section], "players": [MODEL, {"kind": "random"}]})
    lines = list(estimate_lines(estimate(config, make_plan(config), None), config))
    assert "cost: about 2.56 by the given prices" in lines  # 40 answers of 64 tokens
    assert "max_cost = 2 will end the run earlier, resumable" in lines
