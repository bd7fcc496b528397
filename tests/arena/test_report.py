"""Summaries: endings, percentiles, the engine's use; and tables that stand straight."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.records import Status, Termination
from arena.report import summary, summary_text
from arena.report.summary import percentiles
from arena.report.text import table, width
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
