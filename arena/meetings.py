"""Slots and their results → who met whom in which round, and with what score. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.records import Result, Slot

POINTS: Mapping[str, tuple[float, float]] = {
    "1-0": (1.0, 0.0),
    "0-1": (0.0, 1.0),
    "1/2-1/2": (0.5, 0.5),
    "*": (0.0, 0.0),
}
"""A game that was cut short counts for nobody."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two players over all their pairs of one round. `one` had the first move first."""

    one: str
    other: str
    score_one: float
    score_other: float
    num_pairs: int

    @property
    def tied(self) -> bool:
        return self.score_one == self.score_other


def meetings_by_round(slots: Sequence[Slot], results: Mapping[int, Result]) -> list[list[Meeting]]:
    """Meetings by round, in the order of their slots; every slot has a result."""
    rounds: dict[int, dict[frozenset[str], list[Slot]]] = {}
    for slot in sorted(slots, key=lambda slot: slot.id):
        met = rounds.setdefault(slot.round, {})
        met.setdefault(frozenset((slot.first, slot.second)), []).append(slot)
    return [
        [_meeting(games, results) for games in met.values()] for _, met in sorted(rounds.items())
    ]


def _meeting(games: Sequence[Slot], results: Mapping[int, Result]) -> Meeting:
    one, other = games[0].first, games[0].second
    score = {one: 0.0, other: 0.0}
    for slot in games:
        first, second = POINTS[results[slot.id]]
        score[slot.first] += first
        score[slot.second] += second
    return Meeting(one, other, score[one], score[other], len({slot.pair for slot in games}))
