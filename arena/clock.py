"""Time controls and the clock of one side. Pure: it is told what to charge, it never looks.

Grammar of fastchess: `[moves/]time[+increment]`, time in seconds or `minutes:seconds`; `inf` is
untimed. `40/60+0.6`, `1:30`, `10+0.1`.
"""

import re
from dataclasses import dataclass

_NUMBER = r"\d+(?:\.\d+)?"
_TC = re.compile(
    rf"(?:(?P<moves>\d+)/)?(?:(?P<minutes>\d+):)?(?P<seconds>{_NUMBER})(?:\+(?P<inc>{_NUMBER}))?"
)


@dataclass(frozen=True, slots=True)
class TimeControl:
    """`base` seconds for `moves` moves (0: for the game), `increment` seconds after each move."""

    base: float
    increment: float = 0.0
    moves: int = 0


def parse_tc(text: str) -> TimeControl | None:
    """The time control of a text; None for `inf`. Raises ValueError that shows the grammar."""
    text = text.strip()
    if text in {"inf", "infinite"}:
        return None
    match = _TC.fullmatch(text)
    if match is None:
        raise ValueError(
            f"time control {text!r} is not [moves/]time[+increment]: try 10+0.1 or 40/1:30"
        )
    base = 60 * int(match["minutes"] or 0) + float(match["seconds"])
    moves = int(match["moves"] or 0)
    if base <= 0 or (match["moves"] is not None and moves == 0):
        raise ValueError(f"time control {text!r} leaves no time to move: try 10+0.1")
    return TimeControl(base=base, increment=float(match["inc"] or 0.0), moves=moves)


class Clock:
    """What one side has left. `margin_s` seconds below nought are forgiven, as fastchess's
    `timemargin`."""

    def __init__(self, control: TimeControl, margin_s: float = 0.0) -> None:
        self._control = control
        self._margin_s = margin_s
        self._played = 0
        self.remaining = control.base

    @property
    def increment(self) -> float:
        return self._control.increment

    def charge(self, seconds: float) -> bool:
        """Take the time of one move; False: the flag fell. A negative time (a clock that was set
        back) charges nothing."""
        self.remaining -= max(0.0, seconds)
        if self.remaining < -self._margin_s:
            self.remaining = 0.0
            return False
        self.remaining = max(0.0, self.remaining) + self._control.increment
        self._played += 1
        if self._control.moves and self._played % self._control.moves == 0:
            self.remaining += self._control.base
        return True
