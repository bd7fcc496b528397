"""Is a player fit for a tournament? It starts, plays short games against random moves, and its
faults are counted; of an endpoint also what `agents.probe` asks.

A `fail` is what would cost games: no start, a cut prompt, an ignored constraint, a game without a
result, an engine or a remote player that dies, stalls or breaks the rules. A model that answers
illegally or unreadably is a warning: that is how it plays. Stores nothing.
"""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from agents.base import Agent, AgentError, Attempt, Check, CountsFaults
from agents.factory import create_agents
from agents.spec import AgentSpec, EndpointSpec, RandomSpec
from arena import match
from arena.records import PROTOCOL_ENDS, GameRecord, MoveRecord, Slot, Status, Termination
from games.base import Side
from games.registry import GAMES, get_game

OPPONENT = "random opponent"
SEED = 1
ITS_OWN = frozenset({"llm", "endpoint", "human"})
"""Kinds whose illegal or unreadable answers are a way to play, not a broken protocol."""
BROKEN = frozenset({Termination.CRASH, Termination.STALL, Termination.TIME})
GOOD = frozenset({"move", "resign", "draw_offer"})


@dataclass(frozen=True, slots=True)
class Options:
    """`games` empty: every game; then one it does not play is no fault."""

    games: tuple[str, ...] = ()
    plies: int = 12
    move_s: float = 120.0
    context: int = 2048  # prompt tokens that an endpoint should read


