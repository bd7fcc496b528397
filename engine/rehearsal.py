"""What one model costs here: its weights in memory, a swap of it, a move of it in a full batch.

Loads the model once, lets it go, loads it again (that is a swap: the files are in the system's page
cache by then), and computes one batch of made-up moves: a common beginning that is cached, some
fresh tokens of each game, a few tokens decoded. No engine thread and no pool of others take part.
"""

import random
import time
from dataclasses import dataclass, replace
from pathlib import Path

from engine.config import EngineConfig
from engine.footprint import weights_bytes
from engine.limits import Limits
from engine.model_config import read_config
from engine.runner import ModelRunner
from engine.scheduler import Scheduler
from engine.types import Request, SamplingParams, TokenIds, num_blocks_for

SHARED, FRESH, DECODED = 300, 45, 3  # tokens: of all games, of a game's move, of an answer


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Seconds; `swap_s` is a coming in, `move_s` a move's part of a batch of `num_games`."""

    weights_bytes: int
    swap_s: float
    move_s: float
    num_games: int


def rehearse(folder: Path, config: EngineConfig, num_games: int) -> Rehearsal:
    """Blocks for a load and two passes or so. Raises ModelError, ValueError."""
    model = read_config(folder)
    shared = max(1, min(SHARED, model.max_position_embeddings - FRESH - DECODED - 1))
    blocks = 2 * num_blocks_for(shared, config.block_size)
    blocks += num_games * num_blocks_for(FRESH + DECODED + config.block_size, config.block_size)
    config = replace(config, num_gpu_blocks_override=blocks, kv_cache_memory_bytes=None)
    runner = ModelRunner.load(folder, config)
    try:
        runner.offload()
        began = time.perf_counter()
        runner.reload()
        swap_s = time.perf_counter() - began
        seconds = _batch(runner, config, num_games, shared)
        return Rehearsal(weights_bytes(model), swap_s, seconds / num_games, num_games)
    finally:
        runner.close()


def _batch(runner: ModelRunner, config: EngineConfig, num_games: int, shared: int) -> float:
    """Seconds of one move in each game, the common beginning computed before."""
    rng = random.Random(1)
    scheduler = Scheduler(config, Limits.of(runner, config))

    def tokens(count: int) -> TokenIds:
        return tuple(rng.randrange(runner.vocab_size) for _ in range(count))

    def run(*prompts: TokenIds) -> float:
        began = time.perf_counter()
        params = SamplingParams(max_tokens=DECODED, ignore_eos=True)
        for number, prompt in enumerate(prompts):
            request = Request(f"{number}", prompt, params)
            scheduler.add(scheduler.prepare(request, began), began)
        while (plan := scheduler.plan(began)) is not None:
            scheduler.commit(plan, runner.step(plan), began)
        return time.perf_counter() - began

    beginning = tokens(shared)
    run(beginning)
    return run(*(beginning + tokens(FRESH) for _ in range(num_games)))
