"""Whatever the text, the reader neither crashes nor makes up a move."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from agents.parse import parse_answer
from games.base import GameState
from tests.agents.kit import position


def _walks(game: str, count: int) -> list[GameState]:
    """Positions of random play, a few plies apart."""
    found: list[GameState] = []
    rng = random.Random(f"{game} walks")
    while len(found) < count:
        state = position(game)
        for _ in range(rng.randrange(2, 70)):
            if state.outcome() is not None:
                break
            state = state.apply(rng.choice(state.legal_moves()))
        if state.outcome() is None:
            found.append(state)
    return found


STATES = [
    *_walks("chess", 8),
    *_walks("janggi", 8),
    position("chess", fen="8/4P1k1/8/8/8/8/1p4K1/8 w - - 0 60"),
    position("janggi", fen="3k5/9/3R5/9/9/9/9/9/9/5K3 b - - 0 1"),
]
PIECES = """
Final Answer:|최종 답:|Respuesta final:|Move:|I play |My move is |저는 |를 두겠습니다|or |, |<think>
</think>|<move>|</move>|{"move": "|"}|\\boxed{|}|```|**|`| |1. |1... |...|(|)|O-O|O-O-O|0-0|--|0000
@@@@|Z0|pass|한수쉼|resign|기권|draw|&#101;|&lt;|\u200b|Ｎ|♘|→|x|=Q|+|#|e.p.|to|knight|from
castle kingside|e4|Nf3|bxc3|Bxc3|e8=Q|e7e8q|a1a10|a10a1|79졸78|P79-78|is not|I'm sorry|a|b|N|B|1
10|졸|馬
"""
FILLED = ["<legal>", "<cut>", "<format>", "\n", "\n\n"]
texts = st.one_of(
    st.lists(
        st.sampled_from([*PIECES.strip().replace("\n", "|").split("|"), *FILLED]), max_size=14
    ),
    st.lists(st.text(max_size=12), max_size=4),
)


def _written(parts: list[str], state: GameState, seed: int) -> str:
    """The text with moves of this position, whole, cut and in other notations, filled in."""
    rng = random.Random(seed)
    legal = state.legal_moves()

    def fill(part: str) -> str:
        move = rng.choice(legal)
        match part:
            case "<legal>":
                return move.uci
            case "<cut>":
                return move.uci[: rng.randrange(1, len(move.uci) + 1)]
            case "<format>":
                return state.format_move(move, rng.choice(state.game.notations))
        return part

    return "".join(fill(part) for part in parts)


def _check(parts: list[str], which: int, seed: int, truncated: bool, reasoning: bool) -> None:
    state = STATES[which]
    text = _written(parts, state, seed)
    notation = state.game.notations[seed % len(state.game.notations)]
    reading = parse_answer(state, text, notation=notation, truncated=truncated, reasoning=reasoning)
    again = parse_answer(state, text, notation=notation, truncated=truncated, reasoning=reasoning)
    assert reading == again
    if reading.kind == "move":
        assert reading.uci in {move.uci for move in state.legal_moves()}
        assert reading.span is not None
    if reading.span is not None:
        assert 0 <= reading.span[0] <= reading.span[1] <= len(text)
    if reading.kind == "truncated":
        assert truncated or reasoning or "<think" in text


_CASE = (
    texts,
    st.integers(0, len(STATES) - 1),
    st.integers(0, 2**20),
    st.booleans(),
    st.booleans(),
)
_HEALTH = [HealthCheck.too_slow]
DRILL_PARTS = 20


@given(*_CASE)
@settings(max_examples=2_000, deadline=None, suppress_health_check=_HEALTH, derandomize=True)
def test_never_crashes_and_never_makes_up_a_move(
    parts: list[str], which: int, seed: int, truncated: bool, reasoning: bool
) -> None:
    _check(parts, which, seed, truncated, reasoning)


@pytest.mark.drill
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("part", range(DRILL_PARTS))
def test_never_crashes_and_never_makes_up_a_move_at_length(part: int) -> None:
    """100,000 cases in all; in parts, since what hypothesis remembers of a run slows it down."""
    cases = 0

    @seeded(part)
    @given(*_CASE)
    @settings(
        max_examples=100_000 // DRILL_PARTS,
        deadline=None,
        database=None,
        suppress_health_check=_HEALTH,
    )
    def fuzz(parts: list[str], which: int, draw: int, truncated: bool, reasoning: bool) -> None:
        nonlocal cases
        cases += 1
        _check(parts, which, draw, truncated, reasoning)

    fuzz()
    assert cases >= 100_000 // DRILL_PARTS


@pytest.mark.parametrize(
    "flood",
    [
        "<think>" * 20_000,
        "{" * 50_000,
        '{"a":' * 10_000,
        "e4 " * 20_000,
        "I play e4. " * 5_000,
        "Final Answer: " * 5_000,
        "x" * 200_000,
        " " * 200_000 + "e4",
        "*" * 20_000,
        "1. " * 20_000,
        "<" * 20_000,
        "&amp;" * 20_000,
        "<move>" * 5_000,
        '"move": "' * 5_000,
        "\n" * 50_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_floods_end(flood: str) -> None:
    parse_answer(STATES[0], flood)
    parse_answer(STATES[8], flood, truncated=True)


def test_every_formatted_move_is_read_back() -> None:
    """What a template lists in a notation, its reader reads as the same move."""
    for state in STATES:
        for notation in state.game.notations:
            for move in state.legal_moves():
                text = state.format_move(move, notation)
                assert parse_answer(state, text, notation=notation).uci == move.uci
                labelled = parse_answer(state, f"Final Answer: {text}", notation=notation)
                assert labelled.uci == move.uci, (state.fen(), notation, text)
