"""What follows a failed answer: a retry with its own text, a forfeit, or a random move if asked.

A policy is frozen, JSON-able and stored with each game, so that a recorded game can be re-scored
under another one. It decides from counted things alone (attempts, tokens); only `seconds` looks at
the wall clock and makes a run timing-dependent. A failure of ours is not the policy's to judge.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from games.base import Move

from .base import Attempt, Decision, ForfeitReason, Turn, derive_seed

Then = Literal["forfeit", "random_move"]
LISTED_REFUSALS = 12  # a retry text names at most so many refused answers
QUOTED = 60  # characters of a refused answer that are quoted back


class Policy(BaseModel):
    """Bounds of one move. `None`: no bound."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempts: int = Field(default=3, ge=1, le=20)
    tokens: int | None = Field(default=None, ge=1)  # completion tokens of all attempts of a move
    seconds: float | None = Field(default=None, gt=0)  # by the wall; timing-dependent
    then: Then = "forfeit"  # what follows the last attempt
    allow_resign: bool = True
    allow_draw_offer: bool = True

    def allows(self, kind: str) -> bool:
        """Whether an answer of this kind (`resign`, `draw_offer`) may stand."""
        if kind == "resign":
            return self.allow_resign
        return self.allow_draw_offer if kind == "draw_offer" else True

    def stop(self, attempts: Sequence[Attempt], seconds: float = 0.0) -> ForfeitReason | None:
        """Why no further attempt is made; None: ask again.

        The reason is `budget` where tokens or seconds ran out, else the kind of the last failure.
        """
        if not attempts:
            return None
        used = sum(attempt.usage.completion for attempt in attempts)
        if self.tokens is not None and used >= self.tokens:
            return "budget"
        if self.seconds is not None and seconds >= self.seconds:
            return "budget"
        if len(attempts) < self.attempts:
            return None
        return failure_of(attempts[-1])

    def end(self, turn: Turn, attempts: tuple[Attempt, ...], reason: ForfeitReason) -> Decision:
        """What follows the last attempt: a forfeit, or a legal move by lot that is marked so."""
        if self.then == "random_move":
            return Decision("move", fallback_move(turn), attempts=attempts, random_move=True)
        tried = f"{len(attempts)} attempt{'s' if len(attempts) > 1 else ''}"
        detail = f"{attempts[-1].detail or reason} after {tried}"
        return Decision("forfeit", reason=reason, detail=detail, attempts=attempts)


def fallback_move(turn: Turn) -> Move:
    """A legal move drawn by the turn's seed."""
    legal = turn.state.legal_moves()
    return legal[derive_seed(turn.seed, "fallback") % len(legal)]


def failure_of(attempt: Attempt) -> ForfeitReason:
    """The forfeit that a failed attempt stands for; a resignation or draw offer that the policy
    does not allow is no move, hence `unparsable`."""
    kind = attempt.kind
    return "unparsable" if kind == "move" or kind == "resign" or kind == "draw_offer" else kind


_TEXTS = {
    "en": {
        "unparsable": "No move could be read from your answer{quote}.",
        "illegal": "{move} is not legal in this position.",
        "ambiguous": "{move} fits several moves: {detail}. Name one of them.",
        "truncated": "Your answer was cut off before a move was given. Answer more briefly.",
        "empty": "Your answer was empty.",
        "refused": "You gave no move. This is a board game and a move is needed.",
        "resign": "Resigning is not allowed here.",
        "draw_offer": "Draw offers are not allowed here.",
        "listed": "Already refused: {moves}.",
        "again": "Answer again with one legal move.",
    },
    "ko": {
        "unparsable": "답{quote}에서 수를 읽을 수 없습니다.",
        "illegal": "{move}은(는) 이 국면에서 둘 수 없는 수입니다.",
        "ambiguous": "{move}은(는) 여러 수에 해당합니다: {detail}. 그중 하나를 쓰십시오.",
        "truncated": "수가 나오기 전에 답이 잘렸습니다. 더 짧게 답하십시오.",
        "empty": "답이 비어 있습니다.",
        "refused": "수를 답하지 않았습니다. 보드게임이므로 수가 필요합니다.",
        "resign": "여기서는 기권할 수 없습니다.",
        "draw_offer": "여기서는 무승부를 제안할 수 없습니다.",
        "listed": "이미 거절된 수: {moves}.",
        "again": "둘 수 있는 수 하나로 다시 답하십시오.",
    },
    "es": {
        "unparsable": "No se pudo leer ninguna jugada en tu respuesta{quote}.",
        "illegal": "{move} no es legal en esta posición.",
        "ambiguous": "{move} puede ser varias jugadas: {detail}. Nombra una de ellas.",
        "truncated": "Tu respuesta se cortó antes de dar una jugada. Responde más brevemente.",
        "empty": "Tu respuesta estaba vacía.",
        "refused": "No diste ninguna jugada. Es un juego de mesa y hace falta una.",
        "resign": "Aquí no se permite abandonar.",
        "draw_offer": "Aquí no se permite ofrecer tablas.",
        "listed": "Ya rechazadas: {moves}.",
        "again": "Responde de nuevo con una jugada legal.",
    },
}


def read_text(attempt: Attempt) -> str:
    """The part of the answer that was read, on one line and short enough to be quoted."""
    text = attempt.answer[slice(*attempt.span)] if attempt.span else attempt.answer
    text = " ".join(text.split())
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def retry_text(attempts: Sequence[Attempt], language: str = "en") -> str:
    """What is said to the model before its next attempt: what was wrong, and what is refused."""
    texts = _TEXTS[language]
    last = attempts[-1]
    read = read_text(last)
    wrong = texts.get(last.kind, texts["unparsable"]).format(
        move=read, detail=last.detail, quote=f" ({read})" if read else ""
    )
    refused = dict.fromkeys(
        read_text(attempt) for attempt in attempts if attempt.kind in ("illegal", "ambiguous")
    )
    parts = [wrong]
    if refused:
        parts.append(texts["listed"].format(moves=", ".join(list(refused)[-LISTED_REFUSALS:])))
    return " ".join([*parts, texts["again"]])
