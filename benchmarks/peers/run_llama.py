"""llama.cpp in its own environment: xllamacpp's server in this process, answers by grammar.

python run_llama.py FILE.gguf SLOTS_PER_GAME
"""

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

from loop import Answer, Ask, Line, games_of, side_by_side

CONTEXT = 1536  # tokens a slot


def start(file: str, slots: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = file
    params.n_parallel = slots
    params.n_ctx = CONTEXT * slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = len(os.sched_getaffinity(0))
    params.n_batch = params.n_ubatch = 2048
    params.cache_ram_mib = 0  # slots keep their own
    params.warmup = True
    return xllamacpp.Server(params)


def main(file: str) -> None:
    line = Line()
    line.send({"ready": f"xllamacpp {version('xllamacpp')}"})
    for job in line.jobs():
        games = games_of(job)
        server = start(file, len(games))
        pool = ThreadPoolExecutor(len(games))

        def complete(ask: Ask, server: Any = server) -> Answer:
            grammar = "root ::= " + " | ".join(json.dumps(move) for move in ask.legal)
            body = {
                "prompt": ask.ids,
                "n_predict": 8,
                "temperature": 0.0,
                "grammar": grammar,
                "cache_prompt": True,
                "id_slot": ask.slot,
            }
            found = server.handle_completions(body)
            if "timings" not in found:
                raise SystemExit(f"llama.cpp: {found}")
            timings = found["timings"]
            computed = timings["prompt_n"] + timings["predicted_n"]
            text = found["choices"][0]["text"] if "choices" in found else found["content"]
            return Answer(text, computed, timings["prompt_ms"] / 1e3)

        async def ask_one(ask: Ask, pool: Any = pool, complete: Any = complete) -> Answer:
            return await asyncio.get_running_loop().run_in_executor(pool, complete, ask)

        line.send(asyncio.run(side_by_side(games, ask_one)))
        pool.shutdown()
        del server


if __name__ == "__main__":
    main(sys.argv[1])
