"""Standings from a recorded run: what counts, what does not, and what is never pooled."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.base import Attempt
from arena.records import Result, Slot, Status, Termination
from arena.report import standings, standings_text, summary_text
from arena.report.pools import UnequalPlayers
from arena.store import Store, StoreError

from .report_kit import agent, new_run, pair_slots, record

KEYS = {"name", "games", "score", "rating", "low", "high", "forfeits", "legality"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "a.db") as opened:
        yield opened


def test_the_table_of_a_finished_run(store: Store) -> None:
    slots = pair_slots("ann", "bob", 4)
    run_id = new_run(store, [agent("ann"), agent("bob")], slots)
    for slot in slots:
        asyncio.run(record(store, run_id, slot, "1-0" if slot.first == "ann" else "0-1"))
    found = json.loads(json.dumps(standings(store)))
    (table,) = found["games"]
    assert (table["game"], table["scale"], table["planned"]) == ("chess", "rating, mean 0", 8)
    ann, bob = table["players"]
    assert ann.keys() >= KEYS
    assert (ann["name"], ann["games"], ann["score"]) == ("ann", 8, 8.0)
    assert (bob["games"], bob["score"], bob["forfeits"]) == (8, 0.0, 0)
    assert ann["low"] < ann["rating"] < ann["high"]
    assert table["match"]["pentanomial"] == [0, 0, 0, 0, 4]
    assert table["board"]["games"] == 8
    assert table["verdicts"][0].startswith("ann − bob: +")
    assert "ann − bob: +" in standings_text(store)


def test_what_does_not_count(store: Store) -> None:
    slots = pair_slots("ann", "bob", 4)
    run_id = new_run(store, [agent("ann"), agent("bob")], slots)

    async def play() -> None:
        cut = Termination.CUT_SHORT
        await record(store, run_id, slots[0], "1/2-1/2", termination=cut, rated=False)
        await record(store, run_id, slots[1], "*", termination=cut, rated=False)
        await record(
            store, run_id, slots[2], "*", status=Status.ABORTED, termination="engine_error"
        )
        await store.start_game(run_id, slots[3], "8/8/8/8/8/8/8/8 w - - 0 1")
        await record(store, run_id, slots[4], "1-0")

    asyncio.run(play())
    (table,) = standings(store, run_id)["games"]
    assert [player["games"] for player in table["players"]] == [1, 1]
    assert table["match"] is None  # no pair is complete
    assert "no rated game yet" not in standings_text(store)


def test_forfeits_and_two_tables(store: Store) -> None:
    slots = pair_slots("ann", "bob", 3)
    run_id = new_run(store, [agent("ann"), agent("bob", "llm", mode="free")], slots)

    async def play() -> None:
        for slot in slots[:4]:
            lost: Result = "1-0" if slot.second == "bob" else "0-1"
            await record(store, run_id, slot, lost, termination=Termination.ILLEGAL)
        for slot in slots[4:]:
            await record(store, run_id, slot, "0-1" if slot.first == "ann" else "1-0")

    asyncio.run(play())
    (table,) = standings(store, run_id)["games"]
    players = {player["name"]: player for player in table["players"]}
    assert (players["bob"]["forfeits"], players["ann"]["forfeits"]) == (4, 0)
    assert (players["ann"]["score"], players["bob"]["score"]) == (4.0, 2.0)
    board = {player["name"]: player["score"] for player in table["board"]["players"]}
    assert board == {"bob": 2.0, "ann": 0.0}
    second = standings_text(store).partition("decided on the board: 2\n")[2].splitlines()
    assert second[0].split()[:3] == ["player", "games", "score"]
    assert second[1].startswith("bob ")


def test_legality_is_the_share_of_first_answers_that_were_legal(store: Store) -> None:
    slots = pair_slots("free", "held", 1)
    players = [agent("free", "llm", mode="free"), agent("held", "llm", mode="choice")]
    run_id = new_run(store, players, slots)
    illegal = Attempt(1, "illegal", answer="Ke9", uci="e1e9")

    async def play() -> None:
        await record(store, run_id, slots[0], plies=6)
        await record(store, run_id, slots[1], plies=2, refused=[illegal], failed=[illegal])

    asyncio.run(play())
    rows = {row["name"]: row for row in standings(store)["games"][0]["players"]}
    # first answers of `free`: 3 legal in game 1; 1 refused in game 2 (its retry does not count)
    assert rows["free"]["legality"] == pytest.approx(3 / 4)
    assert rows["held"]["legality"] == "forced"


def test_players_who_answer_nothing_have_no_legality(store: Store) -> None:
    run_id = new_run(store, [agent("ann"), agent("bob")], pair_slots("ann", "bob", 1))
    assert [row["legality"] for row in standings(store, run_id)["games"][0]["players"]] == [
        None
    ] * 2
    assert "no rated game yet" in standings_text(store, run_id)


def test_games_under_other_rules_or_terms_have_tables_of_their_own(store: Store) -> None:
    sections = [
        {"game": "chess", "max_plies": 40, "at_cap": "material"},
        {"game": "chess", "max_plies": 80, "at_cap": "material"},
        {"game": "janggi"},
        {"game": "janggi"},
    ]
    fields: list[dict[str, Any]] = [
        {"section": 0},
        {"section": 1},
        {"section": 2, "game": "janggi", "rules": "fairy", "setup": "nbbn/nbbn"},
        {"section": 3, "game": "janggi", "rules": "kja", "setup": "nbbn/nbbn"},
    ]
    slots = [
        slot
        for number, field in enumerate(fields)
        for slot in pair_slots("ann", "bob", 1, start=number * 2, **field)
    ]
    run_id = new_run(store, [agent("ann"), agent("bob")], slots, {"games": sections})
    for slot in slots:
        asyncio.run(record(store, run_id, slot))
    tables = standings(store)["games"]
    assert [(t["game"], t["rules"], t["players"][0]["games"]) for t in tables] == [
        ("chess", "standard", 2),
        ("chess", "standard", 2),
        ("janggi", "fairy", 2),
        ("janggi", "kja", 2),
    ]
    assert ["40" in tables[0]["terms"], "80" in tables[1]["terms"]] == [True, True]
    assert tables[2]["terms"] == ""


def test_runs_are_pooled_only_where_the_players_are_the_same(store: Store) -> None:
    slots = pair_slots("ann", "bob", 2)
    runs = [new_run(store, [agent("ann"), agent("bob")], slots) for _ in range(2)]
    other = new_run(store, [agent("ann"), agent("bob", temperature=0.7)], slots)
    for run_id in (*runs, other):
        for slot in slots:
            asyncio.run(record(store, run_id, slot, seed=run_id * 100 + slot.id))
    (table,) = standings(store, runs)["games"]
    assert [player["games"] for player in table["players"]] == [8, 8]
    assert table["match"]["pairs"] == 4
    with pytest.raises(UnequalPlayers, match="'bob' has other settings in run 3 than in run 1"):
        standings(store, [*runs, other])
    with pytest.raises(StoreError, match="there is no run 9"):
        standings(store, 9)


def test_identical_games_are_counted_once_in_distinct(store: Store) -> None:
    slots = pair_slots("ann", "bob", 3)
    run_id = new_run(store, [agent("ann"), agent("bob")], slots)
    for slot in slots:
        asyncio.run(record(store, run_id, slot, seed=7))
    (table,) = standings(store)["games"]
    assert [(p["games"], p["distinct"]) for p in table["players"]] == [(6, 2), (6, 2)]


def test_janggi_league_points(store: Store) -> None:
    game: dict[str, Any] = {"game": "janggi", "rules": "fairy", "setup": "nbbn/nbbn"}
    slots = pair_slots("ann", "bob", 2, **game)
    run_id = new_run(store, [agent("ann"), agent("bob")], slots)
    ends: list[tuple[Slot, Result, str]] = [
        (slots[0], "1-0", "checkmate"),  # ann 7, bob 0
        (slots[1], "0-1", "double_pass_points"),  # ann 4, bob 2
        (slots[2], "0-1", Termination.ILLEGAL),  # ann 0, bob 7
        (slots[3], "1-0", Termination.ADJUDICATED_POINTS),  # bob 4, ann 2
    ]
    for slot, result, termination in ends:
        asyncio.run(record(store, run_id, slot, result, termination=termination))
    (table,) = standings(store)["games"]
    assert {p["name"]: p["league"] for p in table["players"]} == {"ann": 13.0, "bob": 13.0}


def test_hostile_names_do_not_reach_the_terminal(store: Store) -> None:
    name = "\x1b[31m\u202eevil\n한국"
    slots = pair_slots(name, "bob", 1)
    run_id = new_run(store, [agent(name), agent("bob")], slots)
    for slot in slots:
        asyncio.run(record(store, run_id, slot))
    for text in (standings_text(store), summary_text(store)):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "·[31m··evil·한국"[:6] in text
