"""Engines that speak UCI, for chess and janggi alike: Stockfish, Fairy-Stockfish and others.

A few processes serve all games of an agent. Each move is a fresh search (`ucinewgame`), so it
depends neither on which process takes it nor on what that one did before. An engine that plays by
other rules than the game's gets the bare position and our list of legal moves (`searchmoves`), so
that a difference of rules never becomes its forfeit. A crash, a stall or an illegal answer costs
the game it happens in; the process is replaced for later moves, `restarts` times in all.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass

from games.base import Game, GameError, Side

from .base import AgentError, AgentInfo, Attempt, Decision, ForfeitReason, Timing, Turn
from .naming import default_name
from .spec import KNOWN_ENGINES, UciSpec, nearest
from .uci_client import (
    SearchResult,
    UciClient,
    UciCrash,
    UciError,
    UciOption,
    UciStall,
    find_binary,
)

DEFAULT_NODES = 10_000  # where neither the spec nor a clock says how long to search
ANSWER_GRACE = 1.0  # seconds on top of the time an engine was given, before the stall timeout
NO_MOVES = frozenset({"", "(none)", "0000", "none"})


class UciAgent:
    """One engine configuration as a player."""

    def __init__(self, spec: UciSpec) -> None:
        self._spec = spec
        self._binary = find_binary(spec.path) or ""
        self._info = AgentInfo(
            spec.name or default_name(spec),
            "uci",
            spec.model_dump(mode="json"),
            deterministic=self._deterministic(),
        )
        self._slots = asyncio.Semaphore(spec.processes)
        self._idle: list[UciClient] = []
        self._busy: set[UciClient] = set()
        self._options: Mapping[str, UciOption] = {}  # as the first process announced them
        self._deaths = 0

    @property
    def info(self) -> AgentInfo:
        return self._info

    @property
    def faults(self) -> Mapping[str, int]:
        return {"processes that crashed or stalled": self._deaths}

    async def start(self) -> None:
        if not self._binary:
            raise AgentError(_missing(self._info.name, self._spec.path))
        try:
            client = await self._launch()
        except UciError as error:
            raise AgentError(f"{self._info.name}: {self._binary}: {error}") from None
        self._options = client.options
        self._idle.append(client)

    async def new_game(self, game_id: str, game: Game, side: Side) -> None:
        """Raises AgentError where the engine does not play this game."""
        variant, _ = game.uci_variant(next(iter(game.rule_sets)))
        known = self._options.get("UCI_Variant")
        plays = known.values if known is not None and known.values else ("chess",)
        if variant not in plays:
            raise AgentError(
                f"{self._info.name}: this engine does not play {variant}; "
                "use fairy-stockfish (apt-get install fairy-stockfish)"
            )

    async def choose(self, turn: Turn) -> Decision:
        asked = time.monotonic()
        async with self._slots:
            began = time.monotonic()
            try:
                client = await self._take()
            except UciError as error:
                return _failed("crash", f"cannot be started again: {error}", asked, began)
            try:
                decision = await self._ask(client, turn, asked, began)
            except BaseException:
                client.kill()  # cancelled in mid-search, or our own bug: of no further use
                self._busy.discard(client)
                await client.close()
                raise
            self._busy.discard(client)
            if decision.reason in ("crash", "stall"):
                self._deaths += 1
                client.kill()
                await client.close()
            else:
                self._idle.append(client)
            return decision

    async def end_game(self, game_id: str) -> None: ...

    async def close(self) -> None:
        for client in (*self._idle, *self._busy):
            await client.close()
        self._idle.clear()
        self._busy.clear()

    async def _ask(self, client: UciClient, turn: Turn, asked: float, began: float) -> Decision:
        plan = _Plan.of(turn, self._spec)
        try:
            options: dict[str, object] = {}
            if "UCI_Variant" in client.options:
                options["UCI_Variant"] = plan.variant
            await client.set_options(options, self._spec.startup_timeout)
            result = await client.search(plan.position, plan.go, plan.timeout)
        except UciCrash as error:
            detail = f"{error}{await client.last_words()}"
            return _failed("crash", detail, asked, began, client.stderr)
        except UciStall as error:
            return _failed("stall", str(error), asked, began, client.stderr)
        return _decide(turn, plan, result, asked, began)

    async def _take(self) -> UciClient:
        if self._idle:
            client = self._idle.pop()
        elif self._deaths > self._spec.restarts:
            raise UciCrash(f"it died {self._deaths} times, and restarts = {self._spec.restarts}")
        else:
            client = await self._launch()
        self._busy.add(client)
        return client

    async def _launch(self) -> UciClient:
        """A new process with the spec's options set. Raises UciError, AgentError."""
        spec = self._spec
        client = await UciClient.start([self._binary, *spec.args], spec.startup_timeout)
        try:
            options: dict[str, object] = dict(spec.options)
            if spec.elo is not None:
                options |= {"UCI_LimitStrength": True, "UCI_Elo": spec.elo}
            self._check(client, options)
            await client.set_options(options, spec.startup_timeout)
        except BaseException:
            await client.close()
            raise
        return client

    def _check(self, client: UciClient, options: Mapping[str, object]) -> None:
        for name, value in options.items():
            known = client.options.get(name)
            if known is None:
                hint = nearest(name, client.options)
                raise AgentError(f"{self._info.name}: the engine has no option {name!r}{hint}")
            low, high = known.low, known.high
            outside = low is not None and high is not None and not low <= _number(value) <= high
            if known.type == "spin" and outside:
                raise AgentError(f"{self._info.name}: {name} = {value} is not in {low} … {high}")

    def _deterministic(self) -> bool:
        spec = self._spec
        counted = spec.nodes is not None or spec.depth is not None
        one_thread = spec.options.get("Threads", 1) == 1
        return counted and spec.movetime is None and spec.elo is None and one_thread


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is sent for one move, and how long an answer may take in seconds."""

    variant: str
    exact: bool  # the engine's rules are the game's
    position: str
    go: str
    timeout: float

    @classmethod
    def of(cls, turn: Turn, spec: UciSpec) -> "_Plan":
        state = turn.state
        variant, exact = state.game.uci_variant(state.rules)
        if exact:
            position = f"fen {state.start_fen}"
            if state.moves:
                position += " moves " + " ".join(move.uci for move in state.moves)
        else:
            position = f"fen {state.fen()}"
        go, allotted = _limits(turn, spec)
        if not exact:
            go += " searchmoves " + " ".join(move.uci for move in state.legal_moves())
        return cls(variant, exact, position, go, allotted + ANSWER_GRACE + spec.stall_timeout)


def _limits(turn: Turn, spec: UciSpec) -> tuple[str, float]:
    """Arguments of `go` and the seconds they allot."""
    words: list[str] = []
    allotted = 0.0
    if spec.nodes is not None:
        words.append(f"nodes {spec.nodes}")
    if spec.depth is not None:
        words.append(f"depth {spec.depth}")
    if spec.movetime is not None:
        words.append(f"movetime {spec.movetime}")
        allotted = spec.movetime / 1000
    first, second = turn.clocks.remaining
    if first is not None and second is not None and spec.movetime is None:
        times = (max(1, round(first * 1000)), max(1, round(second * 1000)))
        steps = tuple(round(seconds * 1000) for seconds in turn.clocks.increment)
        words.append(f"wtime {times[0]} btime {times[1]} winc {steps[0]} binc {steps[1]}")
        allotted = times[turn.side] / 1000
    return " ".join(words) or f"nodes {DEFAULT_NODES}", allotted


def _decide(turn: Turn, plan: _Plan, result: SearchResult, asked: float, began: float) -> Decision:
    timing = _timing(asked, began)
    if result.move in NO_MOVES and not plan.exact:
        detail = f"it finds no move under its own rules ({plan.variant}), which are not the game's"
        attempt = Attempt(1, "unparsable", answer=result.line, detail=detail, timing=timing)
        return Decision("no_result", reason="engine_error", detail=detail, attempts=(attempt,))
    try:
        move = turn.state.parse_move(result.move)
    except GameError as error:
        attempt = Attempt(
            1, "illegal", answer=result.line, uci=result.move, detail=str(error), timing=timing
        )
        return Decision("forfeit", reason="illegal", detail=str(error), attempts=(attempt,))
    attempt = Attempt(1, "move", answer=result.line, uci=move.uci, timing=timing)
    return Decision("move", move, attempts=(attempt,), score_cp=result.score_cp)


def _failed(
    reason: ForfeitReason, detail: str, asked: float, began: float, stderr: tuple[str, ...] = ()
) -> Decision:
    attempt = Attempt(
        1, "empty", thinking="\n".join(stderr), detail=detail, timing=_timing(asked, began)
    )
    return Decision("forfeit", reason=reason, detail=detail, attempts=(attempt,))


def _timing(asked: float, began: float) -> Timing:
    return Timing(total=time.monotonic() - asked, queue=began - asked)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")


def _missing(name: str, path: str) -> str:
    package = KNOWN_ENGINES.get(path)
    fix = f"apt-get install {package}" if package else "check the path, and that it is executable"
    return f"{name}: no engine binary {path!r}: {fix}"
