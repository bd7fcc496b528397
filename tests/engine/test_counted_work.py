"""Rows, passes and computed tokens of moves on fixed inputs; no wall time.

A byte is a token, so that the counts follow from positions and spellings alone. The real scheduler
drives the fake model, which also checks that every row sees what it should.
"""

from pathlib import Path

import pytest

from agents.prompt import DEFAULT_TEMPLATE, render_prompt
from engine.config import EngineConfig
from engine.tokenizer import Tokenizer
from engine.types import ChoiceScores, Request, TokenIds, common_prefix
from games.base import GameState
from games.registry import get_game

from .drive import Drive
from .fake_runner import FakeRunner

OPENINGS = {  # well-known first moves
    "chess": "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 f8e7 f1e1 b7b5 a4b3 d7d6 c2c3 e8g8",
    "janggi": "a4b4 a7b7 i4h4 i7h7 e2e3 e9e8 b1c3 b10c8 h1g3 h10g8",
}


def states_of(game: str) -> list[GameState]:
    states = [get_game(game).start()]
    for text in OPENINGS[game].split():
        states.append(states[-1].apply(states[-1].parse_move(text)))
    return states


def spelled(state: GameState) -> tuple[TokenIds, ...]:
    return tuple(tuple(move.uci.encode()) for move in state.legal_moves())


def drive(**settings: object) -> Drive:
    runner = FakeRunner(num_blocks=1024, block_size=16, max_model_len=8192, vocab_size=256)
    return Drive(runner, EngineConfig.from_dict({"model": "fake", **settings}))


def ask(name: str, prompt: TokenIds, state: GameState, *, score: bool = True) -> Request:
    return Request(name, prompt, choices=spelled(state), score=score)


def run(at: Drive, request: Request) -> tuple[int, int]:
    """Passes and rows of one request alone."""
    before = len(at.runner.plans)
    at.run(request)
    plans = at.runner.plans[before:]
    return len(plans), sum(plan.num_rows for plan in plans)


# Plies from the start of each opening: legal moves, inner nodes of their trie (rows of the pass).
TRIES = {
    ("chess", 0): (20, 30),  # 8 files, 10 squares, 12 squares and a file
    ("chess", 16): (27, 40),
    ("janggi", 0): (32, 47),
    ("janggi", 10): (53, 55),
}


@pytest.mark.parametrize(("game", "ply"), TRIES)
def test_a_scored_move_is_one_pass_over_fresh_tokens_and_trie(game: str, ply: int) -> None:
    state, prompt = states_of(game)[ply], tuple(range(1, 101))
    moves, trie = TRIES[game, ply]
    assert len(state.legal_moves()) == moves
    at = drive()
    assert run(at, ask("cold", prompt, state)) == (1, 100 + trie)
    assert run(at, ask("again", prompt, state)) == (1, 1 + trie)
    assert run(at, ask("longer", (*prompt, 7, 8, 9), state)) == (1, 3 + trie)
    assert run(at, ask("branched", (*prompt[:90], 7), state)) == (1, 1 + trie)


# Passes and rows: e|1|f1 branches at its first and third byte, e|3|f|3 at its first three.
WALKS = {"chess": ("e1f1", 2, 102), "janggi": ("e3f3", 3, 102)}


@pytest.mark.parametrize("game", WALKS)
def test_a_walk_takes_no_pass_for_forced_tokens(game: str) -> None:
    state, prompt = states_of(game)[-1], tuple(range(1, 101))
    at = drive()
    move, passes, rows = WALKS[game]
    assert run(at, ask("walk", prompt, state, score=False)) == (passes, rows)
    walked = at.completion("walk")
    assert bytes(walked.tokens).decode() == move
    assert walked.stats.computed_tokens == rows
    assert walked.stats.forced_tokens == len(move) - passes


def computed(game: str, prompts: list[TokenIds], **settings: object) -> list[ChoiceScores]:
    at = drive(**settings)
    for ply, (state, prompt) in enumerate(zip(states_of(game), prompts, strict=True)):
        at.run(ask(f"{ply}", prompt, state))
    return [at.scores(f"{ply}") for ply in range(len(prompts))]


@pytest.mark.parametrize("game", OPENINGS)
def test_a_game_computes_only_what_no_earlier_prompt_has(game: str) -> None:
    """Ply by ply by the default template: prompt − longest common prefix + trie, to the token."""
    states = states_of(game)
    prompts = [tuple(render_prompt(DEFAULT_TEMPLATE, s).text.encode()) for s in states]
    cached = computed(game, prompts)
    plain = computed(game, prompts, enable_prefix_caching=False)
    for ply, (prompt, on, off) in enumerate(zip(prompts, cached, plain, strict=True)):
        known = max((common_prefix(prompt, p) for p in prompts[:ply]), default=0)
        assert off.stats.cached_tokens == 0
        assert on.stats.cached_tokens == known
        assert off.stats.computed_tokens - on.stats.computed_tokens == known
        assert on.logprobs == off.logprobs


# Most tokens of a prompt that any ply after the second may compute, trie apart (30 and 41 are).
FRESH = {"chess": 40, "janggi": 55}


@pytest.mark.parametrize("game", FRESH)
def test_the_default_template_leaves_little_to_compute(smollm2_dir: Path, game: str) -> None:
    """By the real tokenizer: what changes every ply stands at the prompt's end and is short."""
    tokenizer = Tokenizer.load(smollm2_dir)
    prompts: list[TokenIds] = []
    for state in states_of(game):
        messages = render_prompt(DEFAULT_TEMPLATE, state).messages
        prompt = tokenizer.encode_prompt([{"role": m.role, "content": m.content} for m in messages])
        known = max((common_prefix(prompt, p) for p in prompts), default=0)
        prompts.append(prompt)
        if len(prompts) > 2:
            assert len(prompt) - known <= FRESH[game], len(prompts)
