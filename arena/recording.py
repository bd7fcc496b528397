"""What is kept of one ply: the decision and the positions before and after it → a MoveRecord."""

from agents.base import Attempt, Decision
from arena.records import MoveRecord
from games.base import GameState


def move_record(
    player: str,
    decision: Decision,
    seconds: float,
    clock_s: float | None,
    before: GameState,
    after: GameState,
) -> MoveRecord:
    """The record of the last move of `after`, a legal one from `before`; times in seconds."""
    move = after.moves[-1]
    notations = before.game.notations
    tried = decision.attempts
    return MoveRecord(
        ply=len(after.moves),
        side=before.turn,
        player=player,
        uci=move.uci,
        san=before.format_move(move, notations[1] if len(notations) > 1 else notations[0]),
        fen=after.fen(),
        seconds=seconds,
        queue_s=_total(tried, "queue"),
        prefill_s=_total(tried, "prefill"),
        decode_s=_total(tried, "decode"),
        ttft_s=tried[0].timing.ttft if tried and tried[0].timing else None,
        prompt_tokens=sum(attempt.usage.prompt for attempt in tried),
        cached_tokens=sum(attempt.usage.cached for attempt in tried),
        completion_tokens=sum(attempt.usage.completion for attempt in tried),
        attempts=tried,
        belief=decision.belief,
        random_move=decision.random_move,
        score_cp=decision.score_cp,
        clock_s=clock_s,
    )


def _total(attempts: tuple[Attempt, ...], phase: str) -> float | None:
    """Seconds of one phase over all attempts; None where no attempt knows it."""
    timings = [attempt.timing for attempt in attempts if attempt.timing is not None]
    known = [seconds for t in timings if (seconds := getattr(t, phase)) is not None]
    return sum(known) if known else None
