"""From a client's body to one Request of the engine. Pure but for the tokenizer's caches.

Defaults are OpenAI's (temperature 1, no limit but the context), not the engine's greedy ones. A
request without a seed gets a fresh one, so that two of them differ.
"""

import secrets
from dataclasses import dataclass

from engine.chat import RenderedPrompt
from engine.server_wire import MAX_CHOICE_CHARS, ChatBody, CompletionBody, Fault
from engine.tokenizer import Tokenizer
from engine.types import Request, SamplingParams, TokenIds

Body = ChatBody | CompletionBody


@dataclass(frozen=True, slots=True)
class Room:
    """What bounds an answer where the client names no limit: tokens, slots of the whole pool."""

    max_model_len: int
    num_slots: int

    def left(self, num_prompt: int) -> int:
        """Tokens that may follow a prompt; at least one, so that the engine says what is wrong."""
        return max(1, min(self.max_model_len, self.num_slots + 1) - num_prompt)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request and what its answer must show. `choices`: the texts that the answer is one of;
    `top_logprobs` None: no log-probabilities."""

    request: Request
    is_chat: bool
    choices: tuple[str, ...] | None = None
    top_logprobs: int | None = None
    stream: bool = False
    include_usage: bool = False


def ask_of(request_id: str, body: Body, tokenizer: Tokenizer, room: Room) -> Ask:
    """Render, tokenise, put in the defaults. Raises Fault, or an EngineError that names the fault
    in prompt or choices."""
    is_chat = isinstance(body, ChatBody)
    choices, is_score = _choices(body)
    prompt, before = _prompt(body, tokenizer)
    top = _top_logprobs(body)
    if top is not None and choices is not None:
        raise Fault(
            400, "logprobs: an answer held to choices has none; mode score gives theirs",
            param="logprobs",
        )  # fmt: skip
    terminator = body.terminator or "none"
    return Ask(
        request=Request(
            request_id=request_id,
            prompt=prompt,
            sampling=_sampling(body, top, room.left(len(prompt))),
            choices=tokenizer.encode_choices(before, choices, terminator) if choices else None,
            score=is_score,
            terminator=terminator,
            priority=body.priority or 0,
            cache_salt=body.cache_salt or "",
        ),
        is_chat=is_chat,
        choices=choices,
        top_logprobs=top,
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
    )


def _choices(body: Body) -> tuple[tuple[str, ...] | None, bool]:
    """The texts to choose from, and whether each of them is scored."""
    outputs = body.structured_outputs
    walks = [outputs.choice] if outputs is not None else []
    walks += [body.guided_choice] if body.guided_choice is not None else []
    given = walks + ([body.choices] if body.choices is not None else [])
    if len(given) > 1:
        raise Fault(400, "choices: given twice, in two ways", param="choices")
    if body.choices is None and body.mode is not None:
        raise Fault(400, "mode: needs choices", param="mode")
    if not given:
        if body.terminator is not None:
            raise Fault(400, "terminator: needs choices", param="terminator")
        return None, False
    if not all(given[0]):
        raise Fault(400, "choices: one of them is empty", param="choices")
    if sum(map(len, given[0])) > MAX_CHOICE_CHARS:
        raise Fault(
            400, f"choices: more than {MAX_CHOICE_CHARS} characters together", param="choices"
        )
    return tuple(given[0]), not walks and body.mode != "walk"


def _prompt(body: Body, tokenizer: Tokenizer) -> tuple[TokenIds, RenderedPrompt | str]:
    """Token ids, and the text that choices follow."""
    if isinstance(body, ChatBody):
        switches = body.chat_template_kwargs or {}
        messages = [message.model_dump(exclude_none=True) for message in body.messages]
        rendered = tokenizer.render(messages, **switches)
        return tokenizer.encode_prompt(rendered), rendered
    if isinstance(body.prompt, str):
        return tokenizer.encode(body.prompt, add_bos=True), body.prompt
    if body.choices or body.structured_outputs or body.guided_choice:
        raise Fault(400, "prompt: choices need a text, not token ids", param="prompt")
    return tuple(body.prompt), ""


def _top_logprobs(body: Body) -> int | None:
    if isinstance(body, CompletionBody):
        return body.logprobs
    if body.top_logprobs and not body.logprobs:
        raise Fault(400, "top_logprobs: needs logprobs true", param="top_logprobs")
    return (body.top_logprobs or 0) if body.logprobs else None


def _sampling(body: Body, top_logprobs: int | None, left: int) -> SamplingParams:
    most = body.max_tokens
    if isinstance(body, ChatBody):
        most = body.max_completion_tokens or most
    penalties = [p for p in (body.repetition_penalty, body.repeat_penalty) if p is not None]
    return SamplingParams(
        temperature=1.0 if body.temperature is None else body.temperature,
        top_k=max(0, body.top_k or 0),
        top_p=1.0 if body.top_p is None else body.top_p,
        min_p=body.min_p or 0.0,
        repetition_penalty=penalties[0] if penalties else 1.0,
        max_tokens=most or left,
        stop=tuple(body.stop or ()),
        ignore_eos=bool(body.ignore_eos),
        logprobs=0 if top_logprobs is None else max(1, top_logprobs),
        seed=secrets.randbits(64) if body.seed is None else body.seed,
    )
