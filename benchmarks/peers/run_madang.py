"""Ours: the engine's asynchronous API, moves by masked walk or by exact scores.

python run_madang.py MODEL walk|score
"""

import asyncio
import itertools
import sys
from importlib.metadata import version
from pathlib import Path

from loop import Answer, Ask, Line, games_of, side_by_side


async def serve(line: Line, model: str, mode: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))  # the checkout this file is in
    from engine.config import EngineConfig
    from engine.engine import Engine
    from engine.types import Request

    config = EngineConfig.from_dict(
        {"model": model, "max_num_seqs": 64, "kv_cache_memory_bytes": 2 << 30}
    )
    engine = await asyncio.to_thread(Engine.load, config)
    ids = itertools.count()

    async def ask_one(ask: Ask) -> Answer:
        choices = tuple(tuple(choice) for choice in ask.choices)
        request = Request(f"r{next(ids)}", tuple(ask.ids), choices=choices)
        if mode == "score":
            scores = await engine.score(request)
            return Answer(ask.legal[scores.argmax], scores.stats.computed_tokens)
        walked = await engine.generate(request)
        assert walked.choice is not None
        stats = walked.stats
        return Answer(ask.legal[walked.choice], stats.computed_tokens, stats.times.ttft)

    line.send({"ready": f"madang {version('madang')}"})
    loop = asyncio.get_running_loop()
    jobs = line.jobs()
    while (job := await loop.run_in_executor(None, next, jobs, None)) is not None:
        line.send(await side_by_side(games_of(job), ask_one))
    await engine.aclose()


if __name__ == "__main__":
    asyncio.run(serve(Line(), sys.argv[1], sys.argv[2]))
