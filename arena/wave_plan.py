"""What `--dry-run` says of models that may not fit together: measured costs, then a forecast."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.base import AgentError
from agents.factory import model_costs, rehearsed
from agents.memory import ModelCost
from arena.config import Config
from arena.records import Slot
from arena.waves import Cost, Forecast, Meeting, forecast

USUAL_PLIES = 80  # of a game without a cap
MOST_MEASURED = 32  # games of the measured batch


@dataclass(frozen=True, slots=True)
class WavePlan:
    """`forecast` None: all weights fit together."""

    costs: tuple[ModelCost, ...]
    weights_bytes: int
    num_in_flight: int
    forecast: Forecast | None


def plan_waves(
    config: Config, slots: Sequence[Slot], tell: Callable[[str], None]
) -> WavePlan | None:
    """None: no limit is set. Where models do not fit together, loads and times each (`tell` says
    so first). Raises AgentError: a model is not here or never fits."""
    limit = config.memory.weights_bytes
    if limit is None:
        return None
    costs = model_costs(config.players)
    in_flight = min(config.run.concurrency, len(slots))
    for cost in costs:
        if cost.weights_bytes > limit:
            raise AgentError(
                f"{cost.name}: [memory] weights_bytes is {limit}, its weights take "
                f"{cost.weights_bytes}: set it to that or more"
            )
    if sum(cost.weights_bytes for cost in costs) <= limit:
        return WavePlan(costs, limit, in_flight, None)
    tell("the models do not fit together: loading each once to time it")
    costs = rehearsed(costs, config.players, max(1, min(MOST_MEASURED, in_flight)))
    number = {name: str(i) for i, cost in enumerate(costs) for name in cost.players}
    timed = {
        str(i): Cost(cost.weights_bytes, cost.swap_s or 0.0, cost.move_s or 0.0)
        for i, cost in enumerate(costs)
    }
    meetings = [
        Meeting(
            (number.get(slot.first), number.get(slot.second)),
            config.games[slot.section].max_plies or USUAL_PLIES,
        )
        for slot in slots
    ]
    found = forecast(meetings, timed, limit, max(1, in_flight))
    return WavePlan(costs, limit, in_flight, found)


def wave_lines(plan: WavePlan) -> list[str]:
    """What a person reads of it."""
    together = sum(cost.weights_bytes for cost in plan.costs)
    sizes = ", ".join(f"{cost.name} {_mb(cost.weights_bytes)}" for cost in plan.costs)
    if plan.forecast is None:
        return [f"models: {sizes}: they fit together under {_mb(plan.weights_bytes)}"]
    lines = [f"models: {sizes}: {_mb(together)} do not fit under {_mb(plan.weights_bytes)}"]
    lines += [
        f"  {cost.name}: a swap {cost.swap_s:.2f} s, a move {cost.move_s:.3f} s in a full batch "
        "(measured now)"
        for cost in plan.costs
        if cost.swap_s is not None and cost.move_s is not None
    ]
    seen = plan.forecast
    if seen.moves_per_swap is None:
        return lines
    lines.append(
        f"waves of {plan.num_in_flight} games: about {seen.moves_per_swap:.0f} moves a swap, swaps "
        f"{seen.swap_share:.0%} of the time, {seen.games_per_hour:.0f} games an hour (an estimate)"
    )
    return lines


def _mb(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.1f} MB"
