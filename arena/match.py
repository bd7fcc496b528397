"""One game, and the only referee: ask, check, apply, record.

What ends a game is checked in this order before every ply:
1. the board (`GameState.outcome`, in the game's own documented order);
2. the arena's adjudication by score, draw before resignation;
3. the arena's cap of plies.
A referee engine, where there is one, gives the scores in place of the players and judges at the
cap; where it fails the game has no result.
Then the side to move is asked, and its answer may end the game by protocol (it loses, with the kind
stored) or without a result (we failed; nobody scores). Legality is checked here, whatever the agent
checked. A player that offers a draw must still move; the offer stands for the opponent's next turn
and is accepted by offering too.

Knows nothing about databases, schedules or models. Raises only CancelledError; a bug of ours
becomes a record with termination `bug` and its trace in the log.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from agents.base import Agent, AgentError, Attempt, Clocks, Decision, Turn, derive_seed
from arena.adjudicate import Adjudicator, AtCap, DrawRule, ResignRule, Verdict, by_referee
from arena.clock import Clock, TimeControl
from arena.recording import move_record
from arena.records import GameRecord, MoveRecord, Result, Slot, Status, Termination
from arena.referee import Referee, RefereeError
from games.base import GameState, IllegalMove, Side

log = logging.getLogger(__name__)

T = TypeVar("T")
OnMove = Callable[[MoveRecord], Awaitable[None]]

ANSWERS_FOR_ITSELF = frozenset({"uci", "mqtt", "human", "scripted"})
"""Kinds whose silence or death is their own: it loses. Of any other kind it is our failure."""
RESULTS: dict[Side | None, Result] = {0: "1-0", 1: "0-1", None: "1/2-1/2"}
GRACE_S = 2.0  # a cancelled request gets so long to clean up before it is left behind


@dataclass(frozen=True, slots=True)
class Limits:
    """The arena's own rules of a game, beside the board's."""

    max_plies: int | None = None
    at_cap: AtCap = "cut_short"
    draw: DrawRule | None = None
    resign: ResignRule | None = None
    referee: Referee | None = None
    time_control: TimeControl | None = None
    margin_s: float = 0.0
    token_s: float = 0.0  # what a completion token of a local model costs on the clock
    watchdog_s: float = 900.0


class _Late(Exception):
    """The watchdog's time is over."""


async def play(
    game_id: str,
    slot: Slot,
    start: GameState,
    agents: tuple[Agent, Agent],
    limits: Limits,
    run_seed: int,
    on_move: OnMove,
) -> GameRecord:
    """Play the game of a slot to its end; every move goes to `on_move` before the next is asked.

    `agents` are the first and the second mover. Cancelling it leaves nothing behind.
    """
    match = _Match(game_id, slot, start, agents, limits, run_seed, on_move)
    try:
        return await match.run()
    finally:
        await match.leave()


