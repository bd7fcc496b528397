"""What the agents' tests share: positions, turns, outside data."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.base import Turn
from games.base import GameState, Move
from games.registry import get_game

ROOT = Path(__file__).parents[2]


def position(game: str, *moves: str, fen: str | None = None, rules: str | None = None) -> GameState:
    """The state after some moves."""
    state = get_game(game).start(rules=rules, fen=fen)
    for move in moves:
        state = state.apply(Move(move))
    return state


def turn(state: GameState, **more: Any) -> Turn:
    """A request for a move with a fixed seed."""
    return Turn(**{"game_id": "1", "state": state, "seed": 7, **more})


def shared_lines(name: str) -> Iterator[dict[str, Any]]:
    """Lines of a file of the outside data; skips the test where there is none."""
    file = Path(os.environ.get("MADANG_SHARED", ROOT.parent / "shared")) / "data" / name
    if not file.is_file():
        pytest.skip("skipped: no outside data")
    for line in file.read_text("utf-8").splitlines():
        yield json.loads(line)
