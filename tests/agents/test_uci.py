"""UCI players: the real engines, and ones that crash, stall, flood and lie."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.base import AgentError, Clocks, Decision
from agents.spec import UciSpec
from agents.uci import UciAgent, _limits, _Plan
from agents.uci_client import UciClient, UciCrash, find_binary
from games.base import GameState, Move
from games.registry import get_game
from tests.agents.kit import position, turn

HOSTILE = str(Path(__file__).with_name("hostile_uci.py"))


def hostile(mode: str, **more: Any) -> UciSpec:
    settings = {"stall_timeout": 1.0, "startup_timeout": 10.0, **more}
    return UciSpec(path=sys.executable, args=(HOSTILE, mode), **settings)


def real(name: str, **more: Any) -> UciSpec:
    if find_binary(name) is None:
        pytest.skip(f"skipped: no {name} here (apt-get install {name})")
    return UciSpec(path=name, **more)


def ask(spec: UciSpec, *states: GameState, times: int = 1) -> list[Decision]:
    """The decisions of one agent on some positions, one after the other."""

    async def run() -> list[Decision]:
        agent = UciAgent(spec)
        try:
            await agent.start()
            return [await agent.choose(turn(state)) for state in states * times]
        finally:
            await agent.close()

    return asyncio.run(run())


def test_stockfish_takes_a_hanging_queen() -> None:
    state = position("chess", fen="4k3/8/8/3q4/4P3/8/8/R3K3 w - - 0 1")
    (decision,) = ask(real("stockfish", nodes=500), state)
    assert decision.move == Move("e4d5")
    assert decision.score_cp is not None
    assert decision.score_cp > 0
    assert decision.attempts[0].answer.startswith("bestmove e4d5")


def test_fairy_stockfish_plays_janggi_by_its_own_rules() -> None:
    state = position("janggi", "a4b4", rules="fsf-janggi")
    decisions = ask(real("fairy-stockfish", nodes=300), state, times=2)
    assert decisions[0].kind == "move"
    assert decisions[0].move in state.legal_moves()
    assert decisions[0].move == decisions[1].move  # every search is a fresh one


def test_other_rules_than_the_engine_s_give_it_the_legal_moves() -> None:
    state = position("janggi", rules="kja")
    plan = _Plan.of(turn(state), UciSpec(path="x", nodes=5))
    words = plan.go.split()
    assert words[:3] == ["nodes", "5", "searchmoves"]
    assert words[3:] == [move.uci for move in state.legal_moves()]
    assert plan.position == f"fen {state.fen()}"
    (decision,) = ask(real("fairy-stockfish", nodes=200), state)
    assert decision.move in state.legal_moves()


@pytest.mark.parametrize("rules", ["fairy", "kja", "kakao", "casual"])
def test_facing_generals_cost_no_engine_a_forfeit(rules: str) -> None:
    """Rule sets differ most here; whatever the engine's variant makes of it, no forfeit follows."""
    fen = "4k4/9/9/9/9/9/9/9/4K4/8R w - - 0 1"
    (decision,) = ask(real("fairy-stockfish", nodes=50), position("janggi", fen=fen, rules=rules))
    assert decision.kind == "move"


def test_whole_janggi_game_of_two_engine_sides_is_legal() -> None:
    spec = real("fairy-stockfish", nodes=30)

    async def play() -> int:
        agent = UciAgent(spec)
        state = position("janggi")
        try:
            await agent.start()
            await agent.new_game("1", get_game("janggi"), 0)
            for _ in range(30):
                if state.outcome() is not None:
                    break
                decision = await agent.choose(turn(state))
                assert decision.kind == "move", decision
                assert decision.move is not None
                state = state.apply(decision.move)
        finally:
            await agent.close()
        return len(state.moves)

    assert asyncio.run(play()) > 0


def test_stockfish_does_not_play_janggi() -> None:
    async def run() -> None:
        agent = UciAgent(real("stockfish"))
        try:
            await agent.start()
            await agent.new_game("1", get_game("chess"), 0)
            await agent.new_game("2", get_game("janggi"), 0)
        finally:
            await agent.close()

    with pytest.raises(AgentError, match="does not play janggi; use fairy-stockfish"):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("mode", "reason", "words"),
    [
        ("crash", "crash", "exit status 7.*the tree is on fire"),
        ("stall", "stall", "no bestmove within"),
        ("flood", "stall", "no bestmove within"),
        ("long_line", "crash", "a line of more than"),
        ("illegal", "illegal", "e2e5"),
        ("garbage", "illegal", "Tuesday"),
    ],
)
def test_misbehaviour_is_a_forfeit_of_its_kind(mode: str, reason: str, words: str) -> None:
    (decision,) = ask(hostile(mode), position("chess"))
    assert (decision.kind, decision.reason) == ("forfeit", reason)
    assert pytest.importorskip("re").search(words, decision.detail)


