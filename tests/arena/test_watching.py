"""A run followed from its record shows what one that is followed live shows."""

import asyncio
import io
from pathlib import Path

from typer.testing import CliRunner

from agents.factory import create_agents
from arena.cli import app
from arena.config import resolved
from arena.events import Event, GameFinished, MovePlayed, RunFinished, RunStarted, Subscription
from arena.panel import PlainLines
from arena.plan import make_plan
from arena.run_view import RunView
from arena.store import Store
from arena.tournament import infos
from arena.watching import watch

from .test_sprt_run import SECTION
from .test_tournament import BOTH, MIX, configured, go_on


class Follower:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def follow(self, events: Subscription) -> None:
        async for event in events:
            self.events.append(event)


def view(events: list[Event]) -> RunView:
    seen = RunView(lambda: 1.0)
    for event in events:
        seen.apply(event)
    return seen


def moves(events: list[Event]) -> set[tuple[int, int, str, str]]:
    played = (event for event in events if isinstance(event, MovePlayed))
    return {(one.game_id, one.move.ply, one.move.uci, one.move.fen) for one in played}


def test_a_follower_of_the_record_sees_every_move_and_every_end(tmp_path: Path) -> None:
    config = configured(MIX, *BOTH, seed=3, concurrency=4)

    async def both() -> tuple[list[Event], list[Event], str]:
        with Store.open(tmp_path / "a.db") as store, Store.open(tmp_path / "a.db") as other:
            players, slots = create_agents(config.players), make_plan(config).slots
            run_id = await store.create_run(
                name="t", seed=3, config=resolved(config), players=infos(config, players),
                slots=slots,
            )  # fmt: skip
            follower = Follower()
            watching = asyncio.create_task(watch(other, run_id, follower, poll_s=0.01))
            await asyncio.sleep(0.05)
            _, live = await go_on(config, store, run_id, slots, players)
            return live, follower.events, await watching

    live, watched, status = asyncio.run(both())
    assert status == "finished"
    for kind in (MovePlayed, GameFinished):
        told = [event for event in watched if isinstance(event, kind)]
        assert len(told) == sum(isinstance(event, kind) for event in live)
    assert moves(watched) == moves(live)
    assert isinstance(watched[0], RunStarted)
    assert isinstance(watched[-1], RunFinished)
    assert view(live).scores == view(watched).scores
    assert not view(watched).live


def test_a_finished_run_is_told_at_once(tmp_path: Path) -> None:
    db = str(tmp_path / "a.db")
    words = ["--max-plies", "6", "--at-cap", "draw", "--db", db, "-q"]
    assert CliRunner().invoke(app, ["play", "random", "material", *words]).exit_code == 0
    with Store.open(db) as store:
        lines = io.StringIO()
        asyncio.run(watch(store, 1, PlainLines(lines, io.StringIO())))
    assert len(lines.getvalue().splitlines()) == 2
    out = CliRunner().invoke(app, ["watch", "--db", db])
    assert out.exit_code == 0
    assert out.stdout.splitlines()[-1] == "run 1 is finished"


def test_a_sequential_test_is_told_with_its_ratio(tmp_path: Path) -> None:
    from .test_sprt_run import PLAYERS, whole

    config = configured(PLAYERS, SECTION, seed=4, concurrency=2)
    with Store.open(tmp_path / "a.db") as store:
        run_id = asyncio.run(whole(config, store, None))
        follower = Follower()
        asyncio.run(watch(store, run_id, follower))
    assert "H1 accepted" in next(iter(view(follower.events).tests.values()))
