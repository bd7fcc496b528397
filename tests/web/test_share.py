"""Files that are handed on: they stand alone, tell the whole game and can be checked."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arena import share
from arena.share import ShareError
from arena.store import Store, StoreError, queries
from arena.store.queries import reading
from arena.web import boards, data, offline, render

from . import sample

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of both games between movers that draw from the seed."""
    folder = tmp_path_factory.mktemp("played")
    tables = "".join(
        f'[[games]]\ngame = "{game}"\nmax_plies = 12\nat_cap = "material"\n'
        for game in ("chess", "janggi")
    )
    players = '[[players]]\nkind = "random"\n[[players]]\nkind = "material"\n'
    (folder / "run.toml").write_text(f'[run]\nseed = 11\ndb = "run.db"\n{tables}{players}')
    command = [sys.executable, "-m", "arena.cli", "run", "run.toml", "--quiet"]
    root = Path(__file__).parents[2]
    subprocess.run(
        command, cwd=folder, check=True, env={"PYTHONPATH": str(root), "PATH": "/usr/bin"}
    )
    return folder / "run.db"


@pytest.mark.parametrize("game_id", [1, 3])
def test_a_shared_game_is_played_again_and_found_identical(
    played: Path, tmp_path: Path, game_id: int
) -> None:
    with Store.open(played, create=False) as store:
        file = share.share(store, game_id, tmp_path / "game.html")
        plies = queries.game(store, game_id).plies
    verdict = sample.finish(share.verify(file))
    assert verdict.text == f"identical: {plies} plies"
    assert plies == 12


def test_a_forged_move_is_found_at_its_ply(played: Path, tmp_path: Path) -> None:
    with Store.open(played, create=False) as store:
        file = share.share(store, 1, tmp_path / "game.html")
        true = queries.game(store, 1).moves[4].uci
    text = file.read_text()
    forged = offline.embedded(text)
    forged["moves"][4]["uci"] = "a1a1"
    start, end = re.search(r'id="data">(.*?)</script>', text, re.DOTALL).span(1)  # type: ignore[union-attr]
    file.write_text(text[:start] + json.dumps(forged) + text[end:])
    verdict = sample.finish(share.verify(file))
    assert verdict.ply == 5
    assert f"plays {true}, the file says a1a1" in verdict.text


def test_what_cannot_be_replayed_is_one_clear_line(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no game 99"):
        share.share(store, 99, tmp_path / "x.html")
    with pytest.raises(ShareError, match=r"cannot read .*missing.html: No such file"):
        sample.finish(share.verify(tmp_path / "missing.html"))
    other = tmp_path / "other.html"
    other.write_text("<p>hello</p>")
    with pytest.raises(ShareError, match="is no shared game: no game of `arena share` is in it"):
        sample.finish(share.verify(other))
    file = share.share(store, 1, tmp_path / "y.html")
    with pytest.raises(ShareError, match="cannot be replayed"):
        sample.finish(share.verify(file))


def test_a_shared_file_stands_alone_and_shows_what_the_server_shows(
    store: Store, tmp_path: Path, context: "BrowserContext"
) -> None:
    file = share.share(store, 6, tmp_path / "hostile.html")
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready='1']")
    title = page.title()
    with reading(store) as db:
        view = data.game_view(db, 6)
    page.keyboard.press("Home")
    for move in view.moves:
        page.keyboard.press("ArrowRight")
        scene = render.scene_of(view.game, move)
        pieces = page.locator("#board g.pieces").inner_html()
        assert pieces == boards.pieces(boards.JANGGI, scene.fen, False, "hanja")
        assert page.locator("#board g.arrows > g").count() == len(scene.arrows)
    assert page.locator("#panel .raw").count() > 0
    assert page.title() == title
    assert page.locator("img, b, i").count() == 0
    assert [url for url in asked if not url.startswith("file:")] == []


def test_a_published_site_links_every_game(
    played: Path, tmp_path: Path, context: "BrowserContext"
) -> None:
    with Store.open(played, create=False) as store:
        assert share.publish(store, 1, tmp_path / "site") == 4
    page = context.new_page()
    page.goto((tmp_path / "site/index.html").as_uri())
    assert page.locator("h2").all_inner_texts()[-1] == "Games"
    links = page.locator("tbody a").all()
    assert [link.get_attribute("href") for link in links] == [
        f"games/{number}.html" for number in (4, 3, 2, 1)
    ]
    links[0].click()
    page.wait_for_selector("body[data-ready='1']")
    assert page.locator("#rows tr").count() == 12
    page.click(".brand")
    assert page.url.endswith("site/index.html")
