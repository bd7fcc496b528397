"""The games there are: one line each."""

from collections.abc import Mapping
from types import MappingProxyType

from games.base import Game
from games.chess import CHESS
from games.janggi import JANGGI

GAMES: Mapping[str, Game] = MappingProxyType({"chess": CHESS, "janggi": JANGGI})


def get_game(name: str) -> Game:
    """The game of that name. Raises ValueError naming the games there are."""
    try:
        return GAMES[name]
    except KeyError:
        raise ValueError(f"unknown game {name!r}: there are {', '.join(GAMES)}") from None
