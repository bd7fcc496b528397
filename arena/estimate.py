"""What a run will come to before it is played: moves, tokens, time, memory. Estimates, named so.

Three sources, the better first: what the same players did in the database that is to be written,
what their configuration bounds (caps, token limits), and prompts rendered in the middle of a random
game, taken at `CHARACTERS` a token. What none of them tells is not made up.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.base import AgentError
from agents.factory import model_costs
from agents.prompt import render_prompt
from agents.spec import EndpointSpec, LlmSpec
from arena.budget import Budget
from arena.config import Config, SectionConfig
from arena.plan import Plan
from arena.schedule import SectionPlan, expected_games
from arena.store import Store, queries
from arena.store.queries import Cost
from games.registry import get_game

CHARACTERS = 3.0  # a token, of prompts that were never sent
USUAL_PLIES = {"chess": 120, "janggi": 120}  # of a game without a cap and without a record
WALKED_TOKENS = 4  # of a move that is walked to or chosen
SAMPLE_SEED = 1


@dataclass(frozen=True, slots=True)
class Tokens:
    """Of one player in one section; `recorded` moves say so, 0: reckoned from its settings."""

    player: str
    prompt: float
    completion: float
    recorded: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """`seconds` None: these players have no run to go by. `weights`: model → bytes, None: not
    here."""

    games: int
    moves: float
    tokens: tuple[Tokens, ...]
    seconds: float | None
    pace_run: int | None  # the run that the pace is taken from
    weights: tuple[tuple[str, int], ...]
    missing: str = ""  # why the memory is not known


def estimate(config: Config, plan: Plan, store: Store | None) -> Estimate:
    """`store` None: nothing is recorded yet."""
    costs = queries.costs(store) if store is not None else []
    games = {section.game for section in config.games}
    plies = {game: _recorded_plies(store, game) for game in games}
    moves = 0.0
    tokens: list[Tokens] = []
    for section, drawn in zip(config.games, plan.sections, strict=True):
        length = plies[section.game] or float(USUAL_PLIES[section.game])
        length = min(length, section.max_plies or length)
        moves += expected_games(drawn) * length
        tokens += _tokens(config, section, drawn, length, costs)
    pace = _pace(store, {spec.name for spec in config.players})
    weights, missing = _weights(config)
    return Estimate(
        games=plan.num_games,
        moves=moves,
        tokens=tuple(tokens),
        seconds=moves / pace[1] if pace else None,
        pace_run=pace[0] if pace else None,
        weights=weights,
        missing=missing,
    )


def estimate_lines(found: Estimate, config: Config) -> Iterator[str]:
    """What a person reads of it."""
    yield f"about {found.moves:,.0f} moves in {found.games:,} games"
    prompt, answer = (sum(getattr(t, of) for t in found.tokens) for of in ("prompt", "completion"))
    if found.tokens:
        recorded = sum(t.recorded for t in found.tokens)
        basis = f"prompts at {CHARACTERS:g} characters a token, answers at most"
        if all(t.recorded for t in found.tokens):
            basis = f"by {recorded:,} recorded moves"
        yield f"tokens: about {prompt:,.0f} of prompts, {answer:,.0f} of answers ({basis})"
        yield from _cost_lines(found, config)
        budget = config.run.max_tokens
        if budget is not None and budget < prompt + answer:
            yield f"max_tokens = {budget:,} will end the run earlier, resumable"
    if found.seconds is None:
        yield "time: not known before a first run of these players in this database"
    else:
        yield f"time: about {_time(found.seconds)} at the pace of run {found.pace_run}"
    if found.weights:
        sizes = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in found.weights)
        yield f"memory: weights {sizes}, and the KV cache"
    if found.missing:
        yield f"memory: not known: {found.missing}"


def _cost_lines(found: Estimate, config: Config) -> Iterator[str]:
    """By the configuration's prices, if it has any."""
    run = config.run
    if not run.prices:
        return
    budget = Budget(prices=run.prices)
    for one in found.tokens:
        budget.spend(one.player, round(one.prompt), round(one.completion))
    yield f"cost: about {budget.cost:,.2f} by the given prices"
    if run.max_cost is not None and run.max_cost < budget.cost:
        yield f"max_cost = {run.max_cost:g} will end the run earlier, resumable"


def _tokens(
    config: Config,
    section: SectionConfig,
    drawn: SectionPlan,
    length: float,
    costs: Sequence[Cost],
) -> Iterator[Tokens]:
    """Each player's share: everybody has about as many games."""
    share = 2 * expected_games(drawn) / len(drawn.players) * length / 2
    for spec in config.players:
        if spec.name not in drawn.players or not isinstance(spec, LlmSpec | EndpointSpec):
            continue
        known = [c for c in costs if (c.game, c.player) == (section.game, spec.name)]
        if known and known[0].moves:
            cost = known[0]
            yield Tokens(
                spec.name,
                share * cost.prompt_tokens / cost.moves,
                share * cost.completion_tokens / cost.moves,
                cost.moves,
            )
        else:
            prompt = _prompt_tokens(spec, drawn, round(length / 2))
            yield Tokens(spec.name, share * prompt, share * _answer_tokens(spec), 0)


def _answer_tokens(spec: LlmSpec | EndpointSpec) -> int:
    limits = {"free": spec.max_tokens, "think": spec.think_tokens + WALKED_TOKENS}
    return limits.get(spec.mode, WALKED_TOKENS)


def _prompt_tokens(spec: LlmSpec | EndpointSpec, drawn: SectionPlan, plies: int) -> float:
    """Of a prompt so many plies into a game of random moves."""
    start = drawn.starts[0]
    state = get_game(drawn.game).start(
        rules=drawn.rules, fen=start.fen or None, setup=start.setup or None
    )
    draw = random.Random(SAMPLE_SEED)
    for _ in range(plies):
        if state.outcome() is not None:
            break
        state = state.apply(draw.choice(state.legal_moves()))
    made = render_prompt(spec.template, state, notation=spec.notation, plies_left=None)
    return len(made.text) / CHARACTERS


def _recorded_plies(store: Store | None, game: str) -> float | None:
    """The mean length of the finished games of the database."""
    return queries.mean_plies(store, game) if store is not None else None


def _pace(store: Store | None, names: set[str]) -> tuple[int, float] | None:
    """(run, moves a second) of the last whole run with all these players."""
    if store is None:
        return None
    for run in reversed(queries.runs(store)):
        if run.finished is None or run.status != "finished" or run.finished <= run.created:
            continue
        if names <= {info.name for info in queries.players(store, run.id)}:
            moves = queries.run_status(store, run.id).moves
            return (run.id, moves / (run.finished - run.created)) if moves else None
    return None


def _weights(config: Config) -> tuple[tuple[tuple[str, int], ...], str]:
    if not any(isinstance(spec, LlmSpec) for spec in config.players):
        return (), ""
    try:
        return tuple((c.name, c.weights_bytes) for c in model_costs(config.players)), ""
    except AgentError as error:
        return (), str(error)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
