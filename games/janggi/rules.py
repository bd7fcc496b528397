"""Janggi rule sets: one frozen object of switches, and the presets by name.

No preset is called official: no federation's text has all of any of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True, slots=True)
class JanggiRules:
    """How a game ends. Points are those of `JanggiState.material`, the deom included.

    `description` is one sentence for standings tables.

    Bikjang (the generals face each other on an open file) with `points` or `draw`: the side to
    move must part them or pass; the pass ends the game so. It counts only while both sides have
    fewer than `bikjang_below` points, if that is given, or, with `bikjang_general_capture`, when
    a general has just captured into it.

    `double_pass`: what the second of two passes in a row brings.

    `repetition` at the `repetition_count`th time of a position: `points` and `draw` end the game;
    `lose` ends it against the side that completed it; `forbid` makes the completing move illegal,
    unless it answers a check or is a pass, and only while both sides have at least
    `repetition_below` points, if that is given.
    `perpetual_check="lose"`: a repetition through which one side alone gave check at every move
    loses for it instead.
    `shuffle_loses`: whoever plays one piece, neither general nor guard, to and fro five times in
    a row (a pass before the fifth is let through) without being in check and with no capture on
    the board loses.

    `no_capture_plies` and `max_plies` (plies since the start position) end the game by
    `no_capture_result` and `max_plies_result`. `deom` is added to Han's points.
    `any_material` lets a FEN hold more pieces of a kind than a set does, as the engine allows.
    `league` gives (mate or forfeit win, points win, points loss, loss) for standings.
    """

    description: str
    bikjang: Literal["points", "draw", "off"] = "points"
    bikjang_below: int | None = None
    bikjang_general_capture: bool = False
    double_pass: Literal["points", "draw", "off"] = "points"
    repetition: Literal["points", "draw", "forbid", "lose"] = "points"
    repetition_count: int = 3
    repetition_below: int | None = None
    perpetual_check: Literal["lose"] | None = "lose"
    shuffle_loses: bool = False
    no_capture_plies: int | None = 100
    no_capture_result: Literal["points", "draw"] = "points"
    max_plies: int | None = None
    max_plies_result: Literal["points", "draw"] = "points"
    deom: float = 1.5
    any_material: bool = False
    league: tuple[int, int, int, int] | None = (7, 4, 2, 0)


PRESETS: Mapping[str, JanggiRules] = MappingProxyType(
    {
        "fairy": JanggiRules(
            "Fairy-Stockfish janggi rules, 200-ply cap on points (ours)", max_plies=200
        ),
        "kja": JanggiRules(
            "Korea Janggi Association rules as quoted (bikjang under 30 points, repetition "
            "forbidden at 30 and more), 200-ply cap on points (ours)",
            bikjang_below=30,
            bikjang_general_capture=True,
            repetition="forbid",
            repetition_below=30,
            perpetual_check=None,
            no_capture_plies=None,
            max_plies=200,
        ),
        "kakao": JanggiRules(
            "Kakao janggi rules as its recorded games show them (no bikjang, repeating one's "
            "moves loses), 200-ply cap on points",
            bikjang="off",
            repetition="lose",
            repetition_count=4,
            shuffle_loses=True,
            no_capture_plies=200,
            max_plies=200,
        ),
        "casual": JanggiRules(
            "Casual janggi rules (bikjang, two passes and repetition draw, no points), "
            "drawn at 200 plies (ours)",
            bikjang="draw",
            double_pass="draw",
            repetition="draw",
            no_capture_result="draw",
            max_plies=200,
            max_plies_result="draw",
            deom=0.0,
            league=None,
        ),
        "fsf-janggi": JanggiRules("Fairy-Stockfish `janggi`, no cap", any_material=True),
        "fsf-janggitraditional": JanggiRules(
            "Fairy-Stockfish `janggitraditional`: ends without mate are draws, no cap",
            bikjang="draw",
            double_pass="draw",
            repetition="draw",
            no_capture_result="draw",
            deom=0.0,
            any_material=True,
            league=None,
        ),
        "fsf-janggimodern": JanggiRules(
            "Fairy-Stockfish `janggimodern`: no bikjang, repeating one's moves loses, no cap",
            bikjang="off",
            repetition_count=4,
            shuffle_loses=True,
            no_capture_plies=200,
            any_material=True,
        ),
        "fsf-janggicasual": JanggiRules(
            "Fairy-Stockfish `janggicasual`: no bikjang, ends without mate are draws, no cap",
            bikjang="off",
            double_pass="draw",
            repetition="draw",
            no_capture_result="draw",
            deom=0.0,
            any_material=True,
            league=None,
        ),
    }
)
"""Name -> rules; the first is the default."""

RECORD_RULES = JanggiRules(
    "What a game record may hold: moves that are legal under any rules, nothing ends but by mate",
    bikjang="off",
    double_pass="off",
    repetition="points",
    repetition_count=1_000_000,
    no_capture_plies=None,
    any_material=True,
)
"""For reading files only; no rules to play by."""

ENGINE_VARIANTS: Mapping[str, str] = MappingProxyType(
    {
        "fairy": "janggi",
        "kja": "janggi",
        "kakao": "janggimodern",
        "casual": "janggitraditional",
    }
)
"""Preset -> the Fairy-Stockfish variant nearest to it; `fsf-X` plays exactly X."""
