"""What the rules say of one position, as plain data for a command line."""

from collections.abc import Sequence
from typing import TypedDict

from .base import Game, GameState, describe


class Report(TypedDict):
    """`outcome` is None while the game goes on, else winner, termination, result, sentence."""

    game: str
    rules: str
    fen: str
    side: str
    legal_moves: list[str]
    in_check: bool
    outcome: dict[str, str | None] | None


def legal_report(
    game: Game,
    fen: str | None = None,
    moves: Sequence[str] = (),
    rules: str | None = None,
    setup: str | None = None,
) -> Report:
    """The position after UCI `moves` from `fen` or `setup`.

    Raises GameError for a bad position or move, ValueError for other names.
    """
    state = game.start(rules=rules, fen=fen, setup=setup)
    for move in moves:
        state = state.apply(state.parse_move(move))
    return report(state)


def report(state: GameState) -> Report:
    """What the rules say of a position."""
    game, end = state.game, state.outcome()
    return {
        "game": game.name,
        "rules": state.rules,
        "fen": state.fen(),
        "side": game.sides[state.turn],
        "legal_moves": [move.uci for move in state.legal_moves()],
        "in_check": state.is_check(),
        "outcome": None
        if end is None
        else {
            "winner": None if end.winner is None else game.sides[end.winner],
            "termination": end.termination,
            "result": end.result,
            "sentence": describe(game, end),
        },
    }
