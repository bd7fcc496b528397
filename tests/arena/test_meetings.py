"""Crosstable, head to head, rating of several runs, and how a run went: as data and as printed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.base import Attempt
from arena import report
from arena.records import Result, Termination
from arena.report.layout import width
from arena.report.pools import UnequalPlayers, UnequalTerms
from arena.store import Store, StoreError

from .report_kit import agent, new_run, pair_slots, record

NAMES = ("ann", "bob", "cat")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Three players over two pairs each; ann beats bob, bob and cat draw, cat's second forfeits."""
    with Store.open(tmp_path_factory.mktemp("meetings") / "a.db") as opened:
        fill(opened, NAMES)
        yield opened


def fill(store: Store, names: tuple[str, ...], **config: object) -> int:
    ann, bob, cat = names
    slots = pair_slots(ann, bob, 2)
    slots += pair_slots(bob, cat, 2, start=4)
    slots += pair_slots(cat, ann, 1, start=8)
    run_id = new_run(store, [agent(name) for name in names], slots, config)

    async def play() -> None:
        for slot in slots[:4]:
            won: Result = "1-0" if slot.first == ann else "0-1"
            await record(store, run_id, slot, won)
        for slot in slots[4:8]:
            await record(store, run_id, slot, "1/2-1/2", termination="draw_agreed")
        await record(store, run_id, slots[8], "1-0")
        refused = tuple(Attempt(n, "illegal", answer="e2e5") for n in (1, 2, 3))
        await record(
            store, run_id, slots[9], "1-0", failed=refused, termination=Termination.ILLEGAL
        )

    asyncio.run(play())
    return run_id


def test_a_crosstable_adds_up_from_both_sides(store: Store) -> None:
    (table,) = report.crosstable(store, 1)["games"]
    rows = {row["name"]: row for row in table["players"]}
    assert [row["name"] for row in table["players"]] == ["ann", "cat", "bob"]
    assert (rows["ann"]["games"], rows["ann"]["score"]) == (6, 5.0)
    for name, row in rows.items():
        for rival, cell in row["against"].items():
            mirror = rows[rival]["against"][name]
            assert (cell["wins"], cell["draws"]) == (mirror["losses"], mirror["draws"])
    assert sum(row["score"] for row in rows.values()) == 10
    lines = report.crosstable_text(store, 1, 80).splitlines()
    assert lines[1].split() == ["player", "points", "1", "2", "3"]
    assert lines[2].split() == ["1", "ann", "5/6", "·", "1/2", "4/4"]


def test_many_players_go_on_below(tmp_path: Path) -> None:
    names = tuple(f"player {number:02}" for number in range(24))
    slots = [
        slot
        for number, rival in enumerate(names[1:])
        for slot in pair_slots(names[0], rival, 1, start=2 * number)
    ]
    with Store.open(tmp_path / "a.db") as store:
        run_id = new_run(store, [agent(name) for name in names], slots)
        asyncio.run(record(store, run_id, slots[0]))
        text = report.crosstable_text(store, run_id, 80)
    assert max(width(line) for line in text.splitlines()) <= 80
    assert text.count("player 23") >= 2


def test_head_to_head_is_seen_by_the_first_named(store: Store) -> None:
    found = report.head_to_head(store, "cat", "ann", 1)
    (table,) = found["games"]
    assert (table["wins"], table["draws"], table["losses"]) == (1, 0, 1)
    assert table["first"] == {"wins": 1, "draws": 0, "losses": 0}
    assert table["second"] == {"wins": 0, "draws": 0, "losses": 1}
    assert [game["termination"] for game in table["list"]] == ["checkmate", "illegal"]
    text = report.head_to_head_text(store, "cat", "ann", 1, 80)
    assert "cat moves first      1  1  0  0      1" in text
    assert "game 10: ann moved first, 1-0 after 6 plies" in text
    with pytest.raises(StoreError, match=r"no player 'anna' .did you mean 'ann'"):
        report.head_to_head(store, "anna", "bob")
    with pytest.raises(StoreError, match="does not play itself"):
        report.head_to_head(store, "bob", "bob")


def test_players_who_did_not_meet(store: Store) -> None:
    slots = [*pair_slots("ann", "bob", 1), *pair_slots("bob", "cat", 1, start=2)]
    run_id = new_run(store, [agent(name) for name in NAMES], slots)
    assert "no rated game yet" in report.head_to_head_text(store, "ann", "cat", run_id)


def test_answers_are_counted_by_what_they_were(store: Store) -> None:
    rows = {row["player"]: row for row in report.stats(store, 1)["answers"]}
    assert rows["ann"]["kinds"] == {"move": 18, "illegal": 3}
    assert rows["ann"]["refused_turns"] == 1
    assert rows["bob"]["refused_turns"] == 0
    text = report.stats_text(store, 1, 80)
    assert "Answers by what they were read as" in text
    assert "unparsable" not in text


def test_equal_runs_are_rated_together_and_anchors_hold(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        for _ in range(2):
            fill(store, NAMES, games=[{"max_plies": 60, "at_cap": "material"}])
        found = report.rate(store, [1, 2], {"bob": 1500.0})
        (table,) = found["games"]
        ratings = {row["name"]: row for row in table["players"]}
        assert table["scale"] == "Elo"
        assert ratings["ann"]["games"] == 12
        assert ratings["bob"]["rating"] == 1500.0
        assert "held fixed: bob = 1500" in report.rate_text(store, [1, 2], {"bob": 1500.0})
        with pytest.raises(StoreError, match=r"anchor 'bop': .*did you mean 'bob'"):
            report.rate(store, [1], {"bop": 1.0})
        with pytest.raises(StoreError, match="there is no run 3"):
            report.rate(store, [1, 3], {})


@pytest.mark.parametrize("other", [{"max_plies": 80}, {"max_plies": 60, "tc": "1+0.1"}])
def test_unequal_terms_are_refused_in_one_line(tmp_path: Path, other: dict[str, object]) -> None:
    with Store.open(tmp_path / "a.db") as store:
        fill(store, NAMES, games=[{"max_plies": 60}])
        fill(store, NAMES, games=[other])
        with pytest.raises(UnequalTerms, match=r"run 1 .* and of run 2 .* rate these runs apart"):
            report.rate(store, [1, 2], {})
        assert report.rate(store, [2], {})["runs"] == [2]


def test_another_policy_under_one_name_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        for attempts in (1, 3):
            players = [agent("ann", "llm", policy={"attempts": attempts}), agent("bob")]
            slots = pair_slots("ann", "bob", 1)
            run_id = new_run(store, players, slots)
            asyncio.run(record(store, run_id, slots[0]))
        with pytest.raises(UnequalPlayers, match="'ann' has other settings in run 2 than in run 1"):
            report.rate(store, [1, 2], {})
