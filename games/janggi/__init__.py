"""Janggi (Korean chess), complete and in pure Python."""

from .game import JANGGI, JanggiGame
from .rules import PRESETS, JanggiRules
from .setup import PAIRS, SETUPS, SetupPhase, parse_pair, parse_setup, seeded_pair, start_fen
from .state import JanggiState

__all__ = [
    "JANGGI",
    "PAIRS",
    "PRESETS",
    "SETUPS",
    "JanggiGame",
    "JanggiRules",
    "JanggiState",
    "SetupPhase",
    "parse_pair",
    "parse_setup",
    "seeded_pair",
    "start_fen",
]
