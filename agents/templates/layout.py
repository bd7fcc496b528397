"""What a template is: a layout (what is shown, in which order) in a language."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

Part = Literal["moves", "fen", "board", "legal"]


@dataclass(frozen=True, slots=True)
class Layout:
    """`version` changes whenever the text that a layout renders changes."""

    version: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """All texts of one language. Texts in braces are filled in; games are keyed by name."""

    code: str
    system: Mapping[str, str]  # rules and how to answer; the first message, the same every ply
    notation: str  # {notation} {example}
    start: str  # {fen}
    moves: str  # {moves}
    no_moves: str
    fen: str  # {fen}
    board: str  # {board}
    legal: str  # {moves}
    side: str  # {side}
    sides: Mapping[str, str]
    points: str  # {first} {first_points} {second} {second_points}
    check: str
    repeated: str  # {times}
    bikjang: str
    opponent_passed: str
    pass_effect: Mapping[str, str]  # by the fact `pass_effect`
    quiet_left: str  # {plies}
    plies_left: str  # {plies}
    draw_offered: str
    no_resign: str  # where the player's policy forbids it, though the system message offers it
    no_draw_offer: str
    ask: str


@dataclass(frozen=True)
class Template:
    """A named, versioned template; `hash` covers every text it can show."""

    name: str
    layout: Layout
    words: Words

    @property
    def version(self) -> int:
        return self.layout.version

    @cached_property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of SHA-256 over layout and texts."""
        whole = {"name": self.name, "layout": asdict(self.layout), "words": asdict(self.words)}
        text = json.dumps(whole, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
