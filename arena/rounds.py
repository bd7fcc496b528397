"""Knockout and Swiss: the next round from the results so far.

Pure: everything is computed from the slots of a section and their results, so that a resumed run
pairs as an uninterrupted one. A round is paired when every game of the one before has a result.
Two players' meeting is `pairs` colour-swapped pairs; who scores more wins it. Games that were cut
short count for nobody.

Knockout: seeds as listed, byes for the first ones; a tied meeting adds `TIE_PAIRS` pairs, and then
the player that was listed first goes on. Swiss: the FIDE Dutch system of py4swiss, a meeting being
one game of it; a bye counts as won.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from arena.meetings import Meeting, meetings_by_round
from arena.records import Result, Slot
from arena.schedule import TIE_PAIRS, Base, Pairing, SectionPlan, make_pair
from arena.swiss import swiss


class Rounds(Protocol):
    """A section whose later slots follow from results."""

    @property
    def section(self) -> int: ...

    @property
    def players(self) -> tuple[str, ...]: ...

    def record(self, slot: Slot, result: Result) -> None: ...

    def due(self) -> list[Slot]:
        """Slots that the results so far have made due and that were not given before."""


def next_slots(
    plan: SectionPlan,
    section: int,
    base: Base,
    slots: Sequence[Slot],
    results: Mapping[int, Result],
) -> list[Slot]:
    """What is to be played next, given all slots of the section so far and results by slot id.

    Empty while a game of the last round has no result, and when the section is over.
    """
    if any(slot.id not in results for slot in slots):
        return []
    rounds = meetings_by_round(slots, results)
    used = len({slot.pair for slot in slots})
    if plan.format == "knockout" and rounds:
        tied = [m for m in rounds[-1] if m.tied and m.num_pairs == plan.pairs]
        if tied and TIE_PAIRS:
            again = [(meeting.one, meeting.other) for meeting in tied]
            return _paired(plan, section, base, used, again, len(rounds), plan.pairs, TIE_PAIRS)
    pairings = _knockout(plan, rounds) if plan.format == "knockout" else swiss(plan, rounds)
    return _paired(plan, section, base, used, pairings, len(rounds) + 1, 0, plan.pairs)


def _paired(
    plan: SectionPlan,
    section: int,
    base: Base,
    used: int,
    pairings: Sequence[Pairing],
    round_: int,
    first_cycle: int,
    num_pairs: int,
) -> list[Slot]:
    made: list[Slot] = []
    for pairing in pairings:
        for cycle in range(first_cycle, first_cycle + num_pairs):
            made += make_pair(plan, section, base, used, pairing, cycle, round_)
            used += 1
    return made


def _knockout(plan: SectionPlan, rounds: Sequence[Sequence[Meeting]]) -> list[Pairing]:
    """Pairings of the next round; none when one player is left."""
    seeds = {name: number for number, name in enumerate(plan.players)}
    alive = list(plan.players)
    for meetings in rounds:
        for meeting in meetings:
            alive.remove(_loser(meeting, seeds))
    bracket = _bracket(len(plan.players), len(rounds))
    groups = [[name for name in alive if seeds[name] in group] for group in bracket]
    pairs = [sorted(group, key=seeds.__getitem__) for group in groups if len(group) == 2]
    return [(one, other) for one, other in pairs]


def _loser(meeting: Meeting, seeds: Mapping[str, int]) -> str:
    if meeting.tied:
        return max(meeting.one, meeting.other, key=seeds.__getitem__)
    return meeting.other if meeting.score_one > meeting.score_other else meeting.one


def _bracket(num_players: int, num_rounds: int) -> list[set[int]]:
    """Seeds whose survivors meet in the round after `num_rounds`: 1 v 8, 4 v 5, 2 v 7, 3 v 6 …"""
    order = [0]
    while len(order) < num_players:
        size = 2 * len(order)
        order = [seed for top in order for seed in (top, size - 1 - top)]
    width = 2 ** (num_rounds + 1)
    return [set(order[start : start + width]) for start in range(0, len(order), width)]


class SectionRounds:
    """The rounds of one section while a run is played: `record` results, play what is `due`."""

    def __init__(
        self,
        plan: SectionPlan,
        section: int,
        base: Base,
        slots: Sequence[Slot],
        results: Mapping[int, Result],
    ) -> None:
        """`slots` and `results` are those of the whole run so far."""
        self._plan = plan
        self._section = section
        self._base = base
        self._slots = [slot for slot in slots if slot.section == section]
        self._results = {slot.id: results[slot.id] for slot in self._slots if slot.id in results}

    @property
    def section(self) -> int:
        return self._section

    @property
    def players(self) -> tuple[str, ...]:
        return self._plan.players

    def record(self, slot: Slot, result: Result) -> None:
        self._results[slot.id] = result

    def due(self) -> list[Slot]:
        """Slots that the results so far have made due and that were not given before."""
        slots = next_slots(self._plan, self._section, self._base, self._slots, self._results)
        self._slots += slots
        return slots
