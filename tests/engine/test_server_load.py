"""Many clients, clients that go away, and a proxy in front: nobody sees but 200 and 503."""

import asyncio
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import engine.server
from engine.engine import Engine
from engine.server import PROFILES
from engine.types import StepOutput, StepPlan

from .server_kit import (
    PATIENCE_S,
    assert_free,
    client_async,
    load,
    serving,
    tiny,
    tiny_dir,
    wait_for,
)

CAP = {"max_num_seqs": 8, "max_num_queued_reqs": 8}
CLIENTS = 64
CHAT: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "e2e4"}],
    "max_tokens": 16,
    "extra_body": {"ignore_eos": True},
}
ENDLESS = CHAT | {"max_tokens": 1800}
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "nginx.conf"


class Gate:
    """Holds every step of an engine's runner while it is shut."""

    def __init__(self, engine: Engine) -> None:
        self._open, self._pause = threading.Event(), 0.0
        self._step = engine.runner.step
        engine.runner.step = self._wait  # type: ignore[method-assign]

    def _wait(self, plan: StepPlan) -> StepOutput:
        assert self._open.wait(PATIENCE_S)
        time.sleep(self._pause)
        return self._step(plan)

    def open(self) -> None:
        self._open.set()

    def slow(self) -> None:
        """Open, at most a hundred steps a second."""
        self._pause = 0.01
        self._open.set()


async def outcome(ai: openai.AsyncOpenAI, number: int) -> int | str:
    """The status that a client sees; every other one streams. Anything odd is its name."""
    try:
        if number % 2:
            pieces = await ai.chat.completions.create(**CHAT, stream=True)
            ends = [c.choices[0].finish_reason async for c in pieces]
            return 200 if ends[-1] == "length" else "cut"
        answer = await ai.chat.completions.create(**CHAT)
    except openai.APIStatusError as error:
        is_told = error.response.headers["Retry-After"] == "1" and error.code == "overloaded"
        return error.status_code if is_told else "untold"
    except Exception as error:
        return type(error).__name__
    return 200 if answer.choices[0].finish_reason == "length" else "cut"


def test_beyond_the_cap_the_answer_is_503_at_once(tmp_path: Path) -> None:
    """While nothing moves, 16 of 64 are taken and 48 refused; the 16 are then served."""

    async def rush(address: str, gate: Gate) -> list[int | str]:
        async with client_async(address) as ai:
            tasks = [asyncio.create_task(outcome(ai, i)) for i in range(CLIENTS)]
            await until(lambda: sum(task.done() for task in tasks) >= CLIENTS - 16)
            await asyncio.sleep(0.1)
            assert [task.result() for task in tasks if task.done()] == [503] * 48
            gate.open()
            return await asyncio.gather(*tasks)

    with tiny(tmp_path, **CAP) as (served, address):
        found = asyncio.run(rush(address, Gate(served.engine)))
        assert Counter(found) == {200: 16, 503: 48}
        assert_free(served.engine)
        assert served.engine.snapshot().finished_requests == 16
        page = httpx.get(f"{address}/metrics").text
        assert 'madang:refused_requests_total{model_name="tiny"} 48' in page


def test_64_clients_see_200_or_503_and_nothing_else(tmp_path: Path) -> None:
    """With nothing held, in waves, some of them leaving in the middle."""

    async def leave(ai: openai.AsyncOpenAI, number: int) -> None:
        task = asyncio.create_task(outcome(ai, number))
        await asyncio.sleep(0.01 * (number % 7))
        task.cancel()

    async def rush(address: str) -> list[int | str]:
        async with client_async(address) as ai:
            found: list[int | str] = []
            for _ in range(2):
                await asyncio.gather(*(leave(ai, i) for i in range(16)))
                found += await asyncio.gather(*(outcome(ai, i) for i in range(CLIENTS)))
            return found

    with tiny(tmp_path, **CAP) as (served, address):
        found = Counter(asyncio.run(rush(address)))
        assert set(found) <= {200, 503}
        assert found[200] >= 16
        assert_free(served.engine)
        assert outcome_alone(address) == 200, "it serves on"


def outcome_alone(address: str) -> int | str:
    async def ask() -> int | str:
        async with client_async(address) as ai:
            return await outcome(ai, 0)

    return asyncio.run(ask())


def test_a_client_that_hangs_up_frees_its_blocks(tmp_path: Path) -> None:
    """Streaming, waiting for the whole answer, and still in the queue."""

    async def ask(address: str, engine: Engine) -> None:
        async with client_async(address) as ai:
            stream = await ai.chat.completions.create(**ENDLESS, stream=True)
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
            await until(lambda: engine.check_integrity().used > 0)
            queued = asyncio.create_task(ai.chat.completions.create(**ENDLESS))
            await until(lambda: engine.snapshot().num_requests_waiting == 1)
            queued.cancel()
            await until(lambda: engine.snapshot().num_requests_waiting == 0)
            assert engine.snapshot().num_requests_running == 1
            await stream.close()
            await until(lambda: engine.check_integrity().used == 0)
            whole = asyncio.create_task(ai.chat.completions.create(**ENDLESS))
            await until(lambda: engine.snapshot().num_requests_running == 1)
            whole.cancel()
            await until(lambda: engine.check_integrity().used == 0)

    with tiny(tmp_path, max_num_seqs=1) as (served, address):
        asyncio.run(ask(address, served.engine))
        now = served.engine.snapshot()
        assert (now.finished_requests, now.failed_requests) == (0, 3)
        assert now.num_steps < 2 * 1800, "one of them ran to its end"


