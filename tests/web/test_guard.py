from pathlib import Path

import pytest

from arena.store import Store

pytest.importorskip("fastapi", reason="no fastapi here (pip install madang[web])")
from starlette.testclient import TestClient

from arena.web.app import create_app
from arena.web.guard import COOKIE, Guard
from arena.web.server import ServeError, is_loopback, start_background

HERE = "http://127.0.0.1"


def test_only_our_own_names_are_answered(store: Store) -> None:
    app = create_app(store)
    assert TestClient(app, base_url=HERE).get("/runs").status_code == 200
    assert TestClient(app, base_url="http://localhost:8000").get("/runs").status_code == 200
    assert TestClient(app, base_url="http://[::1]:8000").get("/runs").status_code == 200
    assert TestClient(app, base_url="http://evil.example").get("/runs").status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_written(store: Store, method: str) -> None:
    answer = TestClient(create_app(store), base_url=HERE).request(method, "/runs/1")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_every_answer_carries_the_strict_policy(store: Store) -> None:
    client = TestClient(create_app(store), base_url=HERE)
    for path in ("/runs/1", "/api/runs", "/static/game.js", "/nope", "/games/1/pgn"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"


def test_other_addresses_need_the_token(store: Store) -> None:
    with pytest.raises(ValueError, match="needs a token"):
        Guard(create_app(store), hosts=None)
    app = create_app(store, hosts=None, token="secret")
    client = TestClient(app, base_url="http://board.example", follow_redirects=False)
    assert client.get("/runs").status_code == 401
    assert client.get("/runs?token=wrong").status_code == 401
    assert client.get("/runs", headers={"authorization": "Bearer secret"}).status_code == 200
    entered = client.get("/runs/1/games?token=secret&game=chess")
    assert entered.status_code == 303
    assert entered.headers["location"] == "/runs/1/games?game=chess"
    assert COOKIE in client.cookies
    assert client.get("/runs").status_code == 200


def test_a_token_never_leads_to_another_site(store: Store) -> None:
    app = create_app(store, hosts=None, token="secret")
    client = TestClient(app, base_url="http://board.example", follow_redirects=False)
    answer = client.get("http://board.example//evil.example/x?token=secret")
    assert answer.headers["location"] == "/evil.example/x"


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("x.y", False)],
)
def test_what_counts_as_this_machine(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_a_taken_port_is_one_clear_line(record: Path) -> None:
    first = start_background(record)
    port = int(first.url.rsplit(":", 1)[1].strip("/"))
    with pytest.raises(ServeError, match=f"port {port}: .*; choose another --port"):
        start_background(record, port=port)
    first.stop()
