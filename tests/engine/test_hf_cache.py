"""Models come from a hub over HTTP, by the real client: only what is wanted, and only once."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.engine.test_adding import gguf_file, model_dir

COMMIT = "c0ffee" * 6 + "c0ff"
ADD = """
import sys
from engine import hub
for number, source in enumerate(sys.argv[1:]):
    try:
        info = hub.add(source, f"m{number}", quiet=True)
        print(info.precision, info.source)
    except hub.HubError as error:
        print(error)
"""


class Hub(ThreadingHTTPServer):
    """The part of the hub's interface that the client asks for one repository, org/tiny."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.fetched: list[str] = []


class Answer(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        path, files = self.path.partition("?")[0], self.server.files
        name = path.rpartition("/")[2]
        if path == "/api/models/org/tiny/revision/main":
            self.reply(200, json.dumps({"id": "org/tiny", "sha": COMMIT}).encode())
        elif path.startswith("/api/models/org/tiny/revision/"):
            self.reply(404, b"", "RevisionNotFound")
        elif path.startswith("/api/models/org/tiny/tree/"):
            listed = [
                {"type": "file", "path": name, "size": len(data), "oid": etag(data)}
                for name, data in files.items()
            ]
            self.reply(200, json.dumps(listed).encode())
        elif path.startswith("/org/tiny/resolve/") and name in files:
            if self.command == "GET":
                self.server.fetched.append(name)
            self.reply(200, files[name])
        else:
            known = path.startswith("/org/tiny/")
            self.reply(404, b"", "EntryNotFound" if known else "RepoNotFound")

    do_HEAD = do_GET

    def reply(self, status: int, body: bytes, code: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{etag(body)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if code:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


def etag(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Hub]:
    folder = model_dir(tmp_path / "repository")
    gguf_file(tmp_path / "made" / "m.gguf").rename(folder / "tiny.gguf")
    (folder / "pytorch_model.bin").write_bytes(b"never")
    with Hub(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def added(hub: Hub | None, home: Path, *sources: str) -> list[str]:
    port = hub.server_address[1] if hub is not None else 9
    environment = {
        **os.environ,
        "HF_ENDPOINT": f"http://127.0.0.1:{port}",
        "HF_HUB_CACHE": str(home / "hub"),
        "MADANG_HOME": str(home / "home"),
        "NO_PROXY": "127.0.0.1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", ADD, *sources],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout.splitlines()


def test_a_model_is_fetched_once_and_only_what_is_wanted(served: Hub, tmp_path: Path) -> None:
    told = added(
        served, tmp_path, "hf:org/tiny", "hf:org/tiny/tiny.gguf", "hf:org/other",
        "hf:org/tiny/no.gguf", "hf:org/tiny@nope",
    )  # fmt: skip
    assert told == [
        "bf16 Hugging Face org/tiny at c0ffeec0ffee",
        "f16 Hugging Face org/tiny/tiny.gguf at c0ffeec0ffee",
        "hf:org/other is not on the hub, or asks for a login: accept its licence on its page and "
        "set HF_TOKEN",
        "hf:org/tiny/no.gguf has no 'no.gguf' in the Hugging Face cache, and the hub brings no "
        "more (no network, or a repository without them)",
        "hf:org/tiny@nope: the hub has no revision 'nope' of it",
    ]
    assert sorted(served.fetched) == [
        "config.json", "model.safetensors", "tiny.gguf", "tokenizer.json", "tokenizer_config.json"
    ]  # fmt: skip
    offline = added(None, tmp_path, "hf:org/tiny", "hf:org/tiny/tiny.gguf", "hf:org/tiny/no.gguf")
    assert offline[:2] == told[:2]
    assert "(no network" in offline[2]
    assert len(offline) == 3