@dataclass(frozen=True, slots=True)
class Played:
    """One short game from the player's side."""

    game: str
    side: str
    record: GameRecord
    moves: tuple[MoveRecord, ...]  # its own

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        made = [attempt for move in self.moves for attempt in move.attempts]
        return (*made, *self.record.failed_attempts)

    def summary(self) -> dict[str, object]:
        """As JSON."""
        record = self.record
        return {
            "game": self.game,
            "side": self.side,
            "plies": record.plies,
            "result": record.result,
            "termination": record.termination,
            "detail": record.detail,
            "answers": dict(Counter(attempt.kind for attempt in self.attempts)),
            "seconds": [round(move.seconds, 4) for move in self.moves],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found of one player."""

    player: str
    checks: tuple[Check, ...]
    games: tuple[Played, ...]

    @property
    def fit(self) -> bool:
        return all(check.state != "fail" for check in self.checks)

    def as_json(self) -> dict[str, object]:
        return {
            "player": self.player,
            "fit": self.fit,
            "checks": [asdict(check) for check in self.checks],
            "games": [game.summary() for game in self.games],
        }


async def check_player(
    spec: AgentSpec, options: Options, tell: Callable[[Check], None] = lambda _: None
) -> Report:
    """Check one player; `tell` hears each finding as it is made. Raises only on our own bugs."""
    return await _Checkup(spec, options, tell).run()


class _Checkup:
    def __init__(self, spec: AgentSpec, options: Options, tell: Callable[[Check], None]) -> None:
        self._spec, self._options, self._tell = spec, options, tell
        self._checks: list[Check] = []
        self._played: list[Played] = []

    def _found(self, check: Check) -> None:
        self._checks.append(check)
        self._tell(check)

    async def run(self) -> Report:
        agents = create_agents([self._spec, RandomSpec(name=OPPONENT)], run_seed=SEED)
        name = next(iter(agents))
        try:
            if await self._starts(agents[name]):
                if isinstance(self._spec, EndpointSpec):
                    await self._probe(self._spec)
                for game in self._options.games or tuple(GAMES):
                    await self._play(game, agents[name], agents[OPPONENT])
                self._faults(agents[name])
        finally:
            await agents.close()
        return Report(name, tuple(self._checks), tuple(self._played))

    async def _starts(self, agent: Agent) -> bool:
        began = time.perf_counter()
        try:
            await agent.start()
        except AgentError as error:
            self._found(Check("start", "fail", str(error)))
            return False
        self._found(Check("start", "ok", f"{time.perf_counter() - began:.2f} s"))
        return True

    async def _probe(self, spec: EndpointSpec) -> None:
        from agents.probe import find_constraints, probe_constraint, probe_context, probe_metrics
        from agents.remote import RemoteModel

        model = RemoteModel(spec.model_copy(update={"metrics_url": None}))
        try:
            await model.ready()
            self._found(await probe_context(model, self._options.context))
            if spec.constraint == "none":
                self._found(await find_constraints(spec))
            else:
                self._found(await probe_constraint(model, spec.constraint))
            if spec.metrics_url:
                self._found(await probe_metrics(spec))
        except AgentError as error:
            self._found(Check("endpoint", "fail", str(error)))
        finally:
            await model.close()

    async def _play(self, game: str, agent: Agent, other: Agent) -> None:
        """A short game with each side."""
        try:
            await agent.new_game(f"probe-{game}", get_game(game), 0)
            await agent.end_game(f"probe-{game}")
        except AgentError as error:
            asked = game in self._options.games
            self._found(Check(game, "fail" if asked else "warn", str(error)))
            return
        for side in (0, 1):
            played = await self._one(game, agent, other, 0 if side == 0 else 1)
            self._played.append(played)
            self._found(judge_game(played, agent.info.kind))

    async def _one(self, game: str, agent: Agent, other: Agent, side: Side) -> Played:
        rules = get_game(game)
        pair = (agent, other) if side == 0 else (other, agent)
        number = len(self._played) + 1
        names = [player.info.name for player in pair]
        slot = Slot(number, game, next(iter(rules.rule_sets)), names[0], names[1], number)
        moves: list[MoveRecord] = []

        async def keep(move: MoveRecord) -> None:
            if move.side == side:
                moves.append(move)

        limits = match.Limits(max_plies=self._options.plies, watchdog_s=self._options.move_s)
        record = await match.play(f"check-{number}", slot, rules.start(), pair, limits, SEED, keep)
        return Played(game, rules.sides[side], record, tuple(moves))

    def _faults(self, agent: Agent) -> None:
        if not self._played:
            self._found(Check("games", "fail", "it plays none of them"))
            return
        attempts = [attempt for game in self._played for attempt in game.attempts]
        self._found(judge_answers(attempts, [move for game in self._played for move in game.moves]))
        other = Counter(dict(agent.faults) if isinstance(agent, CountsFaults) else {})
        other.update(f"games ended by {end}" for game in self._played if (end := fault_of(game)))
        self._found(judge_faults(attempts, other))


def fault_of(played: Played) -> str:
    """The termination that is the player's fault or nobody's result; "" where there is none."""
    end = played.record.termination
    failed = end in PROTOCOL_ENDS and end != Termination.RESIGNED
    return end if failed or played.record.status is Status.ABORTED else ""


def judge_game(played: Played, kind: str) -> Check:
    """How a short game went, for its player."""
    record, name = played.record, f"{played.game} as {played.side}"
    told = f"{record.plies} plies, {record.termination}"
    if record.status is Status.ABORTED:
        return Check(name, "fail", f"no result: {record.termination}: {record.detail}")
    if end := fault_of(played):
        broken = end in BROKEN or kind not in ITS_OWN
        return Check(name, "fail" if broken else "warn", f"{told}: {record.detail}")
    return Check(name, "ok", told)


def judge_answers(attempts: Sequence[Attempt], moves: Sequence[MoveRecord]) -> Check:
    """How many and how quick the answers were."""
    seconds = [move.seconds for move in moves]
    words = f"{len(attempts) or len(moves)} answers, {len(moves)} moves"
    if seconds:
        words += f", {statistics.median(seconds):.3g} s a move, {max(seconds):.3g} s at most"
    prompts = [attempt.usage.prompt for attempt in attempts if attempt.usage.prompt]
    if prompts:
        words += f", prompts of {min(prompts)} to {max(prompts)} tokens"
    return Check("answers", "ok", words)


def judge_faults(attempts: Sequence[Attempt], other: Mapping[str, int]) -> Check:
    """Every protocol fault with its count, and the last one in full."""
    bad = [attempt for attempt in attempts if attempt.kind not in GOOD]
    counts = Counter[str](attempt.kind for attempt in bad)
    counts.update({what: number for what, number in other.items() if number})
    if not counts:
        return Check("faults", "ok", "none")
    words = ", ".join(f"{what}: {number}" for what, number in counts.items())
    if bad:
        last = bad[-1]
        words += f"; the last: {(last.detail or last.kind)!r} of {last.answer[:60]!r}"
    return Check("faults", "warn", words)
