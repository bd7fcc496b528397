"""Any legal move, evenly: the floor of every scale."""

from games.base import Game, Side

from .base import AgentInfo, Decision, Turn, derive_seed
from .spec import RandomSpec


class RandomAgent:
    """Draws from the turn's seed alone, so a replayed game draws the same."""

    def __init__(self, spec: RandomSpec) -> None:
        self._info = AgentInfo(
            spec.name or "random", "random", spec.model_dump(mode="json"), deterministic=False
        )

    @property
    def info(self) -> AgentInfo:
        return self._info

    async def start(self) -> None: ...

    async def new_game(self, game_id: str, game: Game, side: Side) -> None: ...

    async def choose(self, turn: Turn) -> Decision:
        legal = turn.state.legal_moves()
        return Decision("move", legal[derive_seed(turn.seed, "random_move") % len(legal)])

    async def end_game(self, game_id: str) -> None: ...

    async def close(self) -> None: ...
