"""The store: what is written is there, atomic, acknowledged after its commit, in both databases."""

import asyncio
from pathlib import Path

import pytest

from agents.base import AgentInfo, Belief
from arena.records import Slot, Status
from arena.store import Store, StoreError, queries
from arena.store.transaction import Transaction

from .store_kit import PLAYERS, START, attempt, end, move, slots, telemetry


async def new_run(store: Store, count: int = 4) -> tuple[int, list[Slot]]:
    planned = slots(count)
    run_id = await store.create_run(
        name="demo", seed=7, config={"a": [1, "나"]}, players=PLAYERS, slots=planned
    )
    return run_id, planned


def test_a_run_reads_back_as_it_was_written(target: str) -> None:
    async def write(store: Store) -> tuple[int, int]:
        run_id, planned = await new_run(store)
        game = await store.start_game(run_id, planned[0], START)
        await store.append_move(game, move(1))
        await store.append_move(game, move(2, belief=None, attempts=(), seconds=0.125))
        failed = (attempt(1, kind="illegal"), attempt(2, kind="empty", span=None, timing=None))
        ended = end(planned[0], plies=2, failed_attempts=failed, points=(39.0, 38.5))
        await store.finish_game(game, ended)
        await store.append_telemetry(run_id, telemetry(steps=9, kv_cache_usage_perc=0.5))
        await store.finish_run(run_id, "finished")
        return run_id, game

    with Store.open(target) as store:
        run_id, game_id = asyncio.run(write(store))
    with Store.open(target) as store:
        info = queries.latest_run(store)
        assert (info.id, info.name, info.seed, info.status) == (run_id, "demo", 7, "finished")
        assert info.config == {"a": [1, "나"]}
        assert queries.players(store, run_id) == list(PLAYERS)
        assert queries.slots(store, run_id) == slots()
        game = queries.game(store, game_id)
        assert game.moves == (move(1), move(2, belief=None, attempts=(), seconds=0.125))
        assert [a.kind for a in game.failed_attempts] == ["illegal", "empty"]
        assert game.failed_attempts[0] == attempt(1, kind="illegal")
        assert (game.result, game.ending, game.points_second) == ("1-0", "board", 38.5)
        assert [s.id for s in store.open_slots(run_id)] == [1, 2, 3]
        status = queries.run_status(store, run_id)
        assert (status.finished, status.open, status.moves) == (1, 3, 2)
        assert queries.telemetry(store, run_id)[0]["steps"] == 9


def test_hostile_text_is_kept_and_spans_stay_right(target: str) -> None:
    answer = "\0e4 \ud800 🙂 '; DROP TABLE moves; --\x1b[31m" + "가" * 100_000
    said = attempt(1, answer=answer, prompt=answer, detail=answer, prompt_hash="")
    name = "ann'; DROP TABLE games; -- \u202e🙂"

    async def write(store: Store) -> int:
        players = [AgentInfo(name, "random", {"note": "\0\ud800"}, True), PLAYERS[1]]
        slot = Slot(0, "chess", "standard", name, "bob", pair=0)
        run_id = await store.create_run(
            name=answer, seed=1, config={}, players=players, slots=[slot]
        )
        game = await store.start_game(run_id, slot, START)
        await store.append_move(game, move(1, player=name, attempts=(said,)))
        return game

    with Store.open(target) as store:
        game = queries.game(store, asyncio.run(write(store)))
        kept = game.moves[0].attempts[0].answer
        assert len(kept) == len(answer)
        assert kept.startswith("␀e4 \ufffd 🙂 '; DROP TABLE moves; --\x1b[31m가")
        assert game.first == name
        assert game.moves[0].attempts[0].prompt == kept


def test_the_same_prompt_is_kept_once(target: str) -> None:
    async def write(store: Store) -> None:
        run_id, planned = await new_run(store)
        for slot in planned:
            game = await store.start_game(run_id, slot, START)
            await asyncio.gather(*(store.append_move(game, move(ply)) for ply in (1, 2)))

    with Store.open(target) as store:
        asyncio.run(write(store))
        with queries.reading(store) as connection:
            count = connection.exec_driver_sql("SELECT count(*), min(text) FROM prompts").one()
            assert tuple(count) == (1, "Your move?")


