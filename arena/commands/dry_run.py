"""What `--dry-run` prints: the schedule, what it will come to, what a person should know first."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import is_url, print_json, say, warn

if TYPE_CHECKING:
    from arena.config import Config
    from arena.estimate import Estimate
    from arena.plan import Plan


def print_plan(config: "Config", as_json: bool) -> None:
    """The schedule as it would be played: one slot a line, or JSON."""
    from dataclasses import asdict

    from arena.estimate import estimate_lines
    from arena.plan import make_plan
    from arena.wave_plan import plan_waves, wave_lines

    plan = make_plan(config)
    for warning in (*plan.warnings, *_repeats(config, plan)):
        warn(warning)
    waves = plan_waves(config, plan.slots, warn)
    found = _estimate(config, plan)
    if as_json:
        told: dict[str, Any] = {"waves": asdict(waves)} if waves is not None else {}
        told |= {"estimate": asdict(found)}
        print_json({"slots": [asdict(slot) for slot in plan.slots], **told})
        return
    for slot in plan.slots:
        start = slot.setup or slot.opening
        say(f"{slot.id:>5}  {slot.game}  {slot.first} vs {slot.second}  {start}".rstrip())
    later = plan.num_games - len(plan.slots)
    more = f" and up to {later} that follow from results" if later else ""
    say(f"{len(plan.slots)} games{more}, {config.run.concurrency} in flight at most")
    for line in estimate_lines(found, config):
        say(line)
    for line in wave_lines(waves) if waves is not None else ():
        say(line)


def _repeats(config: "Config", plan: "Plan") -> list[str]:
    """Warnings of players who would repeat their games; those on a model are not made for it."""
    from agents.base import AgentError
    from agents.factory import create_agents
    from agents.spec import LlmSpec
    from arena.plan import repeat_warnings

    light = [spec for spec in config.players if not isinstance(spec, LlmSpec)]
    try:
        players = create_agents(light)
    except AgentError:  # something to install is missing: `arena run` says so
        return []
    return list(repeat_warnings(plan, [agent.info for agent in players.values()]))


def _estimate(config: "Config", plan: "Plan") -> "Estimate":
    """By the database that the run would be written to, where there is one."""
    from arena.estimate import estimate
    from arena.store import Store

    if not is_url(config.run.db) and not Path(config.run.db).exists():
        return estimate(config, plan, None)
    with Store.open(config.run.db, create=False) as store:
        return estimate(config, plan, store)
