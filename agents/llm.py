"""A language model as a player, in four modes that are four different players.

`constrained` walks the tokens of the legal moves and cannot leave them; `choice` computes the exact
probability of every legal move and takes the best, or draws at a temperature; `free` generates,
reads (`parse`) and asks again by its policy; `think` reasons freely within a budget, then chooses
as `choice` does. Every draw comes from the turn's seed and the attempt's number.
"""

import math
import time
from dataclasses import replace

from games.base import Game, Move, Side

from .backend import THINK_OPEN, Answer, Ask, Backend, BackendError, Sampling, Scores
from .base import (
    AgentError,
    AgentInfo,
    Attempt,
    Belief,
    Decision,
    DecisionKind,
    Timing,
    Turn,
    Usage,
    derive_seed,
)
from .naming import default_name
from .parse import PARSER_VERSION, parse_answer
from .policy import retry_text
from .prompt import Prompt, get_template, legal_texts, render_prompt
from .spec import EndpointSpec, LlmSpec

TOP = 5  # moves kept of a distribution
ECHO = 400  # characters of a refused answer that are shown to the model again
THINK_STOP = "</think>"
THINK_LEAD = "\n</think>\n\n"
Attempts = tuple[Attempt, ...]


class LlmAgent:
    """One spec on one backend. Serves any number of games at once; keeps nothing between moves
    but which draw offers were made."""

    def __init__(self, spec: LlmSpec | EndpointSpec, backend: Backend) -> None:
        """Raises AgentError for an unknown template."""
        self._spec, self._backend = spec, backend
        self._offers: dict[str, int] = {}  # game → the ply it offered a draw at
        name = spec.name or default_name(spec)
        try:
            self._template = get_template(spec.template)
        except ValueError as error:
            raise AgentError(f"{name}: {error}") from None
        config = {
            **spec.model_dump(mode="json"),
            "template_version": self._template.version,
            "template_hash": self._template.hash,
            "parser_version": PARSER_VERSION,
        }
        self._info = AgentInfo(name, spec.kind, config, deterministic=spec.temperature == 0)

    @property
    def info(self) -> AgentInfo:
        return self._info

    async def start(self) -> None:
        """Waits until the model is loaded. Raises AgentError."""
        await self._backend.ready()

    async def new_game(self, game_id: str, game: Game, side: Side) -> None:
        """Raises AgentError where the game lacks the notation."""
        if self._spec.notation not in game.notations:
            known = ", ".join(game.notations)
            raise AgentError(
                f"{self._info.name}: {game.name} has no notation {self._spec.notation!r}: "
                f"it has {known}"
            )

    async def end_game(self, game_id: str) -> None:
        self._offers.pop(game_id, None)

    async def close(self) -> None: ...

    async def choose(self, turn: Turn) -> Decision:
        prompt = render_prompt(
            self._template,
            turn.state,
            notation=self._spec.notation,
            plies_left=turn.plies_left,
            draw_offered=turn.draw_offered,
            may_resign=self._spec.policy.allow_resign,
            may_offer_draw=self._spec.policy.allow_draw_offer,
        )
        try:
            match self._spec.mode:
                case "constrained":
                    return await self._constrained(turn, prompt)
                case "choice":
                    return await self._choice(turn, prompt)
                case "free":
                    return await self._free(turn, prompt)
                case "think":
                    return await self._think(turn, prompt)
        except BackendError as error:
            return Decision("no_result", reason=error.reason, detail=str(error))

    async def _constrained(self, turn: Turn, prompt: Prompt) -> Decision:
        texts, moves = _choices(turn, self._spec.notation)
        ask = self._ask(turn, prompt, 1)
        answer = await self._backend.walk(ask, texts)
        attempt = self._attempt(1, ask, prompt, answer)
        if answer.choice is None:
            detail = f"a constrained answer that is no legal move: {answer.text[:80]!r}"
            failed = replace(attempt, kind="illegal", detail=detail)
            return Decision(
                "no_result", reason="constraint_ignored", detail=detail, attempts=(failed,)
            )
        move = moves[answer.choice]
        read = replace(attempt, answer=texts[answer.choice], uci=move.uci)
        return Decision("move", move, attempts=(read,))

    async def _choice(self, turn: Turn, prompt: Prompt) -> Decision:
        texts, moves = _choices(turn, self._spec.notation)
        ask = self._ask(turn, prompt, 1)
        scores = await self._backend.score(ask, texts)
        attempt = _scored_attempt(1, ask, prompt, scores, texts, moves)
        return Decision(
            "move",
            moves[scores.choice],
            attempts=(attempt,),
            belief=_belief(scores, moves, ask.terminator),
        )

    async def _think(self, turn: Turn, prompt: Prompt) -> Decision:
        """Reason, then score the legal moves after the reasoning."""
        spec = self._spec
        texts, moves = _choices(turn, spec.notation)
        asked = self._ask(turn, prompt, 1)
        reasoning = replace(
            asked,
            opening=THINK_OPEN,
            sampling=replace(asked.sampling, max_tokens=spec.think_tokens, stop=(THINK_STOP,)),
        )
        thought = await self._backend.generate(reasoning)
        opening = reasoning.opening + thought.text.rstrip() + THINK_LEAD
        ask = replace(asked, opening=opening)
        scores = await self._backend.score(ask, texts)
        attempt = replace(
            _scored_attempt(1, ask, prompt, scores, texts, moves),
            thinking=thought.text,
            timing=_sum_timing(thought.timing, scores.timing),
            usage=_sum_usage(thought.usage, scores.usage),
        )
        return Decision(
            "move",
            moves[scores.choice],
            attempts=(attempt,),
            belief=_belief(scores, moves, ask.terminator),
        )

    async def _free(self, turn: Turn, prompt: Prompt) -> Decision:
        policy, began = self._spec.policy, time.monotonic()
        attempts: Attempts = ()
        reason = None
        while reason is None:
            number = len(attempts) + 1
            ask = self._ask(turn, prompt, number, attempts)
            answer = await self._backend.generate(ask)
            attempt = self._read(turn, self._attempt(number, ask, prompt, answer), answer)
            attempts = (*attempts, attempt)
            if decision := self._accepted(turn, attempt, attempts):
                return decision
            reason = policy.stop(attempts, time.monotonic() - began)
            said = answer.text if len(answer.text) <= ECHO else answer.text[:ECHO] + " …"
            prompt = prompt.extended(said, retry_text(attempts, self._template.words.code))
        return policy.end(turn, attempts, reason)

    def _read(self, turn: Turn, attempt: Attempt, answer: Answer) -> Attempt:
        reading = parse_answer(
            turn.state,
            answer.text,
            notation=self._spec.notation,
            truncated=answer.cut,
            reasoning=answer.in_thinking,
        )
        return replace(
            attempt, kind=reading.kind, uci=reading.uci, span=reading.span, detail=reading.detail
        )

    def _accepted(self, turn: Turn, attempt: Attempt, attempts: Attempts) -> Decision | None:
        """The decision an answer stands for; None: it is refused."""
        if attempt.kind == "move" and attempt.uci is not None:
            return Decision("move", Move(attempt.uci), attempts=attempts)
        if attempt.kind not in ("resign", "draw_offer"):
            return None
        if not self._spec.policy.allows(attempt.kind):
            return None
        ply = len(turn.state.moves)
        if attempt.kind == "draw_offer" and not turn.draw_offered:
            if self._offers.get(turn.game_id) == ply:
                return None  # offered already on this move: now a move is due
            self._offers[turn.game_id] = ply
        kind: DecisionKind = "resign" if attempt.kind == "resign" else "draw_offer"
        return Decision(kind, attempts=attempts)

    def _ask(self, turn: Turn, prompt: Prompt, number: int, before: Attempts = ()) -> Ask:
        spec, policy = self._spec, self._spec.policy
        limit = spec.max_tokens
        if policy.tokens is not None:
            used = sum(attempt.usage.completion for attempt in before)
            limit = max(1, min(limit, policy.tokens - used))
        return Ask(
            id=f"{turn.game_id}.{len(turn.state.moves) + 1}.{number}",
            messages=prompt.messages,
            sampling=Sampling(
                temperature=spec.temperature,
                top_k=spec.top_k,
                top_p=spec.top_p,
                min_p=spec.min_p,
                repetition_penalty=spec.repetition_penalty,
                max_tokens=limit,
                seed=derive_seed(turn.seed, number),
            ),
            thinking=spec.thinking,
            terminator=spec.terminator,
            priority=spec.priority,
            timeout_s=spec.timeout_s,
            course=f"{turn.game_id} {self._info.name}",
        )

    def _attempt(self, number: int, ask: Ask, prompt: Prompt, answer: Answer) -> Attempt:
        return Attempt(
            number,
            "move",
            answer=answer.text,
            prompt=answer.prompt,
            prompt_hash=prompt.hash,
            seed=ask.sampling.seed,
            timing=answer.timing,
            usage=answer.usage,
        )


