"""Chess on python-chess (the distribution `chess`)."""

from .game import CHESS, ChessGame
from .state import ChessState

__all__ = ["CHESS", "ChessGame", "ChessState"]
