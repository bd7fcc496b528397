"""Hostile doubles for tests: players that crash, stall, flood, cheat, dawdle or answer out of turn.

`crash` and `garbage` break the agents' contract on purpose (an exception, a Decision that makes no
sense); the others keep it and misbehave inside it.
"""

import asyncio

from games.base import Game, Move, Side

from .base import AgentError, AgentInfo, Attempt, Decision, Turn
from .spec import ScriptedSpec

FLOOD_CHARS = 1_000_000


class ScriptedAgent:
    """Plays `moves` by its own move number, then the first legal move, until it misbehaves."""

    def __init__(self, spec: ScriptedSpec) -> None:
        self._spec = spec
        self._info = AgentInfo(
            spec.name or f"scripted:{spec.behaviour}",
            "scripted",
            spec.model_dump(mode="json"),
            deterministic=True,
        )

    @property
    def info(self) -> AgentInfo:
        return self._info

    async def start(self) -> None:
        if self._spec.behaviour == "fail_start":
            raise AgentError(f"{self._info.name}: told not to start; give it another behaviour")

    async def new_game(self, game_id: str, game: Game, side: Side) -> None: ...

    async def choose(self, turn: Turn) -> Decision:
        number = len(turn.state.moves) // 2
        if number >= self._spec.after:
            misdeed = await self._misbehave(turn)
            if misdeed is not None:
                return misdeed
        return Decision("move", self._move(turn, number))

    async def _misbehave(self, turn: Turn) -> Decision | None:
        match self._spec.behaviour:
            case "crash":
                raise RuntimeError("scripted crash")
            case "stall":
                await asyncio.Event().wait()
            case "late":
                await asyncio.sleep(self._spec.seconds)
            case "flood":
                flood = Attempt(1, "unparsable", answer="x" * FLOOD_CHARS)
                return Decision("forfeit", reason="unparsable", attempts=(flood,))
            case "illegal":
                return Decision("move", Move("a1a1"))
            case "garbage":
                return Decision("move")
            case "wrong_turn":
                return Decision("move", self._others_move(turn))
        return None

    def _move(self, turn: Turn, number: int) -> Move:
        moves = self._spec.moves
        return Move(moves[number]) if number < len(moves) else turn.state.legal_moves()[0]

    def _others_move(self, turn: Turn) -> Move:
        """A move that would be the opponent's, one ply later."""
        after = turn.state.apply(turn.state.legal_moves()[0])
        return next(iter(after.legal_moves()), Move("a1a1"))

    async def end_game(self, game_id: str) -> None: ...

    async def close(self) -> None: ...