def _choices(turn: Turn, notation: str) -> tuple[tuple[str, ...], tuple[Move, ...]]:
    pairs = legal_texts(turn.state, notation)
    return tuple(text for text, _ in pairs), tuple(move for _, move in pairs)


def _scored_attempt(
    number: int,
    ask: Ask,
    prompt: Prompt,
    scores: Scores,
    texts: tuple[str, ...],
    moves: tuple[Move, ...],
) -> Attempt:
    return Attempt(
        number,
        "move",
        answer=texts[scores.choice],
        uci=moves[scores.choice].uci,
        prompt=scores.prompt,
        prompt_hash=prompt.hash,
        seed=ask.sampling.seed,
        timing=scores.timing,
        usage=scores.usage,
    )


def _belief(scores: Scores, moves: tuple[Move, ...], terminator: str) -> Belief:
    best = sorted(range(len(moves)), key=lambda i: (-scores.logprobs[i], moves[i].uci))[:TOP]
    return Belief(
        chosen=math.exp(scores.logprobs[scores.choice]),
        legal_mass=scores.legal_mass,
        terminator=terminator,
        greedy=moves[scores.greedy].uci,
        top=tuple((moves[i].uci, math.exp(scores.logprobs[i])) for i in best),
    )


def _sum_timing(a: Timing, b: Timing) -> Timing:
    """Of two requests, one after the other; `ttft` is the first's."""

    def both(x: float | None, y: float | None) -> float | None:
        return None if x is None and y is None else (x or 0.0) + (y or 0.0)

    return Timing(
        a.total + b.total,
        both(a.queue, b.queue),
        both(a.prefill, b.prefill),
        both(a.decode, b.decode),
        a.ttft,
    )


def _sum_usage(a: Usage, b: Usage) -> Usage:
    return Usage(a.prompt + b.prompt, a.cached + b.cached, a.completion + b.completion)