def test_what_waits_together_shares_a_commit(target: str) -> None:
    async def write(store: Store) -> None:
        run_id, planned = await new_run(store, 100)
        games = [await store.start_game(run_id, slot, START) for slot in planned]
        before = store.writer.num_commits
        await asyncio.gather(*(store.append_move(game, move(1)) for game in games))
        assert store.writer.num_commits - before <= 3

    with Store.open(target) as store:
        asyncio.run(write(store))
        assert len(queries.latency_rows(store, 1)) == 100


def test_a_bad_item_takes_nobody_with_it(target: str) -> None:
    async def write(store: Store) -> list[object]:
        run_id, planned = await new_run(store)
        first, second = [await store.start_game(run_id, slot, START) for slot in planned[:2]]
        await store.append_move(first, move(1))
        writes = [
            store.append_move(second, move(1)),
            store.append_move(first, move(1)),  # there is a ply 1
            store.append_move(9999, move(1)),
            store.append_move(second, move(2, score_cp=2**70)),
            store.append_move(first, move(2)),
        ]
        return list(await asyncio.gather(*writes, return_exceptions=True))

    with Store.open(target) as store:
        answers = asyncio.run(write(store))
        assert [type(a) for a in answers] == [type(None), *[StoreError] * 3, type(None)]
        assert "there is no game 9999" in str(answers[2])
        assert all("\n" not in str(answer) for answer in answers)
        assert [len(queries.moves(store, game.id)) for game in queries.games(store)] == [2, 1]
        numbers = [event.seq for event in queries.events(store, 1)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_bug_in_a_job_is_a_trace_not_a_store_error(tmp_path: Path) -> None:
    def job(tx: Transaction) -> None:
        raise KeyError("our bug")

    with Store.open(tmp_path / "a.db") as store, pytest.raises(KeyError, match="our bug"):
        asyncio.run(store.writer.submit(job))


def test_a_move_and_its_attempts_are_written_together(target: str) -> None:
    async def write(store: Store) -> int:
        run_id, planned = await new_run(store)
        game = await store.start_game(run_id, planned[0], START)
        twice = (attempt(1), attempt(1))
        with pytest.raises(StoreError):
            await store.append_move(game, move(1, attempts=twice))
        return game

    with Store.open(target) as store:
        game = queries.game(store, asyncio.run(write(store)))
        assert (game.moves, game.plies, game.failed_attempts) == ((), 0, ())


def test_starting_a_slot_again_supersedes_what_did_not_finish(target: str) -> None:
    async def write(store: Store) -> list[int]:
        run_id, planned = await new_run(store)
        slot = planned[0]
        first = await store.start_game(run_id, slot, START)
        await store.append_move(first, move(1))
        second = await store.start_game(run_id, slot, START)
        aborted = end(slot, status=Status.ABORTED, result="*", termination="engine_error", plies=0)
        await store.finish_game(second, aborted)
        assert [s.id for s in store.open_slots(run_id)] == [0, 1, 2, 3]
        third = await store.start_game(run_id, slot, START)
        await store.finish_game(third, end(slot, plies=0))
        with pytest.raises(StoreError, match=f"slot 0 of run {run_id} is played already: game"):
            await store.start_game(run_id, slot, START)
        with pytest.raises(StoreError, match=f"game {first} is not running, it is superseded"):
            await store.finish_game(first, end(slot, plies=1))
        return [first, second, third]

    with Store.open(target) as store:
        first, second, third = asyncio.run(write(store))
        every = queries.games(store, superseded=True)
        assert [(g.id, g.status, g.attempt) for g in every] == [
            (first, "superseded", 1),
            (second, "superseded", 2),
            (third, "finished", 3),
        ]
        assert [g.id for g in queries.games(store)] == [third]
        kinds = [event.kind for event in queries.events(store, 1)]
        assert kinds.count("game_superseded") == 2


def test_a_record_that_miscounts_its_moves_is_refused(target: str) -> None:
    async def write(store: Store) -> None:
        run_id, planned = await new_run(store)
        game = await store.start_game(run_id, planned[0], START)
        with pytest.raises(StoreError, match="has 1 moves, its record says 2"):
            await asyncio.gather(
                store.append_move(game, move(1)), store.finish_game(game, end(planned[0], plies=2))
            )
        await store.finish_game(game, end(planned[0], plies=1))

    with Store.open(target) as store:
        asyncio.run(write(store))


def test_events_are_numbered_in_order_without_gaps(target: str) -> None:
    async def write(store: Store) -> list[int]:
        ids = [(await new_run(store, 20))[0] for _ in range(2)]

        async def play(run_id: int, slot: Slot) -> None:
            game = await store.start_game(run_id, slot, START)
            for ply in range(1, 6):
                await store.append_move(game, move(ply))
            await store.finish_game(game, end(slot, plies=5))

        await asyncio.gather(*(play(run_id, slot) for slot in slots(20) for run_id in ids))
        await store.append_event(ids[0], "warning", {"text": "no book"})
        return ids

    with Store.open(target) as store:
        for run_id in asyncio.run(write(store)):
            found = queries.events(store, run_id)
            assert [event.seq for event in found] == list(range(1, len(found) + 1))
            assert len(found) >= 1 + 20 * 7
            plies = [
                e.payload["ply"]
                for e in found
                if e.kind == "move" and e.game_id == found[1].game_id
            ]
            assert plies == [1, 2, 3, 4, 5]
            assert [e.seq for e in queries.events(store, run_id, after=100, limit=2)] == [101, 102]


def test_a_cancelled_waiter_disturbs_nobody(target: str) -> None:
    async def write(store: Store) -> None:
        run_id, planned = await new_run(store)
        game = await store.start_game(run_id, planned[0], START)
        task = asyncio.create_task(store.append_move(game, move(1)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.append_move(game, move(2))

    with Store.open(target) as store:
        asyncio.run(write(store))
    with Store.open(target) as store:
        assert [m.ply for m in queries.moves(store, 1)] == [1, 2]


def test_close_writes_what_still_waits(target: str) -> None:
    store = Store.open(target)

    async def write() -> None:
        run_id, planned = await new_run(store)
        game = await store.start_game(run_id, planned[0], START)
        tasks = [asyncio.create_task(store.append_move(game, move(ply))) for ply in range(1, 50)]
        await asyncio.sleep(0)
        store.close()
        await asyncio.gather(*tasks)
        with pytest.raises(StoreError, match="is closed"):
            await store.append_move(game, move(50))

    asyncio.run(write())
    store.close()
    with Store.open(target) as again:
        assert len(queries.moves(again, 1)) == 49


def test_slots_and_players_are_added_later(target: str) -> None:
    async def write(store: Store) -> None:
        run_id, _ = await new_run(store, 2)
        carol = AgentInfo("carol", "material", {}, True)
        more = Slot(2, "chess", "standard", "carol", "ann", pair=1, round=2)
        await store.extend_run(run_id, players=[carol], slots=[more])
        assert store.open_slots(run_id) == [*slots(2), more]
        with pytest.raises(StoreError):
            await store.extend_run(run_id, slots=[more])

    with Store.open(target) as store:
        asyncio.run(write(store))
        assert [p.name for p in queries.players(store, 1)] == ["ann", "bob", "carol"]


def test_a_belief_without_a_greedy_move_has_no_disagreement(target: str) -> None:
    async def write(store: Store) -> None:
        run_id, planned = await new_run(store)
        game = await store.start_game(run_id, planned[0], START)
        for ply, greedy in enumerate((None, "e2e4", "d2d4"), start=1):
            await store.append_move(game, move(ply, belief=Belief(0.1, 0.2, "none", greedy)))

    with Store.open(target) as store:
        asyncio.run(write(store))
        found = [row["disagreement"] for row in queries.latency_rows(store, 1)]
        assert found == [None, False, True]


def test_missing_things_are_named(target: str) -> None:
    with Store.open(target) as store:
        with pytest.raises(StoreError, match="holds no run yet: `arena run` makes one"):
            queries.latest_run(store)
        with pytest.raises(StoreError, match=r"there is no run 3 in .*: there are none"):
            queries.run_status(store, 3)
        with pytest.raises(StoreError, match="there is no game 5"):
            queries.game(store, 5)
        with pytest.raises(StoreError, match="there is no run 3"):
            asyncio.run(store.append_telemetry(3, telemetry()))
