"""Who plays whom: a pure generator of slots.

Knows nothing about agents, clocks or databases. The same configuration gives the same slots with
the same ids for ever, so a resumed run finds its open ones. A pair is two slots with the same start
and colours swapped; the k-th pair of every pairing starts alike, so all players meet the same
openings. Formats whose later rounds need results (knockout, swiss) are made round by round by
`arena.rounds`, the pairs of a sequential test by `arena.sprt_rounds`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from arena.records import Slot
from arena.sprt import Sprt

Pairing = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a pair starts: a FEN, a janggi set-up, or neither (the game's own start)."""

    fen: str = ""
    setup: str = ""


@dataclass(frozen=True, slots=True)
class SectionPlan:
    """One section as the generator needs it: names and numbers, no models."""

    game: str
    rules: str
    format: str
    players: tuple[str, ...]
    pairs: int = 1
    swap: bool = True
    starts: tuple[Start, ...] = field(default=(Start(),))
    rounds: int = 1  # swiss only
    sprt: Sprt | None = None  # sprt only
    ahead: int = 1  # sprt: pairs on their way beyond the last one that counts

    @property
    def games_a_pair(self) -> int:
        return 2 if self.swap else 1


@dataclass(frozen=True, slots=True)
class Base:
    """Where the numbers of a section begin: its first slot and its first pair."""

    slot: int
    pair: int


DYNAMIC = frozenset({"knockout", "swiss", "sprt"})
TIE_PAIRS = 1
"""Pairs that a tied knockout meeting may add; then the player that was listed first goes on."""


def schedule(sections: Sequence[SectionPlan]) -> tuple[Slot, ...]:
    """Every slot of the sections whose pairings need no results, in the order they should start."""
    slots: list[Slot] = []
    for index, (plan, base) in enumerate(zip(sections, bases(sections), strict=True)):
        if plan.format not in DYNAMIC:
            for number, (round_, cycle, pairing) in enumerate(pairings(plan)):
                slots += make_pair(plan, index, base, number, pairing, cycle, round_)
    return tuple(slots)


def bases(sections: Sequence[SectionPlan]) -> list[Base]:
    """Numbers do not depend on results: a section has room for every game it may come to."""
    found: list[Base] = []
    slot = pair = 1
    for plan in sections:
        found.append(Base(slot, pair))
        room = num_pairs(plan)
        slot += room * plan.games_a_pair
        pair += room
    return found


def num_pairs(plan: SectionPlan) -> int:
    """Pairs that a section can come to at most."""
    if plan.format == "knockout":
        return num_meetings(plan) * (plan.pairs + TIE_PAIRS)
    if plan.sprt is not None:
        return plan.sprt.max_pairs
    return num_meetings(plan) * plan.pairs if plan.format == "swiss" else len([*pairings(plan)])


def num_meetings(plan: SectionPlan) -> int:
    """Meetings of two players in all rounds of a section whose pairings need results."""
    size = len(plan.players)
    return size - 1 if plan.format == "knockout" else plan.rounds * (size // 2)


def num_starts(plan: SectionPlan) -> int:
    """Starts that the pairs of one pairing can come to use, each in turn."""
    if plan.sprt is not None:
        return plan.sprt.max_pairs
    if plan.format == "knockout":
        return plan.pairs + TIE_PAIRS
    return plan.pairs * (2 if plan.format == "double_round_robin" else 1)


def expected_games(plan: SectionPlan) -> int:
    """Games of a section if no knockout meeting is tied and a sequential test never decides."""
    if plan.format in DYNAMIC and plan.sprt is None:
        return num_meetings(plan) * plan.pairs * plan.games_a_pair
    return num_pairs(plan) * plan.games_a_pair


def make_pair(
    plan: SectionPlan,
    section: int,
    base: Base,
    number: int,
    pairing: Pairing,
    cycle: int,
    round_: int,
) -> list[Slot]:
    """The slots of the `number`-th pair of a section (from 0): two with colours swapped, or a
    single game where swap is off. `cycle` says which start."""
    start = plan.starts[cycle % len(plan.starts)]
    first, second = pairing
    colours = [(first, second), (second, first)][: plan.games_a_pair]
    return [
        Slot(
            id=base.slot + number * plan.games_a_pair + offset,
            game=plan.game,
            rules=plan.rules,
            first=white,
            second=black,
            pair=base.pair + number,
            opening=start.fen,
            setup=start.setup,
            round=round_,
            section=section,
        )
        for offset, (white, black) in enumerate(colours)
    ]


def pairings(plan: SectionPlan) -> Iterator[tuple[int, int, Pairing]]:
    """(round from 1, pair number within its pairing from 0, the two players).

    Single games (swap off) alternate the colours of a pairing from cycle to cycle.
    """
    cycles = plan.pairs * (2 if plan.format == "double_round_robin" else 1)
    rounds = _gauntlet(plan.players) if plan.format == "gauntlet" else round_robin(plan.players)
    for cycle in range(cycles):
        for number, pairs in enumerate(rounds):
            for one, other in pairs:
                turned = not plan.swap and cycle % 2 == 1
                yield (
                    cycle * len(rounds) + number + 1,
                    cycle,
                    (other, one) if turned else (one, other),
                )


def round_robin(players: Sequence[str]) -> list[list[Pairing]]:
    """Rounds of the circle method: each two players meet once, nobody plays twice in a round, and
    nobody has two more first moves than second ones (or the other way round)."""
    odd = len(players) - 1 + len(players) % 2  # seats that turn; an odd number
    rounds: list[list[Pairing]] = []
    for number in range(odd):
        pairs = [(number, odd)] if odd < len(players) else []
        for step in range(1, odd // 2 + 1):
            pairs.append(((number - step) % odd, (number + step) % odd))
        rounds.append([_seated(players, one, other, odd) for one, other in pairs])
    return rounds


def _seated(players: Sequence[str], one: int, other: int, odd: int) -> Pairing:
    """Who moves first: on the circle the one with the shorter way to the other; the player at the
    centre (seat `odd`) alternates."""
    turned = one % 2 == 1 if other == odd else (other - one) % odd > odd // 2
    return (players[other], players[one]) if turned else (players[one], players[other])


def _gauntlet(players: Sequence[str]) -> list[list[Pairing]]:
    """The first player against each of the others, one a round; the others never meet."""
    head, *rest = players
    return [
        [(head, other) if number % 2 == 0 else (other, head)] for number, other in enumerate(rest)
    ]
