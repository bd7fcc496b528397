"""A rival as people run it: its server in its own environment, asked through the `openai` package.

    python run_client.py vllm|llama PYTHON_OF_THE_RIVAL MODEL [BLOCK_SIZE]

Messages go as chat completions; the legal moves as vLLM's structured outputs or as a grammar.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from typing import Any

import openai
from loop import Answer, Ask, Line, games_of, side_by_side

SLOTS, CONTEXT = 64, 1536
LLAMA = """
import os, sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.n_parallel, p.n_ctx, p.port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = len(os.sched_getaffinity(0))
p.n_batch = p.n_ubatch = 2048
p.cache_ram_mib = 0
server = xllamacpp.Server(p)
time.sleep(1e9)
"""  # noqa: E501


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


PORT = free_port()


def command(kind: str, python: str, model: str, slots: int, more: Sequence[str]) -> list[str]:
    if kind == "llama":
        return [python, "-c", LLAMA, model, str(slots), str(CONTEXT * slots), str(PORT)]
    return [
        python, "-m", "vllm.entrypoints.openai.api_server", "--model", model,
        "--served-model-name", "m", "--dtype", "float32", "--max-model-len", "2048",
        "--max-num-seqs", "64", "--block-size", more[0], "--enforce-eager", "--port", str(PORT),
    ]  # fmt: skip


def start(kind: str, python: str, model: str, slots: int, more: Sequence[str]) -> Any:
    """The server's process, when it answers."""
    process = subprocess.Popen(
        command(kind, python, model, slots, more),
        stdout=2,
        env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "2"},
    )
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=2).close()
            return process
        except OSError:
            if process.poll() is not None:
                raise SystemExit(f"{kind}: the server ended with {process.returncode}") from None
            time.sleep(0.5)
    raise SystemExit(f"{kind}: the server did not answer in 5 minutes")


def limits(kind: str, ask: Ask) -> dict[str, Any]:
    """What holds the answer to the legal moves."""
    if kind == "vllm":
        return {"structured_outputs": {"choice": ask.legal}}
    moves = " | ".join(json.dumps(move) for move in ask.legal)
    return {"grammar": f"root ::= {moves}", "id_slot": ask.slot, "cache_prompt": True}


def main(kind: str, python: str, model: str, *more: str) -> None:
    line = Line()
    process = start(kind, python, model, SLOTS if kind == "vllm" else 1, more)
    slots = SLOTS if kind == "vllm" else 1
    line.send({"ready": f"{kind} behind openai {openai.__version__}"})
    for job in line.jobs():
        games = games_of(job)
        if kind == "llama" and len(games) != slots:  # a slot a game is its best configuration
            process.kill()
            process.wait()
            slots = len(games)
            process = start(kind, python, model, slots, more)

        async def play(games: list[list[Ask]] = games) -> dict[str, Any]:
            client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{PORT}/v1", api_key="none")

            async def ask_one(ask: Ask) -> Answer:
                found = await client.chat.completions.create(
                    model="m",
                    messages=ask.messages,  # type: ignore[arg-type]
                    temperature=0.0,
                    max_tokens=8,
                    extra_body=limits(kind, ask),
                )
                return Answer(found.choices[0].message.content or "", 0)

            async with client:
                return await side_by_side(games, ask_one)

        line.send(asyncio.run(play()))
    process.terminate()
    process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
