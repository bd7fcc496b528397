"""A viewer beside a run: up while the run is, gone with it, never a reason to stop the run."""

import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from arena.commands.output import Output, followed
from arena.panel import PlainLines
from arena.store import Store


def test_the_viewer_lives_as_long_as_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn")
    db = str(tmp_path / "cup.db")
    with Store.open(db), followed(Output(db, port=0)) as shown:
        assert isinstance(shown, PlainLines)
        shown.announce()
        (line, _) = capsys.readouterr().err.splitlines()
        url = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        with urllib.request.urlopen(url, timeout=10) as page:
            assert page.status == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=10)


def test_a_taken_port_is_said_and_the_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn")
    db = str(tmp_path / "cup.db")
    with socket.create_server(("127.0.0.1", 0)) as taken, Store.open(db):
        port = taken.getsockname()[1]
        with followed(Output(db, port=port)) as shown:
            assert shown is not None
    said = capsys.readouterr().err.splitlines()[0]
    assert said.startswith("arena: no viewer: ")
    assert str(port) in said