async def until(question: Any) -> None:
    await asyncio.to_thread(wait_for, question)


def test_interactive_never_queues_a_stream(tmp_path: Path) -> None:
    """Two at once; a third is told so instead of waiting behind them."""

    async def three(address: str) -> list[int | str]:
        async with client_async(address) as ai:
            streams = [await ai.chat.completions.create(**ENDLESS, stream=True) for _ in range(2)]
            third = await outcome(ai, 1)
            for stream in streams:
                await stream.close()
            return [third]

    with tiny(tmp_path, **PROFILES["interactive"]) as (served, address):
        assert asyncio.run(three(address)) == [503]
        assert_free(served.engine)
        assert outcome_alone(address) == 200
        queued = served.engine.snapshot().request_queue_time_seconds
        assert queued.count >= 1
        assert queued.total < 1.0


def test_open_answers_are_told_that_the_server_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get their time to end, and then an error instead of a cut."""
    monkeypatch.setattr(engine.server, "GRACE_S", 0.2)
    served = load(tiny_dir(tmp_path), "tiny", num_gpu_blocks_override=600)
    endless = {**ENDLESS["extra_body"], **ENDLESS}
    del endless["extra_body"]

    def ask(url: str, stream: bool) -> tuple[int, str]:
        answer = httpx.post(url, json=endless | {"stream": stream}, timeout=PATIENCE_S)
        return answer.status_code, answer.text

    with served.engine, ThreadPoolExecutor(2) as beside:
        Gate(served.engine).slow()
        with serving(served) as address:
            url = f"{address}/v1/chat/completions"
            waiting = [beside.submit(ask, url, stream) for stream in (False, True)]
            wait_for(lambda: served.engine.snapshot().num_requests_running == 2)
        whole, streamed = (one.result() for one in waiting)
        assert_free(served.engine)
    assert whole[0] == 503
    assert '"code":"stopping"' in whole[1]
    *_, chunk, last, rest = streamed[1].split("\n\n")
    assert (streamed[0], rest) == (200, "")
    assert '"content":' in chunk
    assert '"code":"stopping"' in last


@contextmanager
def proxied(folder: Path, address: str, *, most: int) -> Iterator[str]:
    """The example's nginx before an endpoint, on a free port, with a smaller cap of its own."""
    if NGINX is None:
        pytest.skip("skipped: no nginx (Debian: apt-get install nginx)")
    port = free_port()
    text = EXAMPLE.read_text("utf-8")
    for old, new in (
        ("127.0.0.1:8080", f"127.0.0.1:{port}"),
        ("http://127.0.0.1:8001", address),
        ("per_client 32", f"per_client {most}"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    config = folder / "nginx.conf"
    config.write_text(text, "utf-8")
    command = [NGINX, "-e", "stderr", "-p", str(folder), "-c", str(config), "-g", "daemon off;"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(lambda: is_up(url) or process.poll() is not None)
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield url
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code in (200, 502)
    except httpx.ConnectError:
        return False


def test_nginx_caps_connections_and_passes_streams_and_hang_ups(tmp_path: Path) -> None:
    """Twelve at once of one address, while the server itself would take sixteen."""

    async def rush(url: str, gate: Gate) -> list[int | str]:
        async with client_async(url) as ai:
            tasks = [asyncio.create_task(outcome(ai, i)) for i in range(CLIENTS)]
            await until(lambda: sum(task.done() for task in tasks) >= CLIENTS - 12)
            gate.open()
            return await asyncio.gather(*tasks)

    async def leave(url: str, engine: Engine) -> float:
        async with client_async(url) as ai:
            stream = await ai.chat.completions.create(**ENDLESS, stream=True)
            times = []
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    times.append(time.monotonic())
                if len(times) == 8:
                    break
            await until(lambda: engine.snapshot().num_requests_running == 1)
            await stream.close()
            await until(lambda: engine.check_integrity().used == 0)
            return times[-1] - times[0]

    with (
        tiny(tmp_path / "model", **CAP) as (served, address),
        proxied(tmp_path, address, most=12) as url,
    ):
        found = Counter(asyncio.run(rush(url, Gate(served.engine))))
        assert found == {200: 12, 503: 52}
        assert asyncio.run(leave(url, served.engine)) > 0, "the stream came in one piece"
        now = served.engine.snapshot()
        assert (now.finished_requests, now.failed_requests) == (12, 1)
        wrong = httpx.post(f"{url}/v1/chat/completions", json={"model": "tiny"})
        assert wrong.json()["error"]["message"] == "messages: is missing", (
            "answers pass as they are"
        )


def test_nginx_says_that_the_server_is_away(tmp_path: Path) -> None:
    with proxied(tmp_path, f"http://127.0.0.1:{free_port()}", most=12) as url:
        answer = httpx.get(f"{url}/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "unavailable")
