"""Random, material and scripted players."""

import asyncio
from collections import Counter

import pytest

from agents.base import AgentError, Decision
from agents.material import MaterialAgent, after
from agents.random_move import RandomAgent
from agents.scripted import FLOOD_CHARS, ScriptedAgent
from agents.spec import MaterialSpec, RandomSpec, ScriptedSpec
from games.base import GameState, Move
from tests.agents.kit import position, turn


def random_move(state: GameState, seed: int) -> Decision:
    return asyncio.run(RandomAgent(RandomSpec()).choose(turn(state, seed=seed)))


def material_move(state: GameState, seed: int = 7) -> Decision:
    return asyncio.run(MaterialAgent(MaterialSpec()).choose(turn(state, seed=seed)))


def scripted(state: GameState, **spec: object) -> Decision:
    agent = ScriptedAgent(ScriptedSpec.model_validate(spec))
    return asyncio.run(asyncio.wait_for(agent.choose(turn(state)), 1.0))


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_random_is_even_and_hangs_on_the_seed_alone(game: str) -> None:
    state = position(game)
    drawn = [random_move(state, seed).move for seed in range(400)]
    assert drawn == [random_move(state, seed).move for seed in range(400)]
    assert set(drawn) == set(state.legal_moves())
    assert max(Counter(drawn).values()) < 4 * 400 / len(state.legal_moves())


def test_material_takes_the_most_valuable_piece() -> None:
    state = position("chess", fen="4k3/8/8/2r1q3/3P4/8/8/4K3 w - - 0 1")
    assert material_move(state).move == Move("d4e5")


def test_material_prefers_a_mate_to_a_queen() -> None:
    state = position("chess", fen="7k/5ppp/8/8/8/8/q5PP/1R4K1 w - - 0 1")
    assert material_move(state).move == Move("b1b8")


def test_material_gives_no_draw_away_that_costs_it_the_lead() -> None:
    """Stalemate counts as nothing, a lead as what it is."""
    state = position("chess", fen="7k/5K2/8/6Q1/8/8/8/8 w - - 0 1")
    stalemate = state.apply(Move("g5g6"))
    assert stalemate.outcome() is not None
    assert after(state, Move("g5g6")) == 0.0
    assert material_move(state).move != Move("g5g6")


def test_material_takes_a_chariot_in_janggi() -> None:
    state = position("janggi", fen="4k4/9/r8/9/9/9/R8/9/3K5/9 w - - 0 1")
    assert material_move(state).move == Move("a4a8")


def test_material_breaks_ties_by_the_seed() -> None:
    state = position("chess")
    assert len({material_move(state, seed).move for seed in range(40)}) > 10
    assert material_move(state, 3) == material_move(state, 3)


def test_scripted_plays_its_moves_then_the_first_legal_one() -> None:
    assert scripted(position("chess"), moves=("d2d4", "c2c4")).move == Move("d2d4")
    later = position("chess", "d2d4", "d7d5")
    assert scripted(later, moves=("d2d4", "c2c4")).move == Move("c2c4")
    assert scripted(later, moves=("d2d4",)).move == later.legal_moves()[0]


def test_scripted_misbehaves_from_the_move_it_is_told() -> None:
    start, later = position("chess"), position("chess", "a2a3", "a7a6")
    assert scripted(start, behaviour="illegal", after=1).move == start.legal_moves()[0]
    assert scripted(later, behaviour="illegal", after=1).move == Move("a1a1")


def test_scripted_doubles_break_what_they_are_named_for() -> None:
    state = position("chess")
    with pytest.raises(RuntimeError, match="scripted crash"):
        scripted(state, behaviour="crash")
    with pytest.raises(TimeoutError):
        scripted(state, behaviour="stall")
    assert scripted(state, behaviour="late", seconds=0.01).kind == "move"
    assert len(scripted(state, behaviour="flood").attempts[0].answer) == FLOOD_CHARS
    assert scripted(state, behaviour="garbage") == Decision("move")
    assert scripted(state, behaviour="wrong_turn").move not in state.legal_moves()
    with pytest.raises(AgentError, match="told not to start"):
        asyncio.run(ScriptedAgent(ScriptedSpec(behaviour="fail_start")).start())
