"""Knockout and Swiss: pairings from results, played to the end by counting."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.config import ConfigError, build_config, resolved
from arena.events import EventBus
from arena.plan import make_plan, make_rounds
from arena.records import Result, Slot
from arena.rounds import next_slots
from arena.schedule import Base, SectionPlan, Start, bases, expected_games, schedule
from arena.store import Store, queries
from arena.tournament import Tournament, infos

from .test_tournament import configured, moves_by_slot

STARTS = (Start("one"), Start("two"), Start("three"))


def plan(num: int, format_: str, rounds: int = 1, pairs: int = 1) -> SectionPlan:
    names = tuple(f"p{number}" for number in range(num))
    return SectionPlan("chess", "standard", format_, names, pairs, True, STARTS, rounds)


def played(of: SectionPlan, seed: int, draws: float = 0.3) -> list[list[Slot]]:
    """Rounds of slots to the end, results drawn at random."""
    draw = random.Random(seed)
    slots: list[Slot] = []
    results: dict[int, Result] = {}
    rounds: list[list[Slot]] = []
    while due := next_slots(of, 0, Base(1, 1), slots, results):
        rounds.append(due)
        slots += due
        assert next_slots(of, 0, Base(1, 1), slots, results) == []
        for slot in due:
            drawn = draw.random() < draws
            results[slot.id] = "1/2-1/2" if drawn else draw.choice(["1-0", "0-1"])
    return rounds


def pairings(slots: list[Slot]) -> list[frozenset[str]]:
    return [frozenset((slot.first, slot.second)) for slot in slots]


@given(st.integers(2, 20), st.integers(0, 999), st.integers(1, 2))
@settings(deadline=None)
def test_knockout_leaves_one_player(num: int, seed: int, pairs: int) -> None:
    rounds = played(plan(num, "knockout", pairs=pairs), seed)
    slots = [slot for due in rounds for slot in due]
    assert len({slot.id for slot in slots}) == len(slots)
    met = dict.fromkeys(pairings(slots), 0)
    assert len(met) == num - 1
    for slot in slots:
        met[frozenset((slot.first, slot.second))] += 1
    assert set(met.values()) <= {2 * pairs, 2 * pairs + 2}
    assert max(slot.id for slot in slots) <= (num - 1) * (pairs + 1) * 2
    final = {slot.round for slot in slots if slot.round == max(s.round for s in slots)}
    assert len(final) == 1
    assert len({p for s in slots if s.round in final for p in (s.first, s.second)}) == 2


def test_knockout_seeds_meet_late_and_the_first_have_byes() -> None:
    rounds = played(plan(6, "knockout"), 1, draws=1.0)  # every tie goes to the seed
    assert set(pairings(rounds[0])) == {frozenset({"p3", "p4"}), frozenset({"p2", "p5"})}
    final = rounds[-1]
    assert set(pairings(final)) == {frozenset({"p0", "p1"})}


def test_a_tied_meeting_adds_one_pair_from_the_next_start() -> None:
    rounds = played(plan(2, "knockout"), 1, draws=1.0)
    assert [[slot.opening for slot in due] for due in rounds] == [["one", "one"], ["two", "two"]]
    assert {slot.round for due in rounds for slot in due} == {1}


@given(st.integers(4, 16), st.integers(0, 999))
@settings(deadline=None, max_examples=40)
def test_swiss_never_repeats_a_meeting(num: int, seed: int) -> None:
    rounds = played(plan(num, "swiss", rounds=3), seed)
    assert len(rounds) == 3
    met = Counter(pairing for due in rounds for pairing in set(pairings(due)))
    assert set(met.values()) == {1}
    for due in rounds:
        seated = Counter(name for pairing in set(pairings(due)) for name in pairing)
        assert len(seated) == num - num % 2
        assert set(seated.values()) == {1}


def test_swiss_pairs_equal_scores() -> None:
    rounds = played(plan(8, "swiss", rounds=3), 1, draws=0.0)
    assert [slot.id for due in rounds for slot in due] == list(range(1, 25))


def test_swiss_with_too_many_rounds_is_one_line() -> None:
    with pytest.raises(ConfigError, match="4 players cannot be paired for 5 rounds"):
        played(plan(4, "swiss", rounds=5), 1)


def test_cut_short_games_count_for_nobody() -> None:
    of = plan(2, "knockout")
    slots = next_slots(of, 0, Base(1, 1), [], {})
    again = next_slots(of, 0, Base(1, 1), slots, {1: "*", 2: "*"})
    assert len(again) == 2
    assert next_slots(of, 0, Base(1, 1), [*slots, *again], dict.fromkeys(range(1, 5), "*")) == []


def test_sections_do_not_share_numbers_whatever_the_results() -> None:
    sections = (plan(5, "knockout"), plan(3, "round_robin"), plan(4, "swiss", rounds=2))
    found = bases(sections)
    assert found == [Base(1, 1), Base(17, 9), Base(23, 12)]
    assert [slot.id for slot in schedule(sections)] == list(range(17, 23))
    assert [expected_games(section) for section in sections] == [8, 6, 8]


PLAYERS: list[dict[str, Any]] = [
    {"kind": "random", "name": name} for name in ("a", "b", "c", "d", "e")
]
DYNAMIC = (
    {"game": "chess", "format": "knockout", "max_plies": 8, "at_cap": "material"},
    {"game": "janggi", "format": "swiss", "rounds": 3, "max_plies": 6, "at_cap": "points"},
)


async def play_on(config: Any, store: Store, run_id: int, stop_after: int | None) -> str:
    """Go on with a run as `arena resume` does; stop it after so many games."""
    from agents.factory import create_agents
    from arena.events import GameFinished

    plan_ = make_plan(config)
    slots = queries.slots(store, run_id)
    done = queries.games(store, run_id, status="finished")
    rounds = make_rounds(plan_.sections, slots, {game.slot_id: game.result for game in done})
    due = [slot for section in rounds for slot in section.due()]
    await store.extend_run(run_id, slots=due)
    players, bus = create_agents(config.players, run_seed=config.run.seed), EventBus()
    tournament = Tournament(
        config, run_id, store.open_slots(run_id), players, store, bus, rounds=rounds
    )
    events = bus.subscribe()

    async def follow() -> None:
        games = 0
        async for event in events:
            games += isinstance(event, GameFinished)
            if stop_after is not None and games >= stop_after:
                tournament.stop()

    following = asyncio.create_task(follow())
    result = await tournament.run()
    bus.close()
    await following
    await players.close()
    return result.status


@pytest.mark.parametrize("stop_after", [None, 1, 3])
def test_a_run_in_rounds_is_the_same_at_any_concurrency_and_resumed(
    tmp_path: Path, stop_after: int | None
) -> None:
    played_: list[dict[int, list[str]]] = []
    for concurrency, stop in ((8, None), (1, stop_after)):
        config = configured(PLAYERS, *DYNAMIC, seed=4, concurrency=concurrency)
        with Store.open(tmp_path / f"{concurrency}.db") as store:

            async def whole(config: Any, store: Store, stop: int | None) -> int:
                from agents.factory import create_agents

                run_id = await store.create_run(
                    name="t",
                    seed=4,
                    config=resolved(config),
                    players=infos(config, create_agents(config.players)),
                    slots=make_plan(config).slots,
                )
                for _ in range(99):
                    if await play_on(config, store, run_id, stop) == "finished":
                        return run_id
                raise AssertionError("the run never ends")

            run_id = asyncio.run(whole(config, store, stop))
            played_.append(moves_by_slot(store, run_id))
            slots = queries.slots(store, run_id)
            assert len(played_[-1]) == len(slots)
            assert not store.open_slots(run_id)
    assert played_[0] == played_[1]


def test_swiss_needs_rounds() -> None:
    with pytest.raises(ConfigError, match="needs rounds"):
        build_config({"games": [{"game": "chess", "format": "swiss"}], "players": PLAYERS})
