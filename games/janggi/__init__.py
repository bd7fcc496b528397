"""Janggi (Korean chess), complete and in pure Python."""

from .game import JANGGI, RECORDS, JanggiGame
from .gib import read_gib, write_gib
from .rules import PRESETS, JanggiRules
from .setup import PAIRS, SETUPS, SetupPhase, parse_pair, parse_setup, seeded_pair, start_fen
from .state import JanggiState

__all__ = [
    "JANGGI",
    "PAIRS",
    "PRESETS",
    "RECORDS",
    "SETUPS",
    "JanggiGame",
    "JanggiRules",
    "JanggiState",
    "SetupPhase",
    "parse_pair",
    "parse_setup",
    "read_gib",
    "seeded_pair",
    "start_fen",
    "write_gib",
]
