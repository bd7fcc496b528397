import html
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import chess.pgn
import pytest

from arena.store import Store, queries

pytest.importorskip("fastapi", reason="no fastapi here (pip install madang[web])")
from starlette.testclient import TestClient

from arena.web.app import create_app

from . import sample

PAGES = (
    "/runs",
    "/runs/1",
    "/runs/1/standings",
    "/runs/1/games",
    "/runs/1/schedule",
    "/runs/1/latency",
    "/runs/1/failures",
    "/players/1",
    "/players/2",
    "/games/1",
    "/games/6?ply=3&flip=1&script=latin",
    "/games/1/plies/25",
)
TWINS = (
    "/api/runs",
    "/api/runs/1",
    "/api/runs/1/standings",
    "/api/runs/1/games",
    "/api/runs/1/schedule",
    "/api/runs/1/latency",
    "/api/runs/1/failures",
    "/api/runs/1/players",
    "/api/players/2",
    "/api/games/1",
    "/api/games/1/plies/25/attempts",
)
IMPORTED = ("/static/board.js", "/static/live.js")
VOID = {"meta", "link", "input", "br", "img"}


@pytest.fixture
def client(store: Store) -> TestClient:
    return TestClient(create_app(store), base_url="http://127.0.0.1")


class Page(HTMLParser):
    """Collects tags, checks that they nest, and keeps what a strict policy would stop."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_well_formed_and_hold_no_foreign_markup(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text[:300]
    page = Page(answer.text)
    assert page.open == []
    for tag, attributes in page.tags:
        assert tag not in ("img", "b", "i", "style")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag == "script":
            assert str(attributes["src"]).startswith("/static/")
        for name in ("href", "src", "action"):
            assert not str(attributes.get(name) or "").startswith(("http", "//", "javascript"))


@pytest.mark.parametrize("path", TWINS)
def test_every_page_has_a_json_twin(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.json()


def test_the_page_of_a_game_holds_what_its_twin_holds(client: TestClient) -> None:
    view = client.get("/api/games/6").json()
    page = client.get("/games/6").text.partition("<template")[0]
    assert [int(n) for n in re.findall(r'<tr data-ply="(\d+)"', page)] == [
        move["ply"] for move in view["moves"]
    ]
    sans = re.findall(r'<bdi class="san">(.*?)</bdi>', page)
    assert [html.unescape(san) for san in sans] == [m["san"] or "(no move)" for m in view["moves"]]


def test_hostile_text_is_shown_as_text(client: TestClient) -> None:
    panel = client.get("/games/1/plies/25").text
    assert html.escape(sample.HOSTILE, quote=False)[:60] in panel.replace("&#34;", '"').replace(
        "&#39;", "'"
    )
    assert client.get("/games/1/plies/25/attempts/2/answer").text == sample.HOSTILE


def test_a_long_answer_is_cut_in_the_page_and_whole_on_demand(client: TestClient) -> None:
    panel = client.get("/games/1/plies/25")
    assert len(panel.text) < 30_000
    whole = client.get("/games/1/plies/25/attempts/3/answer")
    assert whole.text == sample.LONG
    assert whole.headers["content-type"].startswith("text/plain")
    assert client.get("/games/1/plies/3/attempts/2/prompt").text == "<prompt> & more"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/runs/99", 404),
        ("/games/99", 404),
        ("/players/99", 404),
        ("/games/1/plies/99", 404),
        ("/games/1/plies/1/attempts/1/secret", 404),
        ("/games/1/plies/1/attempts/9/answer", 404),
        ("/nope", 404),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/games/abc", 422),
        ("/games/99999999999999999999", 422),
        ("/runs/1/games?page=0", 422),
        ("/runs/1?script=klingon", 422),
        ("/api/runs/99", 404),
        ("/api/runs/99/events", 404),
        ("/api/games/0", 422),
    ],
)
def test_a_wrong_address_is_one_clear_line(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    if path.startswith("/api"):
        assert "\n" not in answer.json()["detail"]


def test_a_chess_download_reads_back_move_for_move(client: TestClient, store: Store) -> None:
    answer = client.get("/games/2/pgn")
    assert answer.headers["content-disposition"] == 'attachment; filename="game-2.pgn"'
    read = chess.pgn.read_game(io.StringIO(answer.text))
    assert read is not None
    recorded = queries.game(store, 2)
    assert [move.uci() for move in read.mainline_moves()] == [m.uci for m in recorded.moves]
    assert read.headers["Result"] == recorded.result


def test_janggi_and_drawings_can_be_taken_away(client: TestClient) -> None:
    assert '[Variant "Janggi"]' in client.get("/games/6/pgn").text
    assert "[초대국자" in client.get("/games/6/gib").content.decode("cp949")
    assert client.get("/games/1/gib").status_code == 404
    svg = client.get("/games/6/board.svg?ply=4&flip=1")
    assert svg.headers["content-type"] == "image/svg+xml"
    assert svg.text.startswith("<svg")


def test_the_first_page_is_light(client: TestClient) -> None:
    gzip = {"accept-encoding": "gzip"}
    wall = client.get("/runs/1", headers=gzip)
    assert wall.headers["content-encoding"] == "gzip"
    needed = re.findall(r'(?:href|src)="(/static/[^"]+)"', wall.text)
    assert "/static/wall.js" in needed
    sizes = [len(client.get(path).content) for path in (*needed, *IMPORTED)]
    one_tile = len(wall.text.partition('class="tile"')[2].partition('class="tile"')[0])
    fifty = len(wall.text) + 40 * one_tile
    assert fifty + sum(sizes) < 300_000  # uncompressed, for a wall of fifty boards
    assert len(wall.content) + sum(sizes) < 150_000


def test_an_empty_database_says_what_to_do(tmp_path: Path) -> None:
    with Store.open(tmp_path / "new.db") as empty:
        page = TestClient(create_app(empty), base_url="http://127.0.0.1").get("/")
    assert page.url.path == "/runs"
    assert "arena play" in page.text
