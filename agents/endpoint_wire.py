"""The bytes that endpoints speak: request bodies, streamed lines, and choices inside answers. Pure.

Two APIs: OpenAI's `/chat/completions` as vLLM, SGLang, llama.cpp and hosted services serve it
(server-sent events), and Ollama's native `/api/chat` (one JSON object a line). Each server has its
own key for holding an answer to the legal moves (`spec.Constraint`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .backend import Ask
from .base import Usage
from .spec import EndpointSpec

SEED_BITS = 31  # llama.cpp and Ollama keep seeds in 32 bits
_SPECIAL = frozenset("\\.^$*+?()[]{}|")


class WireError(Exception):
    """The server sent something else than its API promises."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One streamed piece. `ended` is set by the piece that says how the answer ended; `last` by
    the one after which nothing comes."""

    content: str = ""
    thinking: str = ""
    ended: str | None = None  # stop, length, ...
    usage: Usage | None = None
    error: str = ""
    last: bool = False


def request_url(spec: EndpointSpec) -> str:
    path = "/api/chat" if spec.api == "ollama" else "/chat/completions"
    return spec.base_url.rstrip("/") + path


def request_body(
    spec: EndpointSpec, ask: Ask, choices: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """The JSON of one request; `choices` are what the answer is held to."""
    made = _ollama_body(spec, ask) if spec.api == "ollama" else _openai_body(spec, ask)
    if choices is not None:
        made |= _constraint(spec.constraint, choices)
    return made | spec.extra_body


def read_line(api: str, line: str) -> Chunk | None:
    """What one streamed line says; None: nothing. Raises WireError."""
    if api == "ollama":
        return _ollama_chunk(_object(line)) if line.strip() else None
    if not line.startswith("data:"):
        return None  # blank lines, comments that keep the line open, event names
    data = line[5:].strip()
    return Chunk(last=True) if data == "[DONE]" else _openai_chunk(_object(data))


def chosen(constraint: str, text: str, choices: tuple[str, ...]) -> int | None:
    """The index of the choice that an answer is; None: it is none of them."""
    said: object = text.strip()
    if constraint in ("json_schema", "ollama_format"):
        try:
            read = json.loads(text)
        except ValueError:
            return None
        said = read.get("move") if isinstance(read, dict) else None
    return choices.index(said) if isinstance(said, str) and said in choices else None


def _openai_body(spec: EndpointSpec, ask: Ask) -> dict[str, Any]:
    sampling = ask.sampling
    body: dict[str, Any] = {
        "model": spec.model,
        "messages": _messages(ask),
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": sampling.temperature,
        spec.max_tokens_key: sampling.max_tokens,
    }
    if sampling.temperature > 0:
        body["seed"] = _seed(ask)
    body |= {key: value for key, value in _beyond_default(ask).items() if value is not None}
    if sampling.repetition_penalty != 1:  # vLLM and SGLang read the first, llama.cpp the second
        body["repetition_penalty"] = body["repeat_penalty"] = sampling.repetition_penalty
    if ask.thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": ask.thinking}
    if ask.priority:
        body["priority"] = ask.priority
    return body


def _ollama_body(spec: EndpointSpec, ask: Ask) -> dict[str, Any]:
    sampling = ask.sampling
    options = {
        "temperature": sampling.temperature,
        "num_predict": sampling.max_tokens,
        "seed": _seed(ask),
        "num_ctx": spec.num_ctx,
        "repeat_penalty": sampling.repetition_penalty,
        **_beyond_default(ask),
    }
    body: dict[str, Any] = {
        "model": spec.model,
        "messages": _messages(ask),
        "stream": True,
        # Servers that know them refuse a prompt that does not fit, and never shift its start out.
        "truncate": False,
        "shift": False,
        "options": {key: value for key, value in options.items() if value is not None},
    }
    if ask.thinking is not None:
        body["think"] = ask.thinking
    return body


def _messages(ask: Ask) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in ask.messages]


def _seed(ask: Ask) -> int:
    return ask.sampling.seed % (1 << SEED_BITS)


def _beyond_default(ask: Ask) -> dict[str, Any]:
    sampling = ask.sampling
    return {
        "top_k": sampling.top_k or None,
        "top_p": sampling.top_p if sampling.top_p < 1 else None,
        "min_p": sampling.min_p or None,
        "stop": list(sampling.stop) or None,
    }


def _constraint(kind: str, choices: tuple[str, ...]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"move": {"type": "string", "enum": list(choices)}},
        "required": ["move"],
        "additionalProperties": False,
    }
    match kind:
        case "structured_outputs":
            return {"structured_outputs": {"choice": list(choices)}}
        case "guided_choice":
            return {"guided_choice": list(choices)}
        case "regex":
            return {"regex": "(" + "|".join(map(_escaped, choices)) + ")"}
        case "grammar":
            quoted = (json.dumps(choice, ensure_ascii=False) for choice in choices)
            return {"grammar": "root ::= " + " | ".join(quoted)}
        case "json_schema":
            named = {"name": "move", "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "ollama_format":
            return {"format": schema}
    raise ValueError(f"no constraint {kind!r}")


def _escaped(text: str) -> str:
    return "".join("\\" + char if char in _SPECIAL else char for char in text)


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise WireError(f"sent what is no JSON: {text[:80]!r}") from None
    if not isinstance(found, dict):
        raise WireError(f"sent what is no JSON object: {text[:80]!r}")
    return found


def _openai_chunk(data: Mapping[str, Any]) -> Chunk:
    if data.get("error"):
        return Chunk(error=_error_text(data["error"]))
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    delta = first.get("delta") if isinstance(first, dict) else None
    delta = delta if isinstance(delta, dict) else {}
    usage = data.get("usage")
    ended = first.get("finish_reason") if isinstance(first, dict) else None
    return Chunk(
        content=_text(delta.get("content")),
        thinking=_text(delta.get("reasoning_content") or delta.get("reasoning")),
        ended=ended if isinstance(ended, str) else None,
        usage=_openai_usage(usage) if isinstance(usage, dict) else None,
    )


def _openai_usage(usage: Mapping[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Usage(
        prompt=_count(usage.get("prompt_tokens")),
        cached=_count(cached),
        completion=_count(usage.get("completion_tokens")),
    )


def _ollama_chunk(data: Mapping[str, Any]) -> Chunk:
    if data.get("error"):
        return Chunk(error=_error_text(data["error"]))
    message = data.get("message")
    message = message if isinstance(message, dict) else {}
    done = data.get("done") is True
    usage = Usage(
        prompt=_count(data.get("prompt_eval_count")),
        cached=_count(data.get("prompt_eval_cached_count")),
        completion=_count(data.get("eval_count")),
    )
    return Chunk(
        content=_text(message.get("content")),
        thinking=_text(message.get("thinking")),
        ended=str(data.get("done_reason") or "stop") if done else None,
        usage=usage if done else None,
        last=done,
    )


def _error_text(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or error)[:300]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
