"""Short cuts of the game tests: playing moves, seeded random games, outcomes in one word."""

import random
from collections.abc import Iterator, Sequence

from games.base import Game, GameState, Outcome
from games.janggi import JANGGI, JanggiGame, JanggiState


def janggi(fen: str, moves: str = "", rules: str = "fsf-janggi") -> JanggiState:
    """A janggi state after UCI moves; the FEN may be board and side alone, or empty: the start."""
    return play(JANGGI.start(rules=rules, fen=fen or None), moves.split())


def with_rules(game: JanggiGame, fen: str, moves: str = "") -> JanggiState:
    """The same under the first rule set of a game made for the test."""
    return play(game.start(fen=fen or None), moves.split())


def play(state: JanggiState, moves: Sequence[str]) -> JanggiState:
    for move in moves:
        state = state.apply(state.parse_move(move))
    return state


def uci(state: GameState, origin: str = "") -> list[str]:
    """Legal moves that begin with `origin`."""
    return [move.uci for move in state.legal_moves() if move.uci.startswith(origin)]


def ends(state: GameState) -> tuple[str, str] | None:
    """(termination, result) or None."""
    outcome = state.outcome()
    return None if outcome is None else (outcome.termination, outcome.result)


def for_mover(state: GameState, outcome: Outcome | None) -> str | None:
    """`win`, `loss`, `draw` for the side to move, or None."""
    if outcome is None:
        return None
    if outcome.winner is None:
        return "draw"
    return "win" if outcome.winner == state.turn else "loss"


def random_game(game: Game, seed: int, plies: int, rules: str | None = None) -> Iterator[GameState]:
    """The states of a seeded random game, the start first, until it ends."""
    rng = random.Random(seed)
    setup = rng.choice(game.setups) if game.setups else None
    state = game.start(rules=rules, setup=setup)
    yield state
    for _ in range(plies):
        if state.outcome() is not None:
            return
        state = state.apply(rng.choice(state.legal_moves()))
        yield state
