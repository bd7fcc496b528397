"""One ply deep, material alone: a yardstick that both games share.

Prefers a win at once, then the most points of its own less the other's, then a draw of lots from
the turn's seed; never walks into a lost end where another move is to be had.
"""

import asyncio

from games.base import Game, GameState, Move, Side

from .base import AgentInfo, Decision, Turn, derive_seed
from .spec import MaterialSpec

MOVES_A_SLICE = 8  # so many positions are made before other games get their turn on the loop


class MaterialAgent:
    """Looks at each legal move's position and nothing further."""

    def __init__(self, spec: MaterialSpec) -> None:
        self._info = AgentInfo(
            spec.name or "material", "material", spec.model_dump(mode="json"), deterministic=False
        )

    @property
    def info(self) -> AgentInfo:
        return self._info

    async def start(self) -> None: ...

    async def new_game(self, game_id: str, game: Game, side: Side) -> None: ...

    async def choose(self, turn: Turn) -> Decision:
        scored: list[tuple[float, Move]] = []
        for number, move in enumerate(turn.state.legal_moves()):
            scored.append((after(turn.state, move), move))
            if number % MOVES_A_SLICE == MOVES_A_SLICE - 1:
                await asyncio.sleep(0)
        best = max(score for score, _ in scored)
        ties = [move for score, move in scored if score == best]
        return Decision("move", ties[derive_seed(turn.seed, "material") % len(ties)])

    async def end_game(self, game_id: str) -> None: ...

    async def close(self) -> None: ...


def after(state: GameState, move: Move) -> float:
    """Points of the mover less the other's after the move; ±inf where the move ends the game,
    0 where it ends in a draw."""
    side = state.turn
    child = state.apply(move)
    outcome = child.outcome()
    if outcome is not None:
        if outcome.winner is None:
            return 0.0
        return float("inf") if outcome.winner == side else float("-inf")
    points = child.material()
    return points[side] - points[1 - side]
