"""A configuration → everything that will be played, before anything is played.

Reads the opening books (and so refuses a broken one), draws openings by the run's seed, makes the
slots, and says what a person should know first. Starts no agent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.base import AgentInfo, derive_seed
from agents.spec import EndpointSpec, LlmSpec, MqttSpec, UciSpec
from arena.config import Config, ConfigError, SectionConfig
from arena.openings import BUILTIN, BookError, builtin_book, pick, read_book
from arena.records import Result, Slot
from arena.rounds import Rounds, SectionRounds
from arena.schedule import DYNAMIC, SectionPlan, Start, bases, expected_games, num_starts, schedule
from arena.sprt_rounds import SprtRounds
from games.registry import get_game


@dataclass(frozen=True, slots=True)
class Plan:
    """`slots` are those known before play."""

    sections: tuple[SectionPlan, ...]
    slots: tuple[Slot, ...]
    warnings: tuple[str, ...]

    @property
    def num_games(self) -> int:
        """Games of the whole run, if no knockout is tied and no sequential test decides."""
        return sum(map(expected_games, self.sections))


def make_plan(config: Config) -> Plan:
    """Raises ConfigError for a broken book."""
    warnings: list[str] = []
    sections = tuple(
        _section(config, number, section, warnings) for number, section in enumerate(config.games)
    )
    warnings += _timing_warnings(config)
    slots = list(schedule(sections))
    for rounds in make_rounds(sections, (), {}):
        slots += rounds.due()
    return Plan(sections, tuple(sorted(slots, key=lambda slot: slot.id)), tuple(warnings))


def make_rounds(
    sections: Sequence[SectionPlan], slots: Sequence[Slot], results: Mapping[int, Result]
) -> list[Rounds]:
    """The sections whose rounds are paired by results, as they stand after those results."""
    return [
        (SprtRounds if plan.format == "sprt" else SectionRounds)(plan, number, base, slots, results)
        for number, (plan, base) in enumerate(zip(sections, bases(sections), strict=True))
        if plan.format in DYNAMIC
    ]


def with_positions(config: Config, plan: Plan) -> Config:
    """The configuration with its drawn openings written out, so that no later step reads a book."""
    games = tuple(
        section.model_copy(
            update={"positions": tuple(start.fen for start in drawn.starts[: num_starts(drawn)])}
        )
        if section.openings is not None
        else section
        for section, drawn in zip(config.games, plan.sections, strict=True)
    )
    return config.model_copy(update={"games": games})


def repeat_warnings(plan: Plan, players: Sequence[AgentInfo]) -> Iterator[str]:
    """Pairings that would play one game again and again, move for move."""
    fixed = {info.name for info in players if info.deterministic}
    for section in plan.sections:
        pairs = section.pairs if section.sprt is None else section.sprt.max_pairs
        repeats = pairs - len(section.starts)
        alike = sorted(fixed & set(section.players))
        if repeats <= 0 or len(alike) < 2:
            continue
        yield (
            f"{section.game}: {', '.join(alike)} always answer alike and {pairs} pairs "
            f"start from {len(section.starts)} position(s): their games will repeat; add openings"
        )


def _section(
    config: Config, number: int, section: SectionConfig, warnings: list[str]
) -> SectionPlan:
    game = get_game(section.game)
    return SectionPlan(
        game=section.game,
        rules=section.rules or next(iter(game.rule_sets)),
        format=section.format,
        players=config.section_players(section),
        pairs=section.pairs,
        swap=section.swap,
        starts=_starts(config.run.seed, number, section, warnings),
        rounds=section.rounds or 1,
        sprt=section.sprt,
        ahead=-(-config.run.concurrency // 2),
    )


def _starts(
    seed: int, number: int, section: SectionConfig, warnings: list[str]
) -> tuple[Start, ...]:
    if section.setups:
        return tuple(Start(setup=setup) for setup in section.setups)
    if section.positions:
        return _written_out(section)
    if section.openings is None:
        return (Start(),)
    wanted = section.openings
    game = get_game(section.game)
    try:
        path = builtin_book(game) if wanted.file == BUILTIN else wanted.file
        book = read_book(path, game, wanted.plies)
    except BookError as error:
        raise ConfigError(str(error)) from None
    warnings += book.warnings
    drawn = pick(book, wanted.order, wanted.start, derive_seed(seed, "openings", number))
    return tuple(Start(fen=opening.fen) for opening in drawn)


def _written_out(section: SectionConfig) -> tuple[Start, ...]:
    game = get_game(section.game)
    for fen in section.positions:
        try:
            game.start(fen=fen)
        except ValueError as error:
            raise ConfigError(f"{section.label}: positions: {error}") from None
    return tuple(Start(fen=fen) for fen in section.positions)


def _timing_warnings(config: Config) -> Iterator[str]:
    """What makes a run depend on the machine's speed."""
    for spec in config.players:
        if isinstance(spec, UciSpec) and spec.movetime is not None:
            yield f"{spec.name}: movetime is timing-dependent: not reproducible"
        if isinstance(spec, LlmSpec | EndpointSpec | MqttSpec) and spec.policy.seconds is not None:
            yield f"{spec.name}: policy.seconds is timing-dependent: not reproducible"
    for section in config.games:
        if section.tc not in {"inf", "infinite"}:
            yield f"{section.label}: tc = {section.tc!r} is timing-dependent: not reproducible"
