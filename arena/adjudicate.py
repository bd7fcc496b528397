"""Ending a game that the board has not ended: by the scores of both, or at the arena's own cap.

Pure. The names are fastchess's: `-draw movenumber movecount score`, `-resign movecount score
twosided`. Scores are engines' own, in centipawns, from the mover's point of view; a move without a
score breaks any series, so players that give none are never adjudicated by score.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from arena.records import Result, Termination

_STRICT = {"extra": "forbid"}  # an unknown key in a config is an error

AtCap = Literal["cut_short", "material", "points", "draw", "referee"]


@dataclass(frozen=True, slots=True)
class DrawRule:
    """A draw once `movecount` full moves in a row stood within ±score, from `movenumber` on."""

    __pydantic_config__: ClassVar = _STRICT
    movenumber: int = 40
    movecount: int = 8
    score: int = 10

    def __post_init__(self) -> None:
        if self.movecount < 1 or self.movenumber < 0 or self.score < 0:
            raise ValueError("movecount is 1 or more, movenumber and score 0 or more")


@dataclass(frozen=True, slots=True)
class ResignRule:
    """A loss for the side that stood at −score or worse for `movecount` of its moves in a row.

    `twosided`: the other side must have seen it too, at +score or better.
    """

    __pydantic_config__: ClassVar = _STRICT
    movecount: int = 3
    score: int = 600
    twosided: bool = True

    def __post_init__(self) -> None:
        if self.movecount < 1 or self.score < 1:
            raise ValueError("movecount and score are 1 or more")


@dataclass(frozen=True, slots=True)
class Verdict:
    """An end that the arena declares."""

    result: Result
    termination: Termination
    detail: str


class DrawTracker:
    """Counts plies in a row with scores near nought."""

    def __init__(self, rule: DrawRule) -> None:
        self._rule = rule
        self._quiet = 0

    def update(self, score_cp: int | None) -> None:
        near = score_cp is not None and abs(score_cp) <= self._rule.score
        self._quiet = self._quiet + 1 if near else 0

    def holds(self, plies: int) -> bool:
        return plies >= 2 * self._rule.movenumber and self._quiet >= 2 * self._rule.movecount


class ResignTracker:
    """Counts moves in a row on which one side stood lost."""

    def __init__(self, rule: ResignRule) -> None:
        self._rule = rule
        self._lost = [0, 0]
        self._won = [0, 0]

    def update(self, side: int, score_cp: int | None) -> None:
        score = self._rule.score
        lost = score_cp is not None and score_cp <= -score
        won = score_cp is not None and score_cp >= score
        self._lost[side] = self._lost[side] + 1 if lost else 0
        self._won[side] = self._won[side] + 1 if won else 0

    def loser(self) -> int | None:
        need = self._rule.movecount
        for side in (0, 1):
            seen = not self._rule.twosided or self._won[1 - side] >= need
            if self._lost[side] >= need and seen:
                return side
        return None


def at_cap(how: AtCap, material: tuple[float, float], sides: tuple[str, str], cap: int) -> Verdict:
    """What a game that reached the arena's cap of plies is called, and whether it counts.

    `cut_short` is shown and not rated; `material` and `points` give the game to the side with more.
    """
    first, second = material
    if how == "cut_short":
        return Verdict("*", Termination.CUT_SHORT, f"cut short at {cap} plies, not rated")
    if how == "draw":
        return Verdict("1/2-1/2", Termination.ADJUDICATED_DRAW, f"draw at the cap of {cap} plies")
    termination = {
        "material": Termination.ADJUDICATED_MATERIAL,
        "points": Termination.ADJUDICATED_POINTS,
    }[how]
    count = f"{how} {first:g} v {second:g} at the cap of {cap} plies"
    if first == second:
        return Verdict("1/2-1/2", termination, f"draw by {count}")
    winner = sides[0] if first > second else sides[1]
    return Verdict(
        "1-0" if first > second else "0-1", termination, f"{winner.capitalize()} wins by {count}"
    )


def by_referee(
    name: str, score_cp: int, win_cp: int, side: int, sides: tuple[str, str], cap: int
) -> Verdict:
    """What a game at the cap is called by an engine's score, from the view of `side` to move."""
    first = -score_cp if side else score_cp
    figure = f"{first / 100:+.2f}".replace("-", "−")
    words = f"{name} at the cap of {cap} plies ({figure})"
    if abs(first) < win_cp:
        return Verdict("1/2-1/2", Termination.ADJUDICATED_REFEREE, f"draw by {words}")
    winner = sides[0] if first > 0 else sides[1]
    result: Result = "1-0" if first > 0 else "0-1"
    detail = f"{winner.capitalize()} wins by {words}"
    return Verdict(result, Termination.ADJUDICATED_REFEREE, detail)


class Adjudicator:
    """All the arena's own ends of one game, in order: draw by score, loss by score, the cap.

    A cap that a referee judges is left to who can ask it.
    """

    def __init__(
        self,
        draw: DrawRule | None = None,
        resign: ResignRule | None = None,
        max_plies: int | None = None,
        how: AtCap = "cut_short",
    ) -> None:
        self._draw = DrawTracker(draw) if draw else None
        self._resign = ResignTracker(resign) if resign else None
        self._max_plies = max_plies
        self._how = how

    @property
    def scores(self) -> bool:
        """Whether scores can end the game."""
        return self._draw is not None or self._resign is not None

    def update(self, side: int, score_cp: int | None) -> None:
        """Take the score that came with a move of `side`."""
        if self._draw is not None:
            self._draw.update(score_cp)
        if self._resign is not None:
            self._resign.update(side, score_cp)

    def verdict(
        self, plies: int, material: Callable[[], tuple[float, float]], sides: tuple[str, str]
    ) -> Verdict | None:
        """The end that holds after `plies`, if one does."""
        if self._draw is not None and self._draw.holds(plies):
            return Verdict("1/2-1/2", Termination.ADJUDICATED_DRAW, "draw by adjudication")
        loser = self._resign.loser() if self._resign is not None else None
        if loser is not None:
            detail = f"{sides[1 - loser].capitalize()} wins by adjudication"
            return Verdict("0-1" if loser == 0 else "1-0", Termination.ADJUDICATED_RESIGN, detail)
        capped = self._max_plies is not None and plies >= self._max_plies
        if self._max_plies is not None and capped and self._how != "referee":
            return at_cap(self._how, material(), sides, self._max_plies)
        return None
