"""Swiss pairings by the FIDE Dutch system of py4swiss, which is imported when they are needed.

A meeting of two players is one game of that system: whoever scored more in it has won. A player
that sits out has won too, once at most. Starting numbers are the order of the players.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from arena.config import ConfigError
from arena.meetings import Meeting
from arena.schedule import Pairing, SectionPlan

if TYPE_CHECKING:
    from py4swiss.trf.results import RoundResult
    from py4swiss.trf.sections import PlayerSection


def swiss(plan: SectionPlan, rounds: Sequence[Sequence[Meeting]]) -> list[Pairing]:
    """Pairings of the next round; none when all rounds are played. Raises ConfigError."""
    if len(rounds) >= plan.rounds:
        return []
    try:
        from py4swiss.engines import DutchEngine
        from py4swiss.engines.common import PairingError
        from py4swiss.trf import ParsedTrf
        from py4swiss.trf.sections import XSection
    except ImportError:
        raise ConfigError(
            "format = 'swiss' needs py4swiss: pip install 'madang[swiss]', or use round_robin"
        ) from None
    history = ParsedTrf(
        player_sections=_players(plan, rounds), x_section=XSection(number_of_rounds=plan.rounds)
    )
    try:
        pairs = [(pair.white, pair.black) for pair in DutchEngine.generate_pairings(history)]
    except PairingError:
        raise ConfigError(
            f"{len(plan.players)} players cannot be paired for {plan.rounds} rounds without "
            "meeting twice: use fewer rounds, or round_robin"
        ) from None
    names = ("", *plan.players)  # number 0 sits out
    return [(names[white], names[black]) for white, black in pairs if white and black]


def _players(plan: SectionPlan, rounds: Sequence[Sequence[Meeting]]) -> "list[PlayerSection]":
    """Every player's history as py4swiss wants it: one result a round, points times ten."""
    from py4swiss.trf.codes import PlayerCode
    from py4swiss.trf.sections import PlayerSection

    results = _results(plan.players, rounds)
    points = {name: sum(map(_points, history)) for name, history in results.items()}
    ranked = sorted(plan.players, key=lambda name: -points[name])
    return [
        PlayerSection(
            code=PlayerCode.PLAYER,
            starting_number=number,
            points_times_ten=points[name],
            rank=ranked.index(name) + 1,
            results=results[name],
        )
        for number, name in enumerate(plan.players, 1)
    ]


def _results(
    players: Sequence[str], rounds: Sequence[Sequence[Meeting]]
) -> "dict[str, list[RoundResult]]":
    from py4swiss.trf.results import ColorToken, ResultToken, RoundResult

    number = {name: index for index, name in enumerate(players, 1)}
    bye = RoundResult(
        id=0, color=ColorToken.BYE_OR_NOT_PAIRED, result=ResultToken.PAIRING_ALLOCATED_BYE
    )
    results: dict[str, list[RoundResult]] = {name: [] for name in players}
    for meetings in rounds:
        for meeting in meetings:
            ends = [ResultToken.DRAW, ResultToken.DRAW]
            if not meeting.tied:
                ends = [ResultToken.WIN, ResultToken.LOSS]
                if meeting.score_one < meeting.score_other:
                    ends.reverse()
            one, other = number[meeting.one], number[meeting.other]
            results[meeting.one].append(
                RoundResult(id=other, color=ColorToken.WHITE, result=ends[0])
            )
            results[meeting.other].append(
                RoundResult(id=one, color=ColorToken.BLACK, result=ends[1])
            )
        seated = {name for meeting in meetings for name in (meeting.one, meeting.other)}
        for name in players:
            if name not in seated:
                results[name].append(bye)
    return results


def _points(result: "RoundResult") -> int:
    """Points times ten, as in FIDE's own system."""
    return {"1": 10, "U": 10, "=": 5}.get(result.result.value, 0)
