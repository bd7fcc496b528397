"""From what the engine found to OpenAI's answers: whole bodies, streamed chunks, errors. Pure.

Log-probabilities are clamped to −9999, since JSON has no infinity. `scores` beside a choice is our
extension: the distribution over the `choices` of the request.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from engine.sandbox import TemplateError
from engine.server_ask import Ask
from engine.server_wire import Fault
from engine.tokenizer import REPLACEMENT, TokenBorderError, Tokenizer
from engine.types import (
    ChoiceScores,
    Completion,
    EngineOverloaded,
    InvalidRequest,
    RequestAborted,
    RequestStats,
    RequestTooLarge,
)

Json = dict[str, Any]
LOWEST = -9999.0
DONE = b"data: [DONE]\n\n"


def dump(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def event(value: Json) -> bytes:
    """One server-sent event."""
    return b"data: " + dump(value) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """Writes the answer to one Ask. `created` in seconds since 1970."""

    ask: Ask
    model: str
    created: int
    tokenizer: Tokenizer

    def body(self, result: Completion | ChoiceScores) -> Json:
        """The answer that is not streamed."""
        text = self._text(result)
        message = {"role": "assistant", "content": text, "refusal": None}
        said: Json = {"message": message} if self.ask.is_chat else {"text": text}
        return {
            **self._head("chat.completion" if self.ask.is_chat else "text_completion"),
            "choices": [{"index": 0, **said, **self._end(result)}],
            "usage": _usage(result.stats),
        }

    def opening(self) -> Iterator[Json]:
        """What a stream begins with."""
        if self.ask.is_chat:
            yield self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> Json:
        return self._chunk({"content": text})

    def closing(self, result: Completion | ChoiceScores) -> Iterator[Json]:
        """What a stream ends with; an answer held to choices comes whole, here."""
        if self.ask.choices is not None:
            yield self.piece(self._text(result))
        yield self._chunk({}, self._end(result))
        if self.ask.include_usage:
            yield {**self._chunk_head(), "choices": [], "usage": _usage(result.stats)}

    def _chunk(self, delta: Json, end: Json | None = None) -> Json:
        said = {"delta": delta} if self.ask.is_chat else {"text": delta.get("content", "")}
        ended = end or {"logprobs": None, "finish_reason": None}
        usage = {"usage": None} if self.ask.include_usage else {}
        return {**self._chunk_head(), "choices": [{"index": 0, **said, **ended}], **usage}

    def _chunk_head(self) -> Json:
        return self._head("chat.completion.chunk" if self.ask.is_chat else "text_completion")

    def _head(self, kind: str) -> Json:
        request_id = self.ask.request.request_id
        return {"id": request_id, "object": kind, "created": self.created, "model": self.model}

    def _text(self, result: Completion | ChoiceScores) -> str:
        if self.ask.choices is None:
            return result.text if isinstance(result, Completion) else ""
        if isinstance(result, ChoiceScores) and result.choice is None:
            return self.ask.choices[result.argmax]
        return "" if result.choice is None else self.ask.choices[result.choice]

    def _end(self, result: Completion | ChoiceScores) -> Json:
        """How it ended, and what is told of its probabilities."""
        if isinstance(result, ChoiceScores):
            scores = _scores(result, self.ask.choices or ())
            return {"logprobs": None, "finish_reason": "stop", "scores": scores}
        reason = "length" if result.finish_reason == "length" else "stop"
        return {"logprobs": self._logprobs(result), "finish_reason": reason}

    def _logprobs(self, result: Completion) -> Json | None:
        if self.ask.top_logprobs is None:
            return None
        tokens = list(zip(result.tokens, result.logprobs, result.top_logprobs, strict=True))
        if result.finish_reason == "stop" and self.tokenizer.is_control(result.tokens[-1]):
            tokens.pop()  # the end token, which has no text
        count = self.ask.top_logprobs
        entries = [
            {**self._token(token, own), "top_logprobs": [self._token(*t) for t in top[:count]]}
            for token, own, top in tokens
        ]
        return {"content": entries, "refusal": None} if self.ask.is_chat else _legacy(entries)

    def _token(self, token: int, logprob: float | None) -> Json:
        """`bytes` is null for a token that holds a part of a character only."""
        text = self.tokenizer.decode([token], skip_special=False)
        data = None if REPLACEMENT in text else list(text.encode())
        return {"token": text, "logprob": _finite(logprob), "bytes": data}


def _legacy(entries: list[Json]) -> Json:
    """Log-probabilities as /v1/completions has them; offsets in characters from its start."""
    tokens = [entry["token"] for entry in entries]
    return {
        "tokens": tokens,
        "token_logprobs": [entry["logprob"] for entry in entries],
        "top_logprobs": [
            {top["token"]: top["logprob"] for top in reversed(entry["top_logprobs"])}
            for entry in entries
        ],
        "text_offset": list(accumulate(map(len, tokens[:-1]), initial=0))[: len(tokens)],
    }


def _scores(scores: ChoiceScores, choices: tuple[str, ...]) -> Json:
    return {
        "choices": list(choices),
        "logprobs": [_finite(value) for value in scores.logprobs],
        "probabilities": list(scores.probabilities),
        "legal_mass": scores.legal_mass,
        "argmax": choices[scores.argmax],
        "greedy": choices[scores.greedy],
        "terminator": scores.terminator,
    }


def _usage(stats: RequestStats) -> Json:
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.completion_tokens,
        "total_tokens": stats.prompt_tokens + stats.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": stats.cached_tokens},
    }


def _finite(logprob: float | None) -> float:
    return LOWEST if logprob is None else max(LOWEST, logprob)


def fault_for(error: Exception) -> Fault | None:
    """What the client is told of an error; None: our own fault, for the log only."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, EngineOverloaded):
        return Fault(503, str(error), code="overloaded")
    if isinstance(error, RequestAborted):
        return Fault(503, "the server is stopping", code="stopping")
    if isinstance(error, RequestTooLarge):
        return Fault(400, str(error), code="context_length_exceeded")
    if isinstance(error, InvalidRequest | TokenBorderError | TemplateError):
        return Fault(400, str(error))
    return None


def error_body(fault: Fault) -> Json:
    kind = "server_error" if fault.status >= 500 else "invalid_request_error"
    return {
        "error": {"message": str(fault), "type": kind, "param": fault.param, "code": fault.code}
    }
