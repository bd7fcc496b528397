"""A UCI engine that judges games it does not play: their scores, and who stands better at the cap.

It searches a fixed number of nodes from a fresh start for every position, so its verdicts are as
reproducible as the players. Its time is nobody's: no clock is charged. Where it fails the game has
no result; it is never anybody's loss.
"""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from agents.base import Agent, AgentError, Turn
from agents.factory import create_agents
from agents.spec import UciSpec
from arena.config import Config, RefereeConfig
from games.base import GameState
from games.registry import get_game


class RefereeError(Exception):
    """The referee gave no score; one line."""


class Referee:
    """Scores positions with one engine."""

    def __init__(self, agent: Agent, win_cp: int) -> None:
        """`win_cp`: the score from which a game at the cap is won."""
        self._agent = agent
        self.win_cp = win_cp

    @property
    def name(self) -> str:
        return self._agent.info.name

    async def score(self, state: GameState) -> int:
        """Centipawns, from the point of view of the side to move. Raises RefereeError."""
        try:
            decision = await self._agent.choose(Turn("referee", state, seed=0))
        except AgentError as error:
            raise RefereeError(f"the referee {self.name}: {error}") from None
        if decision.score_cp is None:
            words = decision.detail or "it gave no score"
            raise RefereeError(f"the referee {self.name}: {words}")
        return decision.score_cp


class Referees:
    """The referees of a run by section; a context manager that starts and ends their engines."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stack = AsyncExitStack()
        self._by_section: dict[int, Referee] = {}

    def get(self, section: int) -> Referee | None:
        return self._by_section.get(section)

    async def __aenter__(self) -> Self:
        """Raises AgentError where an engine cannot start, or does not play the section's game."""
        made: dict[str, Agent] = {}
        try:
            for number, section in enumerate(self._config.games):
                if section.referee is not None:
                    agent = await self._agent(section.referee, made)
                    await agent.new_game("referee", get_game(section.game), 0)
                    self._by_section[number] = Referee(agent, section.referee.score)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _agent(self, rule: RefereeConfig, made: dict[str, Agent]) -> Agent:
        """Sections that ask for the same engine share it."""
        spec = engine_of(rule)
        key = spec.model_dump_json()
        if key not in made:
            agents = create_agents([spec])
            self._stack.push_async_callback(agents.close)
            (made[key],) = agents.values()
            await made[key].start()
        return made[key]


def engine_of(rule: RefereeConfig) -> UciSpec:
    """The player that a referee would be."""
    limited = {"depth": rule.depth, "nodes": None if rule.depth else rule.nodes}
    return UciSpec.model_validate(
        {"path": rule.path, "options": rule.options, "processes": rule.processes, **limited}
    )