def test_standard_error_is_kept() -> None:
    (decision,) = ask(hostile("crash"), position("chess"))
    assert decision.attempts[0].thinking == "assertion failed: the tree is on fire"


def test_the_main_line_s_score_is_kept() -> None:
    (decision,) = ask(hostile("good"), position("chess"))
    assert decision.score_cp == 31


def test_no_move_under_other_rules_is_no_result_and_under_its_own_a_forfeit() -> None:
    janggi, chess = ask(hostile("none"), position("janggi"), position("chess"))
    assert (janggi.kind, janggi.reason) == ("no_result", "engine_error")
    assert (chess.kind, chess.reason) == ("forfeit", "illegal")


def test_a_dead_process_is_replaced_as_often_as_the_spec_says() -> None:
    decisions = ask(hostile("crash", restarts=1), position("chess"), times=3)
    assert [decision.reason for decision in decisions] == ["crash"] * 3
    assert "died 2 times, and restarts = 1" in decisions[2].detail


def test_a_process_that_ends_after_its_answer_costs_the_next_move_only() -> None:
    decisions = ask(hostile("die_late"), position("chess"), times=3)
    assert [decision.kind for decision in decisions] == ["move", "forfeit", "move"]


def test_a_cancelled_search_leaves_no_process() -> None:
    async def run() -> None:
        agent = UciAgent(hostile("stall", stall_timeout=60.0))
        await agent.start()
        task = asyncio.create_task(agent.choose(turn(position("chess"))))
        await asyncio.sleep(0.3)
        assert len(agent._busy) == 1
        (client,) = agent._busy
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client._process.returncode is not None
        assert not agent._busy
        await agent.close()

    asyncio.run(run())


def test_few_processes_serve_many_games() -> None:
    async def run() -> None:
        agent = UciAgent(hostile("good", processes=2))
        await agent.start()
        state = position("chess")
        decisions = await asyncio.gather(*(agent.choose(turn(state)) for _ in range(8)))
        assert {decision.move for decision in decisions} == {Move("e2e4")}
        assert len(agent._idle) == 2
        waits = [d.attempts[0].timing.queue for d in decisions if d.attempts[0].timing]
        assert max(wait or 0.0 for wait in waits) > 0
        await agent.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (UciSpec(path="/no/such/engine"), "no engine binary '/no/such/engine': check the path"),
        (hostile("mute", startup_timeout=0.5), "no uciok within 0.5 s"),
        (hostile("good", options={"Hsh": 1}), "no option 'Hsh' (did you mean 'Hash'?)"),
        (hostile("good", options={"Hash": 100}), "Hash = 100 is not in 1 … 64"),
        (hostile("good", elo=100), "UCI_Elo = 100 is not in 1350 … 2850"),
    ],
)
def test_what_cannot_start_says_why(spec: UciSpec, words: str) -> None:
    with pytest.raises(AgentError) as caught:
        ask(spec, position("chess"))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_known_engine_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.uci.find_binary", lambda path: None)
    with pytest.raises(AgentError, match="apt-get install fairy-stockfish"):
        ask(UciSpec(path="fairy-stockfish"), position("chess"))


def test_limits_become_arguments_of_go() -> None:
    state = position("chess")
    assert _limits(turn(state), UciSpec(path="x"))[0] == "nodes 10000"
    assert _limits(turn(state), UciSpec(path="x", depth=3, nodes=9))[0] == "nodes 9 depth 3"
    assert _limits(turn(state), UciSpec(path="x", movetime=500)) == ("movetime 500", 0.5)
    timed = turn(state, clocks=Clocks((60.0, 30.0), (1.0, 1.0)))
    go = _limits(timed, UciSpec(path="x"))
    assert go == ("wtime 60000 btime 30000 winc 1000 binc 1000", 60.0)


def test_a_command_is_one_line() -> None:
    async def run() -> None:
        client = await UciClient.start([sys.executable, HOSTILE, "good"], 10)
        try:
            await client.search("startpos\nquit", "nodes 1", 5)
        finally:
            await client.close()

    with pytest.raises(ValueError, match="one line"):
        asyncio.run(run())


def test_a_file_that_is_no_program_is_a_crash() -> None:
    async def run() -> None:
        await UciClient.start([__file__], 5)

    with pytest.raises(UciCrash, match="cannot be run"):
        asyncio.run(run())
