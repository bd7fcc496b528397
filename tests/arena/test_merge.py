"""Several databases in one: everything arrives under new numbers, nothing twice."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli import app
from arena.report import standings
from arena.store import Store, StoreError, queries
from arena.store.maintenance import check
from arena.store.merge import merge

from .store_kit import PLAYERS, START, attempt, end, move, slots, telemetry


async def write(store: Store, name: str, plies: int, *, over: bool = True) -> int:
    """A run with a finished game, one that was tried again, an open slot, and telemetry."""
    planned = slots(4)
    run_id = await store.create_run(
        name=name, seed=plies, config={"name": name}, players=PLAYERS, slots=planned
    )
    await store.start_game(run_id, planned[1], START)
    for slot in planned[:2]:
        game = await store.start_game(run_id, slot, START)
        for ply in range(1, plies + 1):
            await store.append_move(game, move(ply, attempts=(attempt(1, prompt=f"ply {ply}?"),)))
        await store.finish_game(game, end(slot, plies=plies))
    await store.append_telemetry(run_id, telemetry(steps=plies))
    if over:
        await store.finish_run(run_id, "interrupted")
    return run_id


def test_every_row_arrives_and_a_second_merge_adds_nothing(target: str, tmp_path: Path) -> None:
    paths = [tmp_path / "one.db", tmp_path / "two.db"]
    for number, path in enumerate(paths):
        with Store.open(path) as store:
            asyncio.run(write(store, f"run {number}", 5 + number))
    with Store.open(paths[0]) as one, Store.open(paths[1]) as two, Store.open(target) as into:
        asyncio.run(write(into, "own", 3))
        found = merge([one, two], into)
        assert [(line.source_run, line.run_id, line.added) for line in found] == [
            (1, 2, True), (1, 3, True),
        ]  # fmt: skip
        again = merge([one, two], into)
        assert [(line.run_id, line.added) for line in again] == [(2, False), (3, False)]
        assert check(into) == []
        for source, run_id in ((one, 2), (two, 3)):
            same(source, into, run_id)


def same(source: Store, into: Store, run_id: int) -> None:
    old, new = queries.run(source, 1), queries.run(into, run_id)
    assert replace(new, id=1, owner="") == replace(old, owner="")
    assert queries.players(into, run_id) == queries.players(source, 1)
    assert queries.slots(into, run_id) == queries.slots(source, 1)
    sides = ((source, 1), (into, run_id))
    before, after = (queries.games(store, number, superseded=True) for store, number in sides)
    renumbered = [replace(one, id=was.id, run_id=1) for one, was in zip(after, before, strict=True)]
    assert renumbered == before
    for game, copy in zip(before, after, strict=True):
        assert queries.game(into, copy.id).moves == queries.game(source, game.id).moves
    kinds = [[(e.seq, e.at, e.kind, e.payload) for e in queries.events(s, n)]
             for s, n in ((source, 1), (into, run_id))]  # fmt: skip
    assert kinds[0] == kinds[1]
    assert queries.telemetry(into, run_id)[0]["steps"] == queries.telemetry(source, 1)[0]["steps"]
    assert into.open_slots(run_id) == source.open_slots(1)
    tables = [standings(s, n)["games"][0]["players"] for s, n in ((source, 1), (into, run_id))]
    assert tables[0] == tables[1]


def test_what_cannot_be_merged_is_one_line(tmp_path: Path) -> None:
    path = str(tmp_path / "one.db")
    with Store.open(path) as store:
        asyncio.run(write(store, "run", 3, over=False))
    with Store.open(path) as one, Store.open(tmp_path / "all.db") as into:
        with pytest.raises(StoreError, match=r"run 1 of .* is not over: .*arena resume 1"):
            merge([one], into)
        with pytest.raises(StoreError, match="is the target itself"):
            merge([one], one)
        assert queries.runs(into) == []


def test_the_command(tmp_path: Path) -> None:
    for name in ("a", "b"):
        words = ["play", "random", "material", "--max-plies", "6", "--at-cap", "draw", "-q"]
        CliRunner().invoke(app, [*words, "--db", str(tmp_path / f"{name}.db")])
    into = str(tmp_path / "all.db")
    sources = [str(tmp_path / f"{name}.db") for name in ("a", "b")]
    done = CliRunner().invoke(app, ["db", "merge", *sources, "--into", into])
    assert done.exit_code == 0, done.output
    assert f"is now run 2 of {into}." in done.stdout
    rated = CliRunner().invoke(app, ["rate", "1", "2", "--db", into, "--json"])
    assert '"games": 4' in rated.stdout
