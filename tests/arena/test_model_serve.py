"""`arena model serve` as a process: its address, its end, the series it keeps, its refusals."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from agents.base import Telemetry
from arena.cli import app
from arena.commands.common import UsageFault
from arena.series import kept
from arena.store import Store, StoreError, queries
from tests.engine.server_kit import tiny_dir, wait_for

KEY = "a-key-of-the-test"


def test_a_served_model_answers_and_leaves_its_series(tmp_path: Path) -> None:
    db = tmp_path / "serve.db"
    command = [
        sys.executable, "-m", "arena.cli", "model", "serve", str(tiny_dir(tmp_path / "model")),
        "--name", "tiny", "--port", "0", "--profile", "interactive", "--db", str(db),
        "--engine", "num_gpu_blocks_override=64", "--engine", "max_num_seqs=1",
    ]  # fmt: skip
    environment = {**os.environ, "MADANG_API_KEY": KEY}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            match = re.fullmatch(r"Serving tiny at (http://127\.0\.0\.1:\d+/v1) .*\n", said)
            assert match, said
            body = {"model": "tiny", "prompt": "e2", "max_tokens": 5, "ignore_eos": True}
            headers = {"Authorization": f"Bearer {KEY}"}
            answer = httpx.post(f"{match[1]}/completions", json=body, headers=headers)
            assert answer.json()["usage"]["completion_tokens"] == 5
            assert httpx.post(f"{match[1]}/completions", json=body).status_code == 401
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with Store.open(db, create=False) as store:
        run = queries.latest_run(store)
        assert (run.name, run.status) == ("serve tiny", "finished")
        assert run.config["profile"] == "interactive"
        assert run.config["engine"]["max_num_seqs"] == 1, "over the profile's"
        assert KEY not in repr(run.config)
        first, *_, last = queries.telemetry(store, run.id)
    assert (first["model"], first["steps"], first["completion_tokens"]) == ("tiny", 0, 0)
    assert last["steps"] >= 5
    assert last["completion_tokens"] == 5
    assert last["at"] > first["at"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["m", "--host", "0.0.0.0"], "serving on 0.0.0.0 needs a key: export MADANG_API_KEY"),
        (["m", "--host", "0.0.0.0", "--api-key-env", "OTHER"], "export OTHER with one"),
        (["m", "--engine", "max_num_seqs"], "--engine max_num_seqs: write KEY=VALUE"),
        (["m", "--engine", "max_num_sqs=1"], "did you mean 'max_num_seqs'"),
        (["m", "--engine", "max_num_seqs=0"], "engine.max_num_seqs: input should be greater"),
        (["no-such-model", "--port", "0"], "no-such-model"),
    ],
)
def test_a_wrong_start_is_one_line(
    args: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MADANG_API_KEY", raising=False)
    error = CliRunner().invoke(app, ["model", "serve", *args]).exception
    assert isinstance(error, UsageFault)
    assert words in str(error)
    assert "\n" not in str(error)


def test_a_taken_port_is_one_line() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = str(taken.getsockname()[1])
        error = CliRunner().invoke(app, ["model", "serve", "m", "--port", port]).exception
    assert isinstance(error, UsageFault)
    assert f"port {port}: Address already in use" in str(error)


def test_a_series_is_sampled_until_its_end(tmp_path: Path) -> None:
    taken: list[int] = []

    def read() -> Telemetry:
        taken.append(len(taken))
        return Telemetry("m", loading=False, steps=len(taken))

    db = str(tmp_path / "s.db")
    with kept(db, "serve m", {}, read, every_s=0.01) as run_id:
        wait_for(lambda: len(taken) > 3)
        assert Store.open(db, create=False).path is not None, "others may read meanwhile"
    with Store.open(db, create=False) as store:
        rows = queries.telemetry(store, run_id)
    assert [row["steps"] for row in rows] == list(range(1, len(taken) + 1))


def test_a_database_that_cannot_be_written_is_said_before_the_start(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError),
        kept(str(tmp_path / "no" / "where.db"), "s", {}, lambda: Telemetry("m", loading=False)),
    ):
        pytest.fail("it began")
