"""Chess as a game of the arena: names, rule sets, ends, the start."""

from collections.abc import Mapping
from types import MappingProxyType

import chess

from .state import ChessState

RULE_SETS: Mapping[str, str] = MappingProxyType(
    {
        "standard": "Chess; threefold repetition and 50 moves without progress end the game",
        "forced": "Chess; only fivefold repetition and 75 moves without progress end the game",
    }
)

TERMINATIONS: Mapping[str, str] = MappingProxyType(
    {
        "checkmate": "{winner} mates",
        "stalemate": "Draw by stalemate",
        "insufficient_material": "Draw by insufficient material",
        "seventyfive_moves": "Draw by the 75-move rule",
        "fivefold_repetition": "Draw by fivefold repetition",
        "fifty_moves": "Draw by the 50-move rule",
        "threefold_repetition": "Draw by threefold repetition",
    }
)


class ChessGame:
    """Chess on python-chess."""

    @property
    def name(self) -> str:
        return "chess"

    @property
    def sides(self) -> tuple[str, str]:
        return ("white", "black")

    @property
    def notations(self) -> tuple[str, ...]:
        return ("uci", "san")

    @property
    def board_styles(self) -> tuple[str, ...]:
        return ("letters", "unicode")

    @property
    def rule_sets(self) -> Mapping[str, str]:
        return RULE_SETS

    @property
    def terminations(self) -> Mapping[str, str]:
        return TERMINATIONS

    @property
    def setups(self) -> tuple[str, ...]:
        return ()

    def start(
        self, *, rules: str | None = None, fen: str | None = None, setup: str | None = None
    ) -> ChessState:
        """The first position, of `fen` if given.

        Raises InvalidPosition for a bad FEN, ValueError for other names.
        """
        name = next(iter(RULE_SETS)) if rules is None else rules
        if name not in RULE_SETS:
            raise ValueError(f"unknown chess rules {name!r}: there are {', '.join(RULE_SETS)}")
        if setup is not None:
            raise ValueError(f"chess has no set-ups: leave out {setup[:40]!r}")
        return ChessState(self, name, chess.STARTING_FEN if fen is None else fen)

    def uci_variant(self, rules: str) -> tuple[str, bool]:
        """(`chess`, True): engines play chess; the ends are the referee's."""
        if rules not in RULE_SETS:
            raise ValueError(f"unknown chess rules {rules!r}: there are {', '.join(RULE_SETS)}")
        return "chess", True


CHESS = ChessGame()
