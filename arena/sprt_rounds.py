"""A match that ends once it has told its two players apart: pairs are added while the test goes on.

Pure, and the same as `arena.rounds` to those who play it. The test takes the pairs in their order,
not as they happen to end, so its decision does not depend on how many games are in flight. As many
pairs as fill the concurrency are on their way beyond the last one that counts; those are played out
when the decision falls, stand in the tables, and no longer change it. A pair with a game that was
cut short counts for nobody.
"""

from collections.abc import Mapping, Sequence

from arena.meetings import POINTS
from arena.records import Result, Slot
from arena.schedule import Base, SectionPlan, make_pair
from arena.sprt import Sequential


class SprtRounds:
    """The pairs of one section while a run is played: `record` results, play what is `due`."""

    def __init__(
        self,
        plan: SectionPlan,
        section: int,
        base: Base,
        slots: Sequence[Slot],
        results: Mapping[int, Result],
    ) -> None:
        """`slots` and `results` are those of the whole run so far."""
        assert plan.sprt is not None
        self._plan, self._section, self._base = plan, section, base
        self._pairs: list[list[Slot]] = []
        self._results = dict(results)
        self._next = 0  # the first pair that is not complete
        self.test = Sequential(plan.sprt)
        ours = sorted((s for s in slots if s.section == section), key=lambda slot: slot.id)
        for slot in ours:
            if not self._pairs or self._pairs[-1][0].pair != slot.pair:
                self._pairs.append([])
            self._pairs[-1].append(slot)
        self._advance()

    @property
    def section(self) -> int:
        return self._section

    @property
    def players(self) -> tuple[str, ...]:
        return self._plan.players

    def record(self, slot: Slot, result: Result) -> None:
        self._results[slot.id] = result
        self._advance()

    def due(self) -> list[Slot]:
        """Slots that were not given before: none once the test has decided."""
        due: list[Slot] = []
        wanted = min(self._next + self._plan.ahead, self.test.test.max_pairs)
        while self.test.verdict is None and len(self._pairs) < wanted:
            number = len(self._pairs)
            first, second = self._plan.players
            made = make_pair(
                self._plan, self._section, self._base, number, (first, second), number, number + 1
            )
            self._pairs.append(made)
            due += made
        return due

    def _advance(self) -> None:
        """Take every complete pair into the test, up to the first that is not."""
        while self._next < len(self._pairs):
            pair = self._pairs[self._next]
            if any(slot.id not in self._results for slot in pair):
                return
            self._next += 1
            if all(self._results[slot.id] != "*" for slot in pair):
                self.test.add(sum(self._points(slot) for slot in pair))

    def _points(self, slot: Slot) -> float:
        """Of the player under test in one game."""
        return POINTS[self._results[slot.id]][0 if slot.first == self._plan.players[0] else 1]
