"""`arena extend`: new players for a recorded run, and only the slots they bring.

Each new player meets everybody in the sections that all players take part in, as a round robin from
the start would have had it, from the same positions. Nothing that is recorded changes; numbers go
on after the last ones. Pure but for agents being made (not started) to describe themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.base import AgentInfo
from agents.factory import create_agents
from agents.naming import name_players
from agents.spec import AgentSpec
from arena.config import Config, ConfigError
from arena.plan import make_plan
from arena.records import Slot
from arena.schedule import DYNAMIC, Base, make_pair, pairings


@dataclass(frozen=True, slots=True)
class Extension:
    """What a run gains."""

    config: Config
    players: tuple[AgentInfo, ...]  # the new ones
    slots: tuple[Slot, ...]


def extend(config: Config, slots: Sequence[Slot], added: Sequence[AgentSpec]) -> Extension:
    """The run with new players; `slots` are those it has. Raises ConfigError, AgentError."""
    for section in config.games:
        if section.format in DYNAMIC:
            raise ConfigError(
                f"{section.label}: a {section.format} section cannot be extended once it is "
                "recorded: start a new run"
            )
    try:
        specs = name_players([*config.players, *added])
    except ValueError as error:
        raise ConfigError(str(error)) from None
    longer = config.model_copy(update={"players": specs})
    new = [spec.name for spec in specs[len(config.players) :]]
    made = _slots(longer, slots, set(new))
    if not made:
        raise ConfigError("every section of this run names its players: none takes new ones")
    agents = create_agents(specs, run_seed=config.run.seed)
    return Extension(longer, tuple(agents[name].info for name in new), tuple(made))


def _slots(config: Config, slots: Sequence[Slot], new: set[str]) -> list[Slot]:
    made: list[Slot] = []
    for index, plan in enumerate(make_plan(config).sections):
        if config.games[index].players:
            continue
        met = [
            (round_, cycle, pairing)
            for round_, cycle, pairing in pairings(plan)
            if new & set(pairing)
        ]
        base = _after([*slots, *made])
        for number, (round_, cycle, pairing) in enumerate(met):
            made += make_pair(plan, index, base, number, pairing, cycle, round_)
    return made


def _after(slots: Sequence[Slot]) -> Base:
    return Base(
        max((slot.id for slot in slots), default=0) + 1,
        max((slot.pair for slot in slots), default=0) + 1,
    )
