"""Janggi (Korean chess) as a game of the arena: names, rule sets, ends, starts.

Cho moves first and owns the upper-case pieces; Han has the deom. Sources and the differences
between rule sets are in the modules `rules` and `state`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from .notations import NOTATIONS
from .rules import ENGINE_VARIANTS, PRESETS, RECORD_RULES, JanggiRules
from .setup import PAIRS, parse_pair, start_fen
from .state import JanggiState
from .text import STYLES

_CAUSES = {
    "bikjang": "facing generals",
    "double_pass": "two passes in a row",
    "repetition": "repetition",
    "no_capture": "no capture for too long",
    "max_plies": "the cap on plies",
}

TERMINATIONS: Mapping[str, str] = MappingProxyType(
    {"checkmate": "{winner} mates"}
    | {f"{cause}_points": f"{{winner}} wins on points by {why}" for cause, why in _CAUSES.items()}
    | {f"{cause}_draw": f"Draw by {why}" for cause, why in _CAUSES.items()}
    | {
        "repetition_loss": "{loser} repeats moves and loses",
        "perpetual_check_loss": "{loser} checks perpetually and loses",
    }
)


class JanggiGame:
    """The game with its rule sets; a caller may make one with more of them."""

    def __init__(self, presets: Mapping[str, JanggiRules] = PRESETS) -> None:
        """`presets`: name -> rules, the first one the default."""
        self.presets = MappingProxyType(dict(presets))

    @property
    def name(self) -> str:
        return "janggi"

    @property
    def sides(self) -> tuple[str, str]:
        return ("cho", "han")

    @property
    def notations(self) -> tuple[str, ...]:
        return NOTATIONS

    @property
    def board_styles(self) -> tuple[str, ...]:
        return STYLES

    @property
    def rule_sets(self) -> Mapping[str, str]:
        return {name: rules.description for name, rules in self.presets.items()}

    @property
    def terminations(self) -> Mapping[str, str]:
        return TERMINATIONS

    @property
    def setups(self) -> tuple[str, ...]:
        return PAIRS

    def start(
        self, *, rules: str | None = None, fen: str | None = None, setup: str | None = None
    ) -> JanggiState:
        """The first position: of `fen`, or of `setup` (`nbbn/bnnb`, Cho/Han; by default the first).

        Raises InvalidPosition for a bad FEN, ValueError for other names or for both at once.
        """
        name = next(iter(self.presets)) if rules is None else rules
        if name not in self.presets:
            raise ValueError(f"unknown janggi rules {name!r}: there are {', '.join(self.presets)}")
        if fen is not None and setup is not None:
            raise ValueError("give a FEN or a set-up, not both: a FEN holds its set-up")
        if fen is None:
            fen = start_fen(*parse_pair(setup or PAIRS[0]))
        return JanggiState(self, name, fen)

    def uci_variant(self, rules: str) -> tuple[str, bool]:
        """(Fairy-Stockfish's variant nearest to the rules, whether it is exactly theirs)."""
        if rules not in self.presets:
            raise ValueError(f"unknown janggi rules {rules!r}")
        if rules.startswith("fsf-"):
            return rules.removeprefix("fsf-"), True
        return ENGINE_VARIANTS.get(rules, "janggi"), False


JANGGI = JanggiGame()

RECORDS = JanggiGame({"record": RECORD_RULES})
"""Janggi for reading files: bars only moves that no rules allow."""
