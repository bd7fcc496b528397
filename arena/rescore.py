"""A finished game judged again from its stored answers: another reader, another policy, no model.

Every answer that was read for a move is read again, or kept as it was read, and the policy decides
what follows. While the game goes as it was played nothing changes. It ends earlier where the policy
now gives up or a resignation now stands; its result is then known. It is `open` where a move other
than the one played would follow, or a further answer would be asked for: what would have come after
that nobody knows, and such a game counts for nobody.

Pure over records: moves, answers and the players' stored settings.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agents.base import AgentInfo, Attempt, derive_seed
from agents.parse import parse_answer
from agents.policy import Policy
from arena.records import PROTOCOL_ENDS, Result, Status, Termination
from arena.store.queries import GameInfo
from arena.store.rows import ending_of
from games.base import GameState, Move
from games.registry import get_game

How = Literal["same", "changed", "open"]
LOSES: tuple[Result, Result] = ("0-1", "1-0")  # by the side that loses
BY_ANSWER = PROTOCOL_ENDS - {Termination.TIME, Termination.CRASH, Termination.STALL}
"""Ends that came from what was answered."""
READ_KINDS = frozenset({"mqtt"})  # beside models in mode free, whose answers are read for a move


@dataclass(frozen=True, slots=True)
class Reader:
    """How the answers of one player are read, and what follows a failed one."""

    policy: Policy
    notation: str
    max_tokens: int | None  # of one answer; it was cut where it is as long

    @classmethod
    def of(cls, info: AgentInfo, changes: Mapping[str, Any]) -> "Reader | None":
        """None: this player's answers are not read. Raises ValueError for an unknown change."""
        config = info.config
        if info.kind not in READ_KINDS and config.get("mode") != "free":
            return None
        stored = config.get("policy")
        policy = Policy.model_validate({**(stored if isinstance(stored, dict) else {}), **changes})
        limit = config.get("max_tokens")
        notation = str(config.get("notation", "uci"))
        return cls(policy, notation, limit if isinstance(limit, int) else None)

    def read(self, state: GameState, attempt: Attempt) -> Attempt:
        """The attempt as it is read today."""
        full = self.max_tokens is not None and attempt.usage.completion >= self.max_tokens
        found = parse_answer(
            state,
            attempt.answer,
            notation=self.notation,
            truncated=full or attempt.kind == "truncated",
            reasoning=attempt.prompt.rstrip().endswith("<think>"),
        )
        return replace(
            attempt, kind=found.kind, uci=found.uci, span=found.span, detail=found.detail
        )


@dataclass(frozen=True, slots=True)
class Rescored:
    """`game` with its new end. `readings` counts (player, kind before, kind now)."""

    game: GameInfo
    how: How
    ply: int  # where it parts from what was played; its length where it does not
    detail: str = ""
    readings: Counter[tuple[str, str, str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _End:
    """What a turn comes to other than the move that was played. No termination: open."""

    termination: str
    detail: str


def rescore(
    game: GameInfo, readers: Mapping[str, Reader | None], run_seed: int, *, again: bool
) -> Rescored:
    """One finished game judged again; `again`: its answers are read anew, else as they were."""
    readings: Counter[tuple[str, str, str]] = Counter()
    state = get_game(game.game).start(rules=game.rules or None, fen=game.start_fen)
    for ply, (played, attempts) in enumerate(_turns(game), 1):
        name = (game.first, game.second)[state.turn]
        reader = readers.get(name)
        if reader is not None and attempts:
            seed = derive_seed(run_seed, game.slot_id, ply, name)
            turn = _Turn(state, reader, played, seed, again)
            end = turn.judge(attempts)
            readings.update((name, *kinds) for kinds in turn.readings)
            if end is not None and not _as_recorded(game, played, end):
                return _changed(game, state, ply, end, readings)
        if played is not None:
            state = state.apply(Move(played))
    return Rescored(game, "same", game.plies, readings=readings)


def _turns(game: GameInfo) -> list[tuple[str | None, Sequence[Attempt]]]:
    """(the move or None, its answers) of every turn that was asked for."""
    turns: list[tuple[str | None, Sequence[Attempt]]]
    turns = [(move.uci, move.attempts) for move in game.moves]
    judged = game.failed_attempts and game.termination in BY_ANSWER
    return [*turns, (None, game.failed_attempts)] if judged else turns


def _as_recorded(game: GameInfo, played: str | None, end: _End) -> bool:
    """Whether the last turn ends the game as it did."""
    return played is None and end.termination == game.termination


def _changed(
    game: GameInfo, state: GameState, ply: int, end: _End, readings: Counter[tuple[str, str, str]]
) -> Rescored:
    name = state.game.sides[state.turn].capitalize()
    detail = f"{name}: {end.detail}"
    known = bool(end.termination)
    changed = replace(
        game,
        status=str(Status.FINISHED),
        result=LOSES[state.turn] if known else "*",
        termination=end.termination,
        ending=ending_of(end.termination),
        detail=detail,
        rated=known,
        plies=ply - 1,
        moves=game.moves[: ply - 1],
    )
    return Rescored(changed, "changed" if known else "open", ply, detail, readings)


class _Turn:
    """One request for a move with the answers it got."""

    def __init__(
        self, state: GameState, reader: Reader, played: str | None, seed: int, again: bool
    ) -> None:
        self._state, self._reader, self._played = state, reader, played
        self._seed, self._again = seed, again
        self._offered = False
        self.readings: list[tuple[str, str]] = []

    def judge(self, attempts: Sequence[Attempt]) -> _End | None:
        """None: the move that was played follows."""
        policy = self._reader.policy
        seen: list[Attempt] = []
        for stored in attempts:
            attempt = self._reader.read(self._state, stored) if self._again else stored
            self.readings.append((stored.kind, attempt.kind))
            if attempt.kind == "move":
                return self._moves(attempt.uci)
            if attempt.kind == "resign" and policy.allow_resign:
                return _End(Termination.RESIGNED, "resigns")
            if attempt.kind == "draw_offer" and policy.allow_draw_offer and not self._offered:
                self._offered, seen = True, []
                continue
            seen.append(attempt)
            reason = policy.stop(seen, sum(one.timing.total for one in seen if one.timing))
            if reason is not None:
                return self._gives_up(reason, seen)
        if self._offered and not seen:  # the offer was accepted, or the answer to it is not kept
            return None
        return _End("", f"would be asked again after {len(attempts)} answers")

    def _moves(self, uci: str | None) -> _End | None:
        if uci == self._played:
            return None
        return _End("", f"would play {uci} instead of {self._played or 'forfeiting'}")

    def _gives_up(self, reason: str, seen: Sequence[Attempt]) -> _End | None:
        if self._reader.policy.then == "random_move":
            legal = self._state.legal_moves()
            return self._moves(legal[derive_seed(self._seed, "fallback") % len(legal)].uci)
        words = seen[-1].detail or reason
        return _End(reason, f"{words} after {len(seen)} attempts")
