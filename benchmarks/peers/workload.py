"""The moves that every peer is asked for: seeded games, prompts as token ids, legal moves.

The prompt is the common one (history, FEN and the legal list), in the model's chat template. Each
turn of the bench has games of its own, so that no peer meets a prompt it has cached; what all
prompts share (system prompt and rules) stays shared.
"""

from collections.abc import Sequence
from typing import Any

from agents.prompt import render_prompt
from benchmarks.kit import played
from engine.tokenizer import Tokenizer
from games.base import GameState

COMMON = "fen"
FIRST_PLY = 12  # a midgame begins about here


def build(
    tokenizer: Tokenizer, game: str, seed: int, games: int, plies: int, template: str = COMMON
) -> list[list[dict[str, Any]]]:
    """`games` lists of `plies` asks: {"ids", "legal", "choices", "messages"}."""
    found: list[list[dict[str, Any]]] = []
    while len(found) < games:
        states = played(game, seed, FIRST_PLY + plies)[FIRST_PLY:]
        seed += 1
        if len(states) == plies:  # a game that ended earlier is left out
            found.append([_ask(tokenizer, state, template) for state in states])
    return found


def _ask(tokenizer: Tokenizer, state: GameState, template: str) -> dict[str, Any]:
    prompt = render_prompt(template, state)
    messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
    legal = [move.uci for move in state.legal_moves()]
    rendered = tokenizer.render(messages)
    return {
        "ids": list(tokenizer.encode_prompt(messages)),
        "legal": legal,
        "choices": [list(ids) for ids in tokenizer.encode_choices(rendered, legal)],
        "messages": messages,
    }


def mean_length(games: Sequence[Sequence[dict[str, Any]]]) -> float:
    """Tokens a prompt."""
    lengths = [len(ask["ids"]) for game in games for ask in game]
    return sum(lengths) / len(lengths)
