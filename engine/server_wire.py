"""What clients of the endpoint may send: OpenAI's bodies, vLLM's extensions, and our own `choices`.

Pydantic is here, at the wire, and nowhere further in. A key that is not known is refused, so that
nothing is dropped in silence; keys that a client sends out of habit and that change no answer are
taken and not used. Absent and null mean the same.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from engine.types import Terminator

MAX_CHOICES, MAX_CHOICE_CHARS = 1024, 32_768  # all together; a trie is built between two events
MAX_STOPS, MAX_STOP_CHARS = 32, 256  # compared with the text's end after every token
UNSUPPORTED = {
    "n": "one answer a request: send it again with another seed",
    "best_of": "one answer a request",
    "tools": "tool calls are not supported",
    "logit_bias": "not supported",
    "frequency_penalty": "not supported: use repetition_penalty",
    "presence_penalty": "not supported: use repetition_penalty",
    "response_format": "only type text: to hold an answer to a set, use choices",
    "structured_outputs": "only choice, a list of texts",
    "echo": "not supported",
    "suffix": "not supported",
}
TAKEN_BY_RENDERING = frozenset({"messages", "tools", "documents", "add_generation_prompt", "self"})


class Fault(Exception):
    """A request that is answered with an error; `message` is one line for the client."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class StreamOptions(_Wire):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None  # nothing is ever added


class StructuredOutputs(_Wire):
    """vLLM's; of its kinds only the one that is a masked walk."""

    choice: list[str] = Field(min_length=1, max_length=MAX_CHOICES)


class TextFormat(_Wire):
    type: Literal["text"]


class ChatMessage(_Wire):
    """Keys beyond these (name, reasoning_content …) go to the chat template as they are.

    Content is a text, or parts of type text, which are joined by line feeds.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    role: str = Field(min_length=1, max_length=64)
    content: str | None = None

    @field_validator("role")
    @classmethod
    def _system(cls, value: str) -> str:
        return "system" if value == "developer" else value

    @field_validator("content", mode="before")
    @classmethod
    def _joined(cls, value: object) -> object:
        return "\n".join(map(_part, value)) if isinstance(value, list) else value


class _Body(_Wire):
    """What both ways of asking share."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)  # -1 and 0: off
    min_p: float | None = Field(default=None, ge=0, le=1)
    repetition_penalty: float | None = Field(default=None, gt=0)
    repeat_penalty: float | None = Field(default=None, gt=0)  # llama.cpp's name of it
    seed: int | None = None
    stop: list[Annotated[str, Field(max_length=MAX_STOP_CHARS)]] | None = Field(
        default=None, max_length=MAX_STOPS
    )
    n: Literal[1] | None = None
    ignore_eos: bool | None = None
    priority: int | None = None
    cache_salt: str | None = None

    choices: list[str] | None = Field(default=None, min_length=1, max_length=MAX_CHOICES)
    terminator: Terminator | None = None
    mode: Literal["score", "walk"] | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_choice: list[str] | None = Field(default=None, min_length=1, max_length=MAX_CHOICES)

    # Taken only where they change nothing
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    logit_bias: dict[str, float] | None = Field(default=None, max_length=0)
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @field_validator("frequency_penalty", "presence_penalty", mode="before")
    @classmethod
    def _nought(cls, value: object) -> object:
        return 0 if value == 0 and not isinstance(value, bool) else value

    @field_validator("stop", mode="before")
    @classmethod
    def _stops(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value


class ChatBody(_Body):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage] = Field(min_length=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    chat_template_kwargs: dict[str, Any] | None = None
    tools: list[Any] | None = Field(default=None, max_length=0)
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | None = None

    @field_validator("chat_template_kwargs")
    @classmethod
    def _switches(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        for name in value or ():
            if name in TAKEN_BY_RENDERING:
                raise ValueError(f"{name!r} is not a switch of the template")
        return value


class CompletionBody(_Body):
    """POST /v1/completions: plain text, in which control-token strings are control tokens."""

    prompt: str | list[int]
    logprobs: int | None = Field(default=None, ge=0, le=20)
    best_of: Literal[1] | None = None
    echo: Literal[False] | None = None
    suffix: Literal[""] | None = None

    @field_validator("prompt", mode="before")
    @classmethod
    def _one_prompt(cls, value: object) -> object:
        if not isinstance(value, list) or all(type(item) is int for item in value):
            return value
        if len(value) != 1:
            raise ValueError("one prompt a request: a text, or a list of token ids")
        return value[0]


def _part(part: object) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get("text") if isinstance(part, dict) and kind == "text" else None
    if not isinstance(text, str):
        raise ValueError(f"only parts of type text are understood, not {str(kind)[:40]!r}")
    return text


def fault_of(error: ValidationError) -> Fault:
    """The first thing that is wrong with a body, in one line."""
    found = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(part) for part in found["loc"])
    text = str(found["msg"]).removeprefix("Value error, ")
    if path.partition(".")[0] in UNSUPPORTED:
        path = path.partition(".")[0]
        text = UNSUPPORTED[path]
    elif found["type"] == "extra_forbidden":
        text = "this server knows no such parameter"
    elif found["type"] == "missing":
        text = "is missing"
    return Fault(400, f"{path}: {text}" if path else text, param=path or None)
