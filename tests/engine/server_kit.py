"""The endpoint over a real socket, on a real or a very small random model."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import openai

from engine.config import EngineConfig
from engine.engine import Engine
from engine.server import create_app, server_of
from engine.server_answer import Served
from engine.tokenizer import Tokenizer
from tests.engine.model_kit import byte_level_tokenizer, chatml_dir
from tests.engine.runner_kit import write_checkpoint

PATIENCE_S = 20.0


def tiny_dir(folder: Path) -> Path:
    """A random model that speaks ChatML, in a directory."""
    size = byte_level_tokenizer().get_vocab_size()
    return chatml_dir(write_checkpoint(folder, vocab_size=size))


def load(folder: Path, name: str, **settings: object) -> Served:
    engine = Engine.load(EngineConfig.from_dict({"model": str(folder), **settings}))
    return Served(name, engine, cast(Tokenizer, engine.tokenizer))


@contextmanager
def serving(served: Served, api_key: str | None = None) -> Iterator[str]:
    """The address of a running endpoint, without a path."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        server = server_of(create_app(served, api_key=api_key))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@contextmanager
def tiny(folder: Path, **settings: object) -> Iterator[tuple[Served, str]]:
    """A tiny model and its address; nobody holds a block of it at the end."""
    served = load(tiny_dir(folder), "tiny", num_gpu_blocks_override=600, **settings)
    with served.engine, serving(served) as address:
        yield served, address
        assert_free(served.engine)


def client(address: str, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)


def client_async(address: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)


def wait_for(question: Callable[[], bool]) -> None:
    """Until it is so; fails after `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while not question():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.01)


def assert_free(engine: Engine) -> None:
    """Soon no request is open and no block is held; queue and blocks are in order."""
    wait_for(lambda: engine.check_integrity().used == 0)
    now = engine.snapshot()
    assert (now.num_requests_running, now.num_requests_waiting) == (0, 0)
