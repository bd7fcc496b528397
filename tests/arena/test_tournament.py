"""Whole runs with the real store and real players: concurrency, failures, stopping, going on."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.base import Agent, AgentError, Attempt, Decision, ModelSwap, Telemetry, Turn, Usage
from agents.factory import create_agents
from arena.config import Config, ConfigError, build_config, resolved
from arena.events import (
    Event,
    EventBus,
    GameFinished,
    GameStarted,
    ModelsSwapped,
    MovePlayed,
    Noted,
    RunFinished,
)
from arena.plan import make_plan
from arena.records import Slot
from arena.report import summary, summary_text
from arena.store import Store, queries
from arena.store.maintenance import check
from arena.tournament import RunResult, Tournament, infos

from .kit import Choose, Player, broken, first_move, never

CAPPED = {"max_plies": 12, "at_cap": "material"}


def configured(players: list[dict[str, Any]], *games: dict[str, Any], **run: Any) -> Config:
    sections = games or ({"game": "chess", **CAPPED},)
    return build_config({"run": run, "games": list(sections), "players": players})


class Cast(Mapping[str, Agent]):
    """Players of a test by name, in place of the factory's."""

    def __init__(self, *players: Agent) -> None:
        self._players = {player.info.name: player for player in players}
        self.swapped: tuple[ModelSwap, ...] = ()

    def __getitem__(self, name: str) -> Agent:
        return self._players[name]

    def __iter__(self) -> Any:
        return iter(self._players)

    def __len__(self) -> int:
        return len(self._players)

    def telemetry(self) -> tuple[Telemetry, ...]:
        return (Telemetry("test-model", loading=False, steps=3),)

    def swaps(self) -> tuple[ModelSwap, ...]:
        return self.swapped

    async def close(self) -> None: ...


def named(*names: str) -> list[dict[str, Any]]:
    return [{"kind": "random", "name": name} for name in names]


async def perform(
    config: Config, store: Store, players: Any = None, stop_after: int | None = None
) -> tuple[RunResult, list[Event]]:
    """Record a new run and play it; `stop_after` moves it is asked to stop."""
    players = players or create_agents(config.players, run_seed=config.run.seed)
    slots = make_plan(config).slots
    run_id = await store.create_run(
        name="test",
        seed=config.run.seed,
        config=resolved(config),
        players=infos(config, players),
        slots=slots,
    )
    return await go_on(config, store, run_id, slots, players, stop_after)


async def go_on(
    config: Config,
    store: Store,
    run_id: int,
    slots: Any,
    players: Any,
    stop_after: int | None = None,
) -> tuple[RunResult, list[Event]]:
    bus = EventBus()
    tournament = Tournament(config, run_id, slots, players, store, bus)
    events: list[Event] = []
    subscription = bus.subscribe()

    async def follow() -> None:
        moves = 0
        async for event in subscription:
            events.append(event)
            moves += isinstance(event, MovePlayed)
            if stop_after is not None and moves >= stop_after:
                tournament.stop()

    following = asyncio.create_task(follow())
    result = await tournament.run()
    bus.close()
    await following
    await players.close()
    return result, events


def moves_by_slot(store: Store, run_id: int) -> dict[int, list[str]]:
    return {
        game.slot_id: [move.uci for move in game.moves]
        for game in queries.games_with_moves(store, run_id)
    }


BOTH = ({"game": "chess", **CAPPED}, {"game": "janggi", "max_plies": 12, "at_cap": "points"})
MIX = [{"kind": "random"}, {"kind": "material"}, {"kind": "random", "name": "other"}]


def test_the_same_seed_plays_the_same_games_at_any_concurrency(tmp_path: Path) -> None:
    played = []
    for concurrency in (1, 3, 12):
        config = configured(MIX, *BOTH, seed=5, concurrency=concurrency)
        with Store.open(tmp_path / f"{concurrency}.db") as store:
            result, _ = asyncio.run(perform(config, store))
            assert (result.status, result.num_open, result.exit_code) == ("finished", 0, 0)
            played.append(moves_by_slot(store, result.run_id))
    assert len(played[0]) == 12
    assert played[0] == played[1] == played[2]
    with Store.open(tmp_path / "other.db") as store:
        other, _ = asyncio.run(perform(configured(MIX, *BOTH, seed=6), store))
        assert moves_by_slot(store, other.run_id) != played[0]


def test_no_more_games_than_the_limit_are_in_flight(tmp_path: Path) -> None:
    config = configured(MIX, concurrency=2)
    with Store.open(tmp_path / "a.db") as store:
        _, events = asyncio.run(perform(config, store))
    live = most = 0
    for event in events:
        live += isinstance(event, GameStarted)
        live -= isinstance(event, GameFinished)
        most = max(most, live)
    assert most == 2
    assert isinstance(events[-1], RunFinished)


