"""Players and games for the arena's tests: real ones, and doubles that misbehave on purpose."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agents.base import AgentInfo, Attempt, Decision, Turn
from games.base import Game, Move, Side

Choose = Callable[[Turn], Awaitable[Decision]]


class Player:
    """An agent whose answers are a function of the turn; it counts what it is asked."""

    def __init__(self, name: str, choose: Choose | None = None, kind: str = "scripted") -> None:
        self._info = AgentInfo(name, kind, {"kind": kind}, deterministic=True)
        self._choose = choose or first_move
        self.turns: list[Turn] = []
        self.open_games: set[str] = set()

    @property
    def info(self) -> AgentInfo:
        return self._info

    async def start(self) -> None: ...

    async def new_game(self, game_id: str, game: Game, side: Side) -> None:
        self.open_games.add(game_id)

    async def choose(self, turn: Turn) -> Decision:
        self.turns.append(turn)
        return await self._choose(turn)

    async def end_game(self, game_id: str) -> None:
        self.open_games.discard(game_id)

    async def close(self) -> None: ...


async def first_move(turn: Turn) -> Decision:
    return Decision("move", turn.state.legal_moves()[0])


def script(*answers: Decision | str) -> Choose:
    """One answer an ask, in order (a text is a move); afterwards the first legal move."""
    left = list(answers)

    async def choose(turn: Turn) -> Decision:
        if not left:
            return await first_move(turn)
        answer = left.pop(0)
        return Decision("move", Move(answer)) if isinstance(answer, str) else answer

    return choose


def scored(score_cp: int) -> Choose:
    """The first legal move, always with the same score."""

    async def choose(turn: Turn) -> Decision:
        return Decision("move", turn.state.legal_moves()[0], score_cp=score_cp)

    return choose


async def never(turn: Turn) -> Decision:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def stubborn(turn: Turn) -> Decision:
    """Swallows its first cancellation and goes on."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def broken(turn: Turn) -> Decision:
    raise ZeroDivisionError("broken on purpose")


def failed(text: str) -> Attempt:
    return Attempt(1, "unparsable", answer=text)
