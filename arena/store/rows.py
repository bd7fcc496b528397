"""Records to rows and back. Nothing is rounded, cut or guessed on the way."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from agents.base import Attempt, Belief, Telemetry, Timing, Usage
from arena.records import (
    NO_RESULT_ENDS,
    PROTOCOL_ENDS,
    GameRecord,
    MoveRecord,
    Slot,
    Termination,
)

Row = dict[str, Any]
SLOT_FIELDS = (
    "id", "game", "rules", "first", "second", "pair", "opening", "setup", "round", "section",
)  # fmt: skip
ADJUDICATED = frozenset(
    {
        Termination.DRAW_AGREED,
        Termination.ADJUDICATED_MATERIAL,
        Termination.ADJUDICATED_POINTS,
        Termination.ADJUDICATED_DRAW,
        Termination.ADJUDICATED_RESIGN,
        Termination.ADJUDICATED_REFEREE,
    }
)


def ending_of(termination: str) -> str:
    """`board`, `protocol`, `adjudicated`, `cut_short`, `imported` or `no_result`: who ended it."""
    if termination in PROTOCOL_ENDS:
        return "protocol"
    if termination in NO_RESULT_ENDS or not termination:
        return "no_result"
    if termination in ADJUDICATED:
        return "adjudicated"
    others = {Termination.CUT_SHORT: "cut_short", Termination.IMPORTED: "imported"}
    return others.get(Termination(termination), "board") if termination in others else "board"


def moves_hash(start_fen: str, moves: Iterable[str]) -> str:
    """Equal iff two games began and went alike: SHA-256 of the start and the moves in UCI."""
    return hashlib.sha256(f"{start_fen}\n{' '.join(moves)}".encode()).hexdigest()


def slot_row(run_id: int, slot: Slot) -> Row:
    return {"run_id": run_id} | {name: getattr(slot, name) for name in SLOT_FIELDS}


def row_slot(row: Mapping[str, Any]) -> Slot:
    return Slot(**{name: row[name] for name in SLOT_FIELDS})


def finished_values(record: GameRecord) -> Row:
    """What an end changes in the row of a game."""
    first, second = record.points or (None, None)
    return {
        "status": str(record.status),
        "start_fen": record.start_fen,
        "result": record.result,
        "termination": str(record.termination),
        "ending": ending_of(record.termination),
        "detail": record.detail,
        "rated": record.rated,
        "plies": record.plies,
        "points_first": first,
        "points_second": second,
    }


def move_row(game_id: int, move: MoveRecord) -> Row:
    belief = move.belief
    known = belief is not None and belief.greedy is not None
    return {
        "game_id": game_id,
        "ply": move.ply,
        "side": move.side,
        "player": move.player,
        "uci": move.uci,
        "san": move.san,
        "fen": move.fen,
        "seconds": move.seconds,
        "queue_s": move.queue_s,
        "prefill_s": move.prefill_s,
        "decode_s": move.decode_s,
        "ttft_s": move.ttft_s,
        "prompt_tokens": move.prompt_tokens,
        "cached_tokens": move.cached_tokens,
        "completion_tokens": move.completion_tokens,
        "chosen": belief.chosen if belief else None,
        "legal_mass": belief.legal_mass if belief else None,
        "terminator": belief.terminator if belief else None,
        "greedy": belief.greedy if belief else None,
        "disagreement": belief.greedy != move.uci if belief and known else None,
        "top": [list(pair) for pair in belief.top] if belief else None,
        "random_move": move.random_move,
        "score_cp": move.score_cp,
        "clock_s": move.clock_s,
    }


def row_move(row: Mapping[str, Any], attempts: Iterable[Attempt]) -> MoveRecord:
    belief = None
    if row["chosen"] is not None:
        top = tuple((uci, probability) for uci, probability in row["top"] or ())
        belief = Belief(row["chosen"], row["legal_mass"], row["terminator"], row["greedy"], top)
    kept = (
        "ply", "side", "player", "uci", "san", "fen", "seconds", "queue_s", "prefill_s",
        "decode_s", "ttft_s", "prompt_tokens", "cached_tokens", "completion_tokens",
        "random_move", "score_cp", "clock_s",
    )  # fmt: skip
    values = {name: row[name] for name in kept}
    return MoveRecord(**values, attempts=tuple(attempts), belief=belief)


def prompt_key(attempt: Attempt) -> str | None:
    """The key of the prompt's text, which is kept once however often it is sent."""
    if not attempt.prompt:
        return None
    return hashlib.sha256(attempt.prompt.encode(errors="surrogatepass")).hexdigest()


def attempt_row(game_id: int, ply: int, player: str, attempt: Attempt) -> Row:
    timing = attempt.timing
    start, end = attempt.span or (None, None)
    return {
        "game_id": game_id,
        "ply": ply,
        "number": attempt.number,
        "player": player,
        "kind": attempt.kind,
        "answer": attempt.answer,
        "thinking": attempt.thinking,
        "uci": attempt.uci,
        "span_start": start,
        "span_end": end,
        "detail": attempt.detail,
        "prompt_hash": attempt.prompt_hash,
        "prompt": prompt_key(attempt),
        "seed": attempt.seed,
        "total_s": timing.total if timing else None,
        "queue_s": timing.queue if timing else None,
        "prefill_s": timing.prefill if timing else None,
        "decode_s": timing.decode if timing else None,
        "ttft_s": timing.ttft if timing else None,
        "prompt_tokens": attempt.usage.prompt,
        "cached_tokens": attempt.usage.cached,
        "completion_tokens": attempt.usage.completion,
    }


def row_attempt(row: Mapping[str, Any]) -> Attempt:
    """The attempt of a row that is joined with its prompt's `text`."""
    timing = None
    if row["total_s"] is not None:
        parts = ("queue_s", "prefill_s", "decode_s", "ttft_s")
        timing = Timing(row["total_s"], *(row[part] for part in parts))
    span = None if row["span_start"] is None else (row["span_start"], row["span_end"])
    usage = Usage(row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"])
    kept = ("number", "kind", "answer", "thinking", "uci", "detail", "prompt_hash", "seed")
    values = {name: row[name] for name in kept}
    return Attempt(**values, span=span, prompt=row["text"] or "", timing=timing, usage=usage)


def telemetry_row(run_id: int, at: float, sample: Telemetry) -> Row:
    fields = Telemetry.__dataclass_fields__
    return {"run_id": run_id, "at": at} | {name: getattr(sample, name) for name in fields}
