"""What Debian's Chromium shows, compared with the database."""

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arena.records import MoveRecord
from arena.store import Store, queries
from arena.store.queries import reading
from games.base import GameState
from games.registry import get_game

from . import sample

pytest.importorskip("fastapi", reason="no fastapi here (pip install madang[web])")
from arena.web import boards, data, render
from arena.web.server import Handle, start_background

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

READY = "body[data-ready='1']"
LAYERS = """() => ['marks', 'pieces', 'arrows'].map(
    (name) => document.querySelector(`#board .board g.${name}`).innerHTML)"""
SHOWS_SAN = """([id, san]) =>
    document.querySelector(`[data-game="${id}"] .san`).innerText.endsWith(san)"""
WAIT_S = 20.0


def port_of(handle: Handle) -> int:
    return int(handle.url.rsplit(":", 1)[1].strip("/"))


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)


def opened(context: "BrowserContext", address: str) -> "Page":
    """A page whose script has taken over."""
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(READY)
    return page


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Store, Handle]]:
    """A short sample run that goes on while it is watched, and a viewer of its own."""
    path = tmp_path / "live.db"
    with Store.open(path) as store:
        sample.finish(sample.build(store, plies=4))
        handle = start_background(path)
        yield store, handle
        handle.stop()


def state_of(store: Store, game_id: int) -> GameState:
    recorded = queries.game(store, game_id)
    state = get_game(recorded.game).start(rules=recorded.rules, fen=recorded.start_fen)
    for move in recorded.moves:
        state = state.apply(state.parse_move(move.uci))
    return state


def play(store: Store, game_id: int) -> MoveRecord:
    """Record one more move of a running game."""
    slot = next(slot for slot in queries.slots(store, 1) if slot.id == game_id)
    state = state_of(store, game_id)
    move = sample.choose(state, random.Random(len(state.moves)), goes_on=True)
    made = MoveRecord(
        ply=len(state.moves) + 1,
        side=state.turn,
        player=slot.first if state.turn == 0 else slot.second,
        uci=move,
        san=state.format_move(state.parse_move(move), state.game.notations[1]),
        fen=state.apply(state.parse_move(move)).fen(),
        seconds=0.1,
    )
    sample.finish(store.append_move(game_id, made))
    return made


def drawn_plies(page: "Page") -> int:
    return page.locator("#rows tr").count()


@pytest.mark.parametrize("game_id", [1, 6])
def test_stepping_draws_what_the_server_draws(
    server: Handle, store: Store, context: "BrowserContext", game_id: int
) -> None:
    with reading(store) as db:
        view = data.game_view(db, game_id)
    page = opened(context, f"{server.url}games/{game_id}?ply=0&script=hanja")
    geometry = boards.GEOMETRIES[view.game.game]
    for flip in (False, True):
        for move in (None, *view.moves[: 8 if flip else None]):
            scene = render.scene_of(view.game, move)
            marks, pieces, arrows = page.evaluate(LAYERS)
            assert marks == boards.marks(geometry, scene, flip)
            assert pieces == boards.pieces(geometry, scene.fen, flip, "hanja")
            assert re.sub(r"&gt;", ">", arrows) == boards.arrows(geometry, scene.arrows, flip)
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Home")
        page.keyboard.press("f")


def test_every_decision_can_be_read_and_nothing_hostile_runs(
    server: Handle, store: Store, context: "BrowserContext"
) -> None:
    page = opened(context, f"{server.url}games/1")
    title = page.title()
    panel = page.locator("#panel")
    assert "no move" in panel.inner_text()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => document.querySelector('#panel h2').innerText.includes('11…')")
    for summary in panel.locator("details:not([open]) > summary").all():
        summary.click()
    assert sample.HOSTILE[:60] in panel.inner_text()
    assert page.title() == title
    assert page.locator("#panel b, #panel img, #panel script").count() == 0
    box = page.locator("main").bounding_box()
    assert box is not None
    assert box["width"] <= 1280


def test_a_game_follows_live_unless_one_looks_back(
    live: tuple[Store, Handle], context: "BrowserContext"
) -> None:
    store, handle = live
    page = opened(context, f"{handle.url}games/5")
    shown = page.locator("#rows tr[aria-current] .san")
    made = play(store, 5)
    page.wait_for_function("() => document.querySelectorAll('#rows tr').length === 5")
    assert shown.inner_text() == made.san
    page.keyboard.press("ArrowLeft")
    back = shown.inner_text()
    play(store, 5)
    page.wait_for_function("() => document.querySelectorAll('#rows tr').length === 6")
    assert shown.inner_text() == back
    assert "ply=4" in page.url
    page.keyboard.press("End")
    made = play(store, 5)
    page.wait_for_function("() => document.querySelectorAll('#rows tr').length === 7")
    assert shown.inner_text() == made.san
    assert "ply=" not in page.url
    slot = next(slot for slot in queries.slots(store, 1) if slot.id == 5)
    end = sample.ending(slot, state_of(store, 5))
    sample.finish(store.finish_game(5, end))
    page.wait_for_function(
        "([id, text]) => document.getElementById(id).innerText.startsWith(text)",
        arg=["outcome", end.result],
    )