class Loading(Player):
    """Starts when it is told to."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.loaded = asyncio.Event()

    async def start(self) -> None:
        await self.loaded.wait()


def test_games_that_need_no_model_play_while_one_loads(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        slow = Loading("slow")

        async def choose(turn: Turn) -> Decision:
            if turn.state.is_check() or len(turn.state.moves) >= 10:
                slow.loaded.set()  # the quick players' games are nearly over
            return await first_move(turn)

        cast = Cast(slow, Player("a", choose), Player("b", choose))
        config = configured(named("slow", "a", "b"), concurrency=1)
        result, events = await perform(config, store, cast)
        assert result.status == "finished"
        first = next(event for event in events if isinstance(event, GameStarted))
        assert "slow" not in (first.slot.first, first.slot.second)

    with Store.open(tmp_path / "a.db") as store:
        asyncio.run(scenario(store))


class Absent(Player):
    """Cannot start."""

    async def start(self) -> None:
        raise AgentError("absent: nothing here; install it")


def test_one_agent_that_cannot_start_stops_nobody_else(tmp_path: Path) -> None:
    cast = Cast(Absent("absent"), Player("a"), Player("b"))
    with Store.open(tmp_path / "a.db") as store:
        config = configured(named("absent", "a", "b"))
        result, _ = asyncio.run(perform(config, store, cast))
        assert (result.exit_code, result.num_open) == (4, 4)
        assert result.failed_agents == {"absent": "absent: nothing here; install it"}
        done = queries.games(store, result.run_id)
        assert [(game.first, game.status) for game in done] == [
            ("a", "finished"),
            ("b", "finished"),
        ]
        assert len(store.open_slots(result.run_id)) == 4


@pytest.mark.parametrize(
    ("behaviour", "termination", "num_open"),
    [
        ("crash", "bug", 4),
        ("garbage", "bug", 4),
        ("illegal", "illegal", 0),
        ("wrong_turn", "illegal", 0),
        ("flood", "unparsable", 0),
        ("late", None, 0),
    ],
)
def test_one_agent_that_misbehaves_never_stops_the_event(
    tmp_path: Path, behaviour: str, termination: str | None, num_open: int
) -> None:
    bad = {"kind": "scripted", "behaviour": behaviour, "name": "bad", "after": 2, "seconds": 0.001}
    with Store.open(tmp_path / "a.db") as store:
        config = configured([*named("a", "b"), bad], seed=3)
        result, _ = asyncio.run(perform(config, store))
        games = queries.games(store, result.run_id)
    assert result.num_open == num_open
    assert result.exit_code == (3 if num_open else 0)
    good = [game for game in games if "bad" not in (game.first, game.second)]
    assert [game.status for game in good] == ["finished", "finished"]
    others = [game for game in games if "bad" in (game.first, game.second)]
    assert len(others) == 4
    if termination is not None:
        assert {game.termination for game in others} == {termination}


def test_a_stalled_agent_is_stopped_by_the_watchdog(tmp_path: Path) -> None:
    stalls = {"kind": "scripted", "behaviour": "stall", "name": "bad"}
    section = {"game": "chess", "move_timeout_s": 0.05, **CAPPED}
    with Store.open(tmp_path / "a.db") as store:
        config = configured([*named("a"), stalls], section)
        result, _ = asyncio.run(perform(config, store))
        games = queries.games(store, result.run_id)
    assert [game.termination for game in games] == ["stall", "stall"]
    assert {game.result for game in games} == {"1-0", "0-1"}


def failing(times: int, reason: Any) -> Choose:
    """No result the first `times` asks, then proper moves."""
    left = [times]

    async def choose(turn: Turn) -> Decision:
        if left[0]:
            left[0] -= 1
            return Decision("no_result", reason=reason, detail="HTTP 503")
        return await first_move(turn)

    return choose


def test_a_game_without_a_result_is_played_again(tmp_path: Path) -> None:
    cast = Cast(Player("a", failing(1, "endpoint_error"), kind="llm"), Player("b"))
    with Store.open(tmp_path / "a.db") as store:
        result, _ = asyncio.run(perform(configured(named("a", "b"), concurrency=1), store, cast))
        assert result.exit_code == 0
        games = queries.games(store, result.run_id, superseded=True)
    assert [(game.slot_id, game.attempt, game.status) for game in games] == [
        (1, 1, "superseded"),
        (2, 1, "finished"),
        (1, 2, "finished"),
    ]
    assert games[0].termination == "endpoint_error"


def test_retries_end(tmp_path: Path) -> None:
    cast = Cast(Player("a", failing(99, "endpoint_error"), kind="llm"), Player("b"))
    with Store.open(tmp_path / "a.db") as store:
        config = configured(named("a", "b"), retries=2)
        result, _ = asyncio.run(perform(config, store, cast))
        games = queries.games(store, result.run_id, superseded=True)
    assert (result.status, result.num_open, result.exit_code) == ("unresolved", 2, 3)
    assert sorted(game.attempt for game in games) == [1, 1, 2, 2, 3, 3]
    assert not any(game.rated and game.result != "*" for game in games)


def test_an_endpoint_that_cuts_prompts_stops_its_agent(tmp_path: Path) -> None:
    cut = Player("cut", failing(1, "prompt_truncated"), kind="llm")
    cast = Cast(cut, Player("a"), Player("b"))
    with Store.open(tmp_path / "a.db") as store:
        config = configured(named("cut", "a", "b"), concurrency=1)
        result, _ = asyncio.run(perform(config, store, cast))
    assert (result.exit_code, result.num_open) == (4, 4)
    assert len(cut.turns) == 1


def test_stopping_leaves_what_is_played_and_the_rest_open(tmp_path: Path) -> None:
    config = configured(MIX, *BOTH, seed=5, concurrency=3)
    with Store.open(tmp_path / "whole.db") as store:
        result, _ = asyncio.run(perform(config, store))
        whole = moves_by_slot(store, result.run_id)
    with Store.open(tmp_path / "a.db") as store:
        result, _ = asyncio.run(perform(config, store, stop_after=50))
        assert (result.status, result.exit_code) == ("interrupted", 130)
        open_slots = store.open_slots(result.run_id)
        assert 0 < len(open_slots) < 12
        assert len(open_slots) == result.num_open
        assert not queries.games(store, result.run_id, status="running")
        players = create_agents(config.players, run_seed=5)
        again, _ = asyncio.run(go_on(config, store, result.run_id, open_slots, players))
        assert (again.status, again.num_open) == ("finished", 0)
        assert moves_by_slot(store, result.run_id) == whole


async def talks(turn: Turn) -> Decision:
    said = Attempt(1, "move", usage=Usage(prompt=90, completion=10))
    return Decision("move", turn.state.legal_moves()[0], attempts=(said,))


def test_a_budget_of_tokens_ends_the_run_resumable(tmp_path: Path) -> None:
    cast = Cast(Player("a", talks, kind="llm"), Player("b", talks, kind="llm"))
    with Store.open(tmp_path / "a.db") as store:
        config = configured(named("a", "b"), max_tokens=1000, concurrency=1)
        result, events = asyncio.run(perform(config, store, cast))
        assert (result.exit_code, result.num_open) == (130, 2)
        moves = sum(len(game.moves) for game in queries.games_with_moves(store, 1))
    assert 10 <= moves <= 11
    notes = [event.text for event in events if isinstance(event, Noted)]
    assert notes == ["max_tokens = 1000 is used up: the run stops here"]


def test_a_budget_of_money_ends_the_run_resumable(tmp_path: Path) -> None:
    """A million prompt tokens of `a` cost 2, answers 8; `b` is free. An answer costs 0.0012."""

    async def costly(turn: Turn) -> Decision:
        attempt = Attempt(1, "move", usage=Usage(200, 0, 100))
        return Decision("move", turn.state.legal_moves()[0], attempts=(attempt,))

    cast = Cast(Player("a", costly), Player("b", costly))
    budget = {"max_cost": 0.01, "prices": {"a": [2, 8]}, "concurrency": 1}
    with Store.open(tmp_path / "a.db") as store:
        config = configured(named("a", "b"), **budget)
        result, events = asyncio.run(perform(config, store, cast))
        assert (result.exit_code, result.num_open) == (130, 1)
        games = queries.games_with_moves(store, 1)
    by_a = sum(move.player == "a" for game in games for move in game.moves)
    assert by_a == 9  # 0.0012 · 9 ≥ 0.01
    notes = [event.text for event in events if isinstance(event, Noted)]
    assert notes == ["max_cost = 0.01 is used up: the run stops here"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"max_cost": 1}, "run.max_cost needs prices"),
        ({"prices": {"c": [1, 1]}}, "run.prices: unknown player 'c'"),
        ({"prices": {"a": [1]}}, "prices"),
        ({"prices": {"a": [1, -1]}}, "prices"),
    ],
)
def test_prices_that_are_none_are_one_line(run: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        configured(named("a", "b"), **run)


def test_a_budget_of_hours_ends_the_run_resumable(tmp_path: Path) -> None:
    cast = Cast(Player("a"), Player("b", never))
    with Store.open(tmp_path / "a.db") as store:
        config = configured(named("a", "b"), max_hours=1e-5)
        result, _ = asyncio.run(perform(config, store, cast))
    assert result.exit_code == 130


def test_stopping_does_not_wait_for_a_stalled_player(tmp_path: Path) -> None:
    cast = Cast(Player("a"), Player("b", never))
    with Store.open(tmp_path / "a.db") as store:
        config = configured(named("a", "b"))
        result, _ = asyncio.run(perform(config, store, cast, stop_after=1))
        games = queries.games(store, result.run_id)
    assert result.exit_code == 130
    assert {game.termination for game in games} == {"interrupted"}


def test_stopping_while_a_model_loads(tmp_path: Path) -> None:
    async def scenario(store: Store) -> RunResult:
        cast = Cast(Loading("slow"), Player("a"), Player("b"))
        result, _ = await perform(configured(named("slow", "a", "b")), store, cast, stop_after=1)
        return result

    with Store.open(tmp_path / "a.db") as store:
        assert asyncio.run(scenario(store)).exit_code == 130


def test_a_store_that_fails_ends_the_run_with_its_error(tmp_path: Path) -> None:
    class Full(Store):
        left = 20

        async def append_move(self, game_id: int, move: Any) -> None:
            Full.left -= 1
            if Full.left < 0:
                raise OSError("disk is full")
            await super().append_move(game_id, move)

    with Full.open(tmp_path / "a.db") as store, pytest.raises(OSError, match="disk is full"):
        asyncio.run(perform(configured(MIX, concurrency=4), store))
    with Store.open(tmp_path / "a.db") as reopened:
        games = queries.games_with_moves(reopened, 1)
        assert sum(len(game.moves) for game in games) == 20


def test_telemetry_is_sampled_and_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        result, _ = asyncio.run(
            perform(configured(named("a", "b")), store, Cast(Player("a"), Player("b")))
        )
        rows = queries.telemetry(store, result.run_id)
    assert rows
    assert (rows[0]["model"], rows[0]["steps"]) == ("test-model", 3)


def test_swaps_are_told_once_and_kept(tmp_path: Path) -> None:
    cast = Cast(Player("a"), Player("b"))
    cast.swapped = (ModelSwap(("x",), "y", 1.25, 31), ModelSwap(("y",), "x", 0.5, 32))
    with Store.open(tmp_path / "a.db") as store:
        result, events = asyncio.run(perform(configured(named("a", "b")), store, cast))
        kept = [e for e in queries.events(store, result.run_id) if e.kind == "models_swapped"]
    assert [e.swap for e in events if isinstance(e, ModelsSwapped)] == list(cast.swapped)
    assert [e.payload["into"] for e in kept] == ["y", "x"]
    assert kept[0].payload == {"out": ["x"], "into": "y", "seconds": 1.25, "served": 31}


def test_a_bug_of_a_player_does_not_reach_the_other_games(tmp_path: Path) -> None:
    cast = Cast(Player("bad", broken), Player("a"), Player("b"))
    with Store.open(tmp_path / "a.db") as store:
        result, _ = asyncio.run(perform(configured(named("bad", "a", "b")), store, cast))
        assert result.exit_code == 3
        assert {slot.pair for slot in store.open_slots(result.run_id)} <= {1, 2, 3}


def test_a_closed_database_is_one_file(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        asyncio.run(perform(configured(MIX), store))
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_slots_know_their_section() -> None:
    slots: tuple[Slot, ...] = make_plan(configured(MIX, *BOTH)).slots
    assert {(slot.section, slot.game) for slot in slots} == {(0, "chess"), (1, "janggi")}


def test_a_clock_that_goes_backwards_disturbs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of day is set back a minute at every look; what is timed goes by another clock."""
    now = [2e9]

    def earlier() -> float:
        now[0] -= 60
        return now[0]

    monkeypatch.setattr(time, "time", earlier)
    timed = {"game": "chess", **CAPPED, "tc": "60+1"}
    config = configured(MIX, timed, seed=5)
    with Store.open(tmp_path / "a.db") as store:
        result, _ = asyncio.run(perform(config, store))
        assert result.exit_code == 0
        games = queries.games_with_moves(store, result.run_id)
        assert all(move.seconds >= 0 for game in games for move in game.moves)
        assert not any(game.termination == "time" for game in games)
        events = queries.events(store, result.run_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert check(store) == []
        assert summary(store)["run"]["seconds"] >= 0
        assert "random" in summary_text(store)
