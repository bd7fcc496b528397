"""Summaries: endings, percentiles, the engine's use; and tables that stand straight."""

import asyncio
import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from arena.records import Status, Termination
from arena.report import standings_text, summary, summary_text
from arena.report.layout import distinct, table, width
from arena.report.summary import percentiles
from arena.store import Store, StoreError

from .report_kit import agent, new_run, pair_slots, record
from .store_kit import telemetry


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "a.db") as opened:
        yield opened


def test_percentiles_are_nearest_rank_and_skip_what_is_not_known() -> None:
    assert percentiles([None, 3.0, 1.0, 2.0]) == {"p50": 2.0, "p90": 3.0, "p95": 3.0}
    hundred = [float(value) for value in range(1, 101)]
    assert percentiles(hundred) == {"p50": 50.0, "p90": 90.0, "p95": 95.0}
    assert percentiles([None]) is None


def test_a_run_in_figures(store: Store) -> None:
    slots = pair_slots("ann", "bob", 3)
    players = [agent("ann"), agent("bob", "llm", mode="free", model="smollm2-135m")]
    run_id = new_run(store, players, slots)

    async def play() -> None:
        await record(store, run_id, slots[0], "1-0", plies=10)
        await record(store, run_id, slots[1], "1-0", plies=10)
        await record(store, run_id, slots[2], "1-0", termination=Termination.UNPARSABLE)
        await record(store, run_id, slots[3], "0-1", termination=Termination.CUT_SHORT, rated=False)
        await record(store, run_id, slots[4], "*", status=Status.ABORTED, termination="bug")
        for steps in (10, 40, 5):  # the process was started again before the third
            sample = telemetry(
                steps=steps,
                rows=steps * 8,
                sequences=steps * 3,
                prefix_cache_queries=steps * 100,
                prefix_cache_hits=steps * 75,
                completion_tokens=steps * 6,
                busy_seconds=steps * 0.5,
                num_requests_running=steps,
                kv_cache_usage_perc=steps / 100,
            )
            await store.append_telemetry(run_id, sample)
        await store.finish_run(run_id, "finished")

    asyncio.run(play())
    found = json.loads(json.dumps(summary(store)))
    assert found["run"]["finished"] == 4
    assert found["run"]["open"] == 2
    (game,) = found["games"]
    assert game["forfeits"] == {"bob": {"unparsable": 1}}
    endings = {(e["ending"], e["termination"]): e["games"] for e in game["endings"]}
    assert endings == {
        ("board", "checkmate"): 2,
        ("protocol", "unparsable"): 1,
        ("cut_short", "cut_short"): 1,
        ("no_result", "bug"): 1,
    }
    bob = next(player for player in found["players"] if player["name"] == "bob")
    assert bob["prefix_hit_rate"] == pytest.approx(0.8)
    assert bob["queue"]["p50"] <= bob["ttft"]["p50"] <= bob["seconds"]["p50"]
    assert bob["tokens_per_s"]["p95"] == pytest.approx(10 / 0.5)
    (engine,) = found["engines"]
    assert engine["steps"] == 45
    assert engine["mean_batch"] == pytest.approx(3)
    assert engine["prefix_hit_rate"] == pytest.approx(0.75)
    assert engine["tokens_per_s"] == pytest.approx(12)
    assert engine["peak_kv_usage"] == pytest.approx(0.4)
    text = summary_text(store)
    for word in ("unparsable", "Latency, seconds: p50 / p90 / p95", "mean batch", "75%"):
        assert word in text
    assert "A 135M model tests the plumbing and not chess" in text


def test_an_empty_run_and_no_run(store: Store) -> None:
    with pytest.raises(StoreError, match="holds no run yet"):
        summary(store)
    new_run(store, [agent("ann"), agent("bob")], pair_slots("ann", "bob", 1))
    assert summary(store)["players"] == []
    assert "no rated game yet" in summary_text(store)


def test_columns_stand_straight_with_wide_letters() -> None:
    lines = table(("player", "score"), [("마당", "1"), ("a", "22"), ("é", "3")]).splitlines()
    assert len({width(line) for line in lines}) == 1
    assert lines[1] == "마당        1"


NAMES = (
    "smollm2-135m:q4_1→fp32:constrained:history",
    "smollm2-135m:q4_1→fp32:constrained:position",
    "아주 긴 이름을 가진 장기 선수 " + "가" * 30,
)


@pytest.mark.parametrize("columns", [80, 120])
def test_nothing_printed_is_wider_than_the_terminal(store: Store, columns: int) -> None:
    slots = [
        slot
        for number, (a, b) in enumerate(combinations(NAMES, 2))
        for slot in pair_slots(a, b, 2, start=4 * number)
    ]
    run_id = new_run(store, [agent(name) for name in NAMES], slots)
    for slot in slots:
        asyncio.run(record(store, run_id, slot, "1-0" if slot.first == NAMES[0] else "0-1"))
    for text in (standings_text(store, columns=columns), summary_text(store, columns=columns)):
        assert max(width(line) for line in text.splitlines()) <= columns
        assert "ined:history" in text
        assert "ned:position" in text


def test_a_wide_table_goes_on_below_itself() -> None:
    headers = ["player", *(f"column {n}" for n in range(6))]
    rows = [["a" * 30 + "x", *"012345"], ["a" * 30 + "y", *"012345"]]
    lines = table(headers, rows, columns=50).splitlines()
    assert [line.split()[0] for line in lines if line].count("player") == 3
    assert all(width(line) <= 50 for line in lines)
    assert {line.split()[0][-1] for line in lines if line.startswith("aaa")} == {"x", "y"}


def test_names_that_would_look_alike_are_written_out() -> None:
    one, other = "m" * 20 + "1" + "n" * 30, "m" * 20 + "2" + "n" * 30
    assert distinct([one, other, "p" * 40], 12) == [one, other, "ppp…pppppppp"]
