"""Our janggi beside pyffish, asked with the full move list of seeded random play."""

import random
from collections.abc import Iterator

import pytest

from games.janggi import JANGGI, JanggiState
from tests.games import oracle
from tests.games.positions import for_mover

LONGEST = 90


def _played(seed: int, variant: str) -> Iterator[JanggiState]:
    """A random game, a third of it shuffling, so that repetitions and passes come up."""
    rng = random.Random(seed)
    state = JANGGI.start(rules=f"fsf-{variant}", setup=rng.choice(JANGGI.setups))
    for _ in range(LONGEST):
        yield state
        moves = state.legal_moves()
        if not moves:
            return
        own = state.moves[-2].uci if len(state.moves) > 1 else ""
        cut = 3 if own[2:3] == "0" else 2
        back = [move for move in moves if move.uci == own[cut:] + own[:cut]]
        state = state.apply(rng.choice(back if back and rng.random() < 0.33 else moves))


def _compare(states: int, first_seed: int) -> int:
    """How many positions differ in nothing; asserts on the first that does."""
    compared, seed = 0, first_seed
    while compared < states:
        variant = oracle.VARIANTS[seed % len(oracle.VARIANTS)]
        for state in _played(seed, variant):
            moves = [move.uci for move in state.legal_moves()]
            context = f"{variant} {state.start_fen} moves {' '.join(m.uci for m in state.moves)}"
            assert moves == oracle.legal_moves(state), context
            if moves:
                assert state.is_check() == oracle.is_check(state), context
            compared += 1
            if compared == states:
                break
        seed += 1
    return compared


def test_two_thousand_positions() -> None:
    assert _compare(2_000, 20261129) == 2_000


@pytest.mark.drill
def test_twenty_thousand_positions() -> None:
    assert _compare(20_000, 40_000) == 20_000


def _ends(games: int, first_seed: int) -> dict[str, int]:
    """Ends of shuffling games compared at every ply; how often each came up."""
    seen: dict[str, int] = {}
    for seed in range(first_seed, first_seed + games):
        variant = oracle.VARIANTS[seed % len(oracle.VARIANTS)]
        for state in _played(seed, variant):
            outcome = state.outcome()
            context = f"{variant} {state.start_fen} moves {' '.join(m.uci for m in state.moves)}"
            assert for_mover(state, outcome) == oracle.end(state), context
            if outcome is not None:
                seen[outcome.termination] = seen.get(outcome.termination, 0) + 1
                break
    return seen


def test_ends() -> None:
    assert sum(_ends(4, 300).values()) > 0


@pytest.mark.drill
def test_many_ends() -> None:
    seen = _ends(1_000, 5_000)
    assert {"repetition_points", "repetition_draw", "repetition_loss", "double_pass_points"} <= set(
        seen
    )


def test_san() -> None:
    asked = 0
    for seed in range(60):
        for state in list(_played(seed, "janggi"))[10::20]:
            for move in state.legal_moves()[seed % 7 :: 7]:
                assert state.format_move(move, "san") == oracle.san(state, move.uci)
                asked += 1
        if asked >= 300:
            break
    assert asked >= 300