class _Match:
    def __init__(
        self,
        game_id: str,
        slot: Slot,
        start: GameState,
        agents: tuple[Agent, Agent],
        limits: Limits,
        run_seed: int,
        on_move: OnMove,
    ) -> None:
        self._game_id = game_id
        self._slot = slot
        self._state = start
        self._agents = agents
        self._limits = limits
        self._run_seed = run_seed
        self._on_move = on_move
        self._adjudicator = Adjudicator(limits.draw, limits.resign, limits.max_plies, limits.at_cap)
        control = limits.time_control
        self._clocks = (
            (Clock(control, limits.margin_s), Clock(control, limits.margin_s)) if control else None
        )
        self._draw_offered = False  # by the side that moved last

    async def run(self) -> GameRecord:
        for side, agent in enumerate(self._agents):
            failed = await self._seat(agent, 0 if side == 0 else 1)
            if failed is not None:
                return failed
        while True:
            end = await self._ended() or await self._ply()
            if end is not None:
                return end

    async def leave(self) -> None:
        """Tell both agents that the game is over; their faults no longer matter to it."""
        for agent in self._agents:
            try:
                await _within(agent.end_game(self._game_id), GRACE_S)
            except (AgentError, _Late) as error:
                log.warning("%s did not leave game %s: %r", agent.info.name, self._game_id, error)
            except Exception:
                log.exception("%s failed to leave game %s", agent.info.name, self._game_id)

    async def _seat(self, agent: Agent, side: Side) -> GameRecord | None:
        try:
            opening = agent.new_game(self._game_id, self._state.game, side)
            await _within(opening, self._limits.watchdog_s)
        except _Late:
            return self._blame(side, Termination.STALL, "did not take its seat in time")
        except AgentError as error:
            return self._blame(side, Termination.CRASH, str(error))
        except Exception:
            return self._bug(f"{agent.info.name} failed in new_game")
        return None

    async def _ended(self) -> GameRecord | None:
        outcome = self._state.outcome()
        if outcome is not None:
            sentence = self._state.game.terminations[outcome.termination]
            winner = 0 if outcome.winner is None else outcome.winner
            detail = sentence.format(
                winner=self._name(winner), loser=self._name(0 if winner else 1)
            )
            return self._record(RESULTS[outcome.winner], outcome.termination, detail)
        state = self._state
        verdict = self._adjudicator.verdict(len(state.moves), state.material, state.game.sides)
        if verdict is not None:
            return self._verdict(verdict)
        return await self._judged()

    async def _judged(self) -> GameRecord | None:
        """The end by a referee where the cap is reached and one judges it."""
        limits, state = self._limits, self._state
        if limits.at_cap != "referee" or limits.max_plies is None or limits.referee is None:
            return None
        if len(state.moves) < limits.max_plies:
            return None
        referee, sides = limits.referee, state.game.sides
        try:
            score = await referee.score(state)
        except RefereeError as error:
            return self._no_result(Termination.ENGINE_ERROR, str(error))
        found = by_referee(referee.name, score, referee.win_cp, state.turn, sides, limits.max_plies)
        return self._verdict(found)

    async def _ply(self) -> GameRecord | None:
        """Ask the side to move; None: it moved and the game goes on."""
        offered = False
        tried: tuple[Attempt, ...] = ()  # with the offer
        while True:
            asked = await self._ask()
            if isinstance(asked, GameRecord):
                return asked
            decision, seconds = asked
            in_time = self._clocks is None or self._charge(decision, seconds)
            tried = (*tried, *decision.attempts)
            decision = replace(decision, attempts=_numbered(tried))
            if not in_time:
                return self._forfeit(decision, Termination.TIME, "loses on time")
            if decision.kind != "draw_offer":
                break
            if self._draw_offered:
                return self._verdict(
                    Verdict("1/2-1/2", Termination.DRAW_AGREED, "draw by agreement")
                )
            if offered:
                return self._forfeit(decision, Termination.EMPTY, "offers a draw again, no move")
            offered = True
        self._draw_offered = offered
        return await self._act(decision, seconds)

    async def _ask(self) -> tuple[Decision, float] | GameRecord:
        """The decision of the side to move and its seconds by the wall."""
        side = self._state.turn
        agent = self._agents[side]
        started = time.perf_counter()
        try:
            decision = await _within(agent.choose(self._turn(agent)), self._limits.watchdog_s)
        except _Late:
            limit = self._limits.watchdog_s
            return self._blame(side, Termination.STALL, f"gave no answer in {limit:g} s")
        except AgentError as error:
            return self._blame(side, Termination.CRASH, str(error))
        except Exception:
            return self._bug(f"{agent.info.name} failed in choose")
        return decision, time.perf_counter() - started

    def _turn(self, agent: Agent) -> Turn:
        ply = len(self._state.moves) + 1
        cap = self._limits.max_plies
        clocks = Clocks()
        if self._clocks is not None:
            first, second = self._clocks
            clocks = Clocks(
                (first.remaining, second.remaining), (first.increment, second.increment)
            )
        return Turn(
            game_id=self._game_id,
            state=self._state,
            seed=derive_seed(self._run_seed, self._slot.id, ply, agent.info.name),
            clocks=clocks,
            draw_offered=self._draw_offered,
            plies_left=None if cap is None else cap - ply + 1,
        )

    async def _act(self, decision: Decision, seconds: float) -> GameRecord | None:
        """What an answer other than a draw offer leads to."""
        side = self._state.turn
        match decision.kind:
            case "resign":
                return self._forfeit(decision, Termination.RESIGNED, "resigns")
            case "forfeit" if decision.reason in set(Termination):
                words = decision.detail or f"forfeits: {decision.reason}"
                return self._forfeit(decision, Termination(decision.reason), words)
            case "no_result" if decision.reason in set(Termination):
                words = decision.detail or f"no result: {decision.reason}"
                record = self._no_result(
                    Termination(decision.reason), f"{self._name(side)}: {words}"
                )
                return self._tried(record, decision)
            case "move" if decision.move is not None:
                return await self._move(decision, seconds)
        return self._bug(f"{self._agents[side].info.name} broke its contract: {decision!r:.300}")

    async def _move(self, decision: Decision, seconds: float) -> GameRecord | None:
        before, move = self._state, decision.move
        assert move is not None
        try:
            after = before.apply(move)
        except IllegalMove:
            return self._forfeit(decision, Termination.ILLEGAL, f"plays the illegal move {move}")
        except Exception:
            return self._bug(f"{before.game.name} failed to apply {move} to {before.fen()}")
        clock = self._clocks[before.turn].remaining if self._clocks else None
        player = self._agents[before.turn].info.name
        record = move_record(player, decision, seconds, clock, before, after)
        self._state = after
        await self._on_move(record)
        try:
            score = await self._score(decision, after)
        except RefereeError as error:
            return self._no_result(Termination.ENGINE_ERROR, str(error))
        self._adjudicator.update(before.turn, score)
        return None

    async def _score(self, decision: Decision, after: GameState) -> int | None:
        """What a move stands at, seen by who made it: the referee's word, else its own."""
        referee = self._limits.referee
        if referee is None or not self._adjudicator.scores:
            return decision.score_cp
        return None if after.outcome() is not None else -await referee.score(after)

    def _charge(self, decision: Decision, seconds: float) -> bool:
        """Charge the mover's clock; False: its flag fell.

        Who answers for itself pays by the wall, less what it waited for a place of ours. A model's
        wall time contains its neighbours in the batch, so it pays by counted tokens; our own
        in-process movers pay nothing.
        """
        assert self._clocks is not None
        side = self._state.turn
        kind = self._agents[side].info.kind
        timings = [attempt.timing for attempt in decision.attempts if attempt.timing is not None]
        seconds -= sum(timing.queue or 0.0 for timing in timings)
        if kind not in ANSWERS_FOR_ITSELF:
            tokens = sum(attempt.usage.completion for attempt in decision.attempts)
            seconds = tokens * self._limits.token_s
        return self._clocks[side].charge(seconds)

    def _name(self, side: Side) -> str:
        return self._state.game.sides[side].capitalize()

    def _forfeit(self, decision: Decision, kind: Termination, words: str) -> GameRecord:
        side = self._state.turn
        record = self._loss(side, kind, f"{self._name(side)} {words}")
        return self._tried(record, decision)

    def _tried(self, record: GameRecord, decision: Decision) -> GameRecord:
        player = self._agents[self._state.turn].info.name
        return replace(record, failed_attempts=decision.attempts, failed_player=player)

    def _blame(self, side: Side, kind: Termination, words: str) -> GameRecord:
        """A dead or silent agent loses where it answers for itself; else the failure is ours."""
        agent = self._agents[side].info
        words = f"{self._name(side)} ({agent.name}): {words}"
        if agent.kind in ANSWERS_FOR_ITSELF:
            return self._loss(side, kind, words)
        return self._no_result(Termination.ENGINE_ERROR, words)

    def _bug(self, words: str) -> GameRecord:
        """Call it inside `except`, so that the log gets the trace."""
        log.exception("game %s: %s: please report this", self._game_id, words)
        return self._no_result(Termination.BUG, words)

    def _loss(self, side: Side, kind: Termination, detail: str) -> GameRecord:
        return self._record(RESULTS[0 if side else 1], kind, detail)

    def _no_result(self, kind: Termination, detail: str) -> GameRecord:
        return self._record("*", kind, detail, status=Status.ABORTED)

    def _verdict(self, verdict: Verdict) -> GameRecord:
        return self._record(verdict.result, verdict.termination, verdict.detail)

    def _record(
        self, result: Result, termination: str, detail: str, status: Status = Status.FINISHED
    ) -> GameRecord:
        return GameRecord(
            slot=self._slot,
            status=status,
            start_fen=self._state.start_fen,
            result=result,
            termination=termination,
            detail=detail,
            rated=result != "*",
            plies=len(self._state.moves),
            points=self._state.material(),
        )


def _numbered(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """The attempts of one turn numbered from 1, also where it took two requests."""
    return tuple(
        attempt if attempt.number == number else replace(attempt, number=number)
        for number, attempt in enumerate(attempts, 1)
    )


async def _within(awaitable: Coroutine[Any, Any, T], seconds: float) -> T:
    """Its result. Raises _Late after `seconds`; what ignores its cancellation is left behind."""
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_heard)
            await asyncio.wait({task}, timeout=GRACE_S)
    raise _Late


def _heard(task: "asyncio.Task[Any]") -> None:
    """Take what a cancelled task raised, so that asyncio does not report it as forgotten."""
    if not task.cancelled():
        task.exception()
