"""A saturated engine changes nobody's result: budgets and clocks charge counted tokens alone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from arena.config import Config, build_config
from arena.records import GameRecord
from arena.store import Store, queries

from .test_tournament import perform
from .tiny import tiny_model

BLOCKS = 90  # of 16 tokens: room for two or three prompts
PLIES = 6


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


def cup(model: Path, concurrency: int) -> Config:
    engine = {"num_gpu_blocks_override": BLOCKS, "max_num_seqs": 3, "block_size": 16}
    base = {"kind": "llm", "model": str(model), "temperature": 1.0, "engine": engine}
    policy = {"tokens": 25, "attempts": 3, "then": "random_move"}
    capped = {"game": "chess", "max_plies": PLIES, "at_cap": "material", "pairs": 1}
    players: list[dict[str, Any]] = [
        {**base, "name": "free", "mode": "free", "max_tokens": 12, "policy": policy},
        {**base, "name": "strict", "mode": "free", "max_tokens": 12, "policy": {"tokens": 20}},
        {**base, "name": "walks", "mode": "constrained"},
    ]
    return build_config(
        {
            "run": {"seed": 3, "concurrency": concurrency},
            "games": [{**capped, "name": "untimed"}, {**capped, "tc": "2", "token_s": 0.1}],
            "players": players,
        }
    )


def played(config: Config, db: Path) -> tuple[dict[int, Any], float]:
    """By slot everything that the record keeps but times; and how long requests waited."""
    with Store.open(db) as store:
        result, events = asyncio.run(perform(config, store))
        assert (result.status, result.num_open) == ("finished", 0)
        games = queries.games_with_moves(store, result.run_id)
    ends = {e.record.slot.id: e.record for e in events if hasattr(e, "record")}
    found: dict[int, Any] = {}
    waited = 0.0
    for game in games:
        record: GameRecord = ends[game.slot_id]
        found[game.slot_id] = (
            record.result,
            record.termination,
            record.detail,
            [(a.kind, a.answer, a.seed, a.usage.completion) for a in record.failed_attempts],
            [
                (m.uci, m.clock_s, m.random_move, m.prompt_tokens, m.completion_tokens)
                for m in game.moves
            ],
        )
        waited += sum(move.queue_s or 0.0 for move in game.moves)
    return found, waited


def test_the_same_ends_clocks_and_tokens_alone_and_saturated(tmp_path: Path, model: Path) -> None:
    alone, idle = played(cup(model, 1), tmp_path / "alone.db")
    crowd, waited = played(cup(model, 12), tmp_path / "crowd.db")
    assert len(alone) == 2 * 3 * 2
    assert alone == crowd
    ends = {termination for _, termination, *_ in alone.values()}
    assert {"budget", "time", "adjudicated_material"} <= ends
    assert waited > 20 * idle, "the engine was not saturated"