def test_a_lost_connection_is_told_and_nothing_is_lost(
    live: tuple[Store, Handle], context: "BrowserContext", tmp_path: Path
) -> None:
    store, handle = live
    game = opened(context, f"{handle.url}games/10")
    wall = opened(context, f"{handle.url}runs/1")
    port = port_of(handle)
    handle.stop()
    for page in (game, wall):
        page.wait_for_selector("#link.lost")
    made = [play(store, 10) for _ in range(3)]
    again = start_background(tmp_path / "live.db", port=port)
    try:
        game.wait_for_function("() => document.querySelectorAll('#rows tr').length === 7")
        wall.wait_for_function(SHOWS_SAN, arg=[10, made[-1].san])
        for page in (game, wall):
            page.wait_for_function("() => !document.querySelector('#link').innerText")
        assert [row.inner_text() for row in game.locator("#rows .san").all()][-3:] == [
            one.san for one in made
        ]
        assert game.evaluate(LAYERS)[1] == boards.pieces(
            boards.JANGGI, made[-1].fen, False, "hanja"
        )
    finally:
        again.stop()


def test_a_hole_in_the_sequence_makes_the_wall_fetch_again(
    live: tuple[Store, Handle], context: "BrowserContext"
) -> None:
    store, handle = live
    page = context.new_page()
    page.route("**/events?*", lambda route: route.abort())  # nothing arrives at first
    page.goto(f"{handle.url}runs/1")
    page.wait_for_selector(READY)
    made = [play(store, 5), play(store, 10)]
    hole = '{"seq": 9999, "kind": "note", "game_id": null}'
    body = f"id: 9999\ndata: {hole}\n\n"
    page.unroute("**/events?*")
    page.route(
        "**/events?*",
        lambda route: route.fulfill(body=body, content_type="text/event-stream"),
    )
    for move, game_id in zip(made, (5, 10), strict=True):
        page.wait_for_function(
            SHOWS_SAN,
            arg=[game_id, move.san],
        )


def test_a_live_tournament_of_both_games_ends_as_recorded(
    tmp_path: Path, context: "BrowserContext"
) -> None:
    config = tmp_path / "live.toml"
    tables = "".join(
        f'[[games]]\ngame = "{game}"\npairs = 2\nmax_plies = 40\nat_cap = "material"\n'
        for game in ("chess", "janggi")
    )
    players = '[[players]]\nkind = "random"\n[[players]]\nkind = "material"\n'
    config.write_text(f'[run]\nname = "live"\ndb = "live.db"\nconcurrency = 3\n{tables}{players}')
    database = tmp_path / "live.db"
    command = [sys.executable, "-m", "arena.cli", "run", str(config), "--quiet"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=tmp_path, env={"PYTHONPATH": str(root), "PATH": "/usr/bin"}
    ) as process:
        wait_until(lambda: _num_games(database) > 0, "a game is started")
        handle = start_background(database)
        try:
            page = opened(context, f"{handle.url}runs/1")
            assert process.wait(WAIT_S * 3) == 0
            page.wait_for_function("() => document.querySelectorAll('.tile.done').length === 8")
            page.wait_for_function(
                "() => document.getElementById('run-status').innerText === 'finished'"
            )
            assert page.locator("#done").inner_text() == "8"
            with Store.open(database, create=False) as store:
                for one in queries.games_with_moves(store, 1):
                    tile = page.locator(f'[data-game="{one.id}"]')
                    assert tile.locator(".state").inner_text() == one.result
                    pieces = tile.locator("g.pieces").inner_html()
                    geometry = boards.GEOMETRIES[one.game]
                    assert pieces == boards.pieces(geometry, one.moves[-1].fen, False, "hanja")
        finally:
            handle.stop()


def _num_games(database: Path) -> int:
    if not database.exists():
        return 0
    with Store.open(database, create=False) as store, reading(store) as db:
        found = data.runs(db)
        return found[0].num_running + found[0].num_finished if found else 0


def test_pages_read_and_step_without_javascript(server: Handle, context: "BrowserContext") -> None:
    browser = context.browser
    assert browser is not None
    plain = browser.new_context(java_script_enabled=False)
    page = plain.new_page()
    page.goto(f"{server.url}games/6?ply=2")
    assert page.locator("#board use").count() > 20
    page.click("#forward")
    assert "ply=3" in page.url
    assert page.locator("#rows tr[aria-current]").get_attribute("data-ply") == "3"
    page.click("#flip")
    assert page.locator("#board .board[data-flip]").count() == 1
    page.goto(f"{server.url}runs/1")
    assert page.locator(".tile .board use").count() > 300
    plain.close()


def test_no_page_is_wider_than_a_small_phone(server: Handle, context: "BrowserContext") -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 340, "height": 700})
    parts = ("", "/standings", "/games", "/schedule", "/latency", "/failures")
    for path in (*(f"runs/1{part}" for part in parts), "games/1", "games/6", "players/2", "runs"):
        page.goto(server.url + path)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{path} is {wide} px too wide"
