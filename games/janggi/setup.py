"""The set-up phase: how each side places its horses and elephants before the first move.

A set-up is four letters for files b, c, g, h in board order from Cho's left, for both sides
(`n` horse, `b` elephant). Han, who moves second, chooses first and may not change it; Cho chooses
after seeing it and moves first. Names such as "left elephant" are avoided: sources disagree
whether Han's are read from Han's seat or off the board.
"""

import random
from dataclasses import dataclass
from itertools import product

from games.base import Side

SETUPS = ("nbbn", "bnnb", "bnbn", "nbnb")
"""Inner elephants (the default), outer elephants, and the two mixed ones."""

PAIRS = tuple(f"{cho}/{han}" for cho, han in product(SETUPS, SETUPS))
"""Every start as `Cho/Han`, the default first."""

_KOREAN = str.maketrans("마상馬象HE", "nbnbnb")
_TO_KOREAN = str.maketrans("nb", "마상")


def parse_setup(text: str) -> str:
    """Four letters from `nbbn`, `HEEH` or `마상상마`. Raises ValueError naming the four."""
    setup = text.strip().translate(_KOREAN).lower().replace("h", "n").replace("e", "b")
    if setup not in SETUPS:
        raise ValueError(f"unknown set-up {text[:40]!r}: there are {', '.join(SETUPS)}")
    return setup


def korean_setup(setup: str) -> str:
    """`nbbn` -> `마상상마`, as `.gib` files name it."""
    return setup.translate(_TO_KOREAN)


def start_fen(cho: str, han: str) -> str:
    """FEN of the start with these set-ups, Cho to move. Raises ValueError for another set-up."""
    c, h = parse_setup(cho), parse_setup(han)
    return (
        f"r{h[:2]}a1a{h[2:]}r/4k4/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/4K4/"
        f"R{c.upper()[:2]}A1A{c.upper()[2:]}R w - - 0 1"
    )


def parse_pair(text: str) -> tuple[str, str]:
    """(Cho's set-up, Han's) of `nbbn/bnnb`. Raises ValueError for any other text."""
    parts = text.split("/")
    if len(parts) != 2:
        raise ValueError(f"set-ups are given as Cho/Han, such as nbbn/bnnb, not {text[:40]!r}")
    return parse_setup(parts[0]), parse_setup(parts[1])


def seeded_pair(seed: int) -> str:
    """One of the sixteen starts, evenly and always the same for a seed."""
    return random.Random(seed).choice(PAIRS)


@dataclass(frozen=True, slots=True)
class SetupPhase:
    """The two choices, Han's first. Immutable: `choose` returns the next phase."""

    han: str | None = None
    cho: str | None = None

    @property
    def to_choose(self) -> Side | None:
        """Who chooses now: 1 (Han), then 0 (Cho), then None."""
        if self.han is None:
            return 1
        return 0 if self.cho is None else None

    def choose(self, side: Side, setup: str) -> "SetupPhase":
        """The phase after this choice. Raises ValueError out of turn or for another set-up."""
        if side != self.to_choose:
            raise ValueError("Han chooses its set-up first, then Cho; neither may change it")
        chosen = parse_setup(setup)
        if side == 1:
            return SetupPhase(han=chosen)
        return SetupPhase(han=self.han, cho=chosen)

    @property
    def pair(self) -> str:
        """`Cho/Han`, a name in `JANGGI.setups`. Raises ValueError before both have chosen."""
        if self.cho is None or self.han is None:
            raise ValueError("the set-ups are not chosen yet")
        return f"{self.cho}/{self.han}"
