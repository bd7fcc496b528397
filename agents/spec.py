"""Everything a player can be configured with: frozen models, told apart by `kind`.

Imports no torch, no engine and no tokenizer. An unknown key is an error that suggests the nearest
one. `parse_spec` reads the command line's short form:

    random   material   stockfish   fairy-stockfish?nodes=2000
    uci:/path/to/engine?nodes=1000&option.Hash=16
    smollm2-135m   smollm2-135m:choice?template=board&temperature=0.7
    llm:/path/to/model:constrained   scripted:crash   scripted:e2e4,g1f3

that is `WHO[:MODE][?key=value&key=value]`; keys are the fields below, nested ones with a dot
(`policy.attempts=1`, `engine.max_num_seqs=8`).
"""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args
from urllib.parse import parse_qsl

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from .policy import Policy
from .templates import TEMPLATES

KNOWN_MODELS: Mapping[str, str] = {"smollm2-135m": "q4_1", "gemma3-270m": "q4_k_m"}
"""Models with a name of their own → precision of their file."""

KNOWN_ENGINES: Mapping[str, str] = {"stockfish": "stockfish", "fairy-stockfish": "fairy-stockfish"}
"""UCI engines with a name of their own → the Debian package that brings them."""

Notation = Literal["uci", "san", "korean", "hanja"]
Mode = Literal["constrained", "choice", "free", "think"]
MODES: tuple[Mode, ...] = ("constrained", "choice", "free", "think")


class SpecError(ValueError):
    """A player that is configured wrongly; one line that names the key and the fix."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Player(_Frozen):
    name: str = Field(default="", max_length=80)  # "" = named after what it is


class RandomSpec(_Player):
    """Any legal move, evenly."""

    kind: Literal["random"] = "random"


class MaterialSpec(_Player):
    """The move that leaves most material, one ply deep: a yardstick for both games."""

    kind: Literal["material"] = "material"


class UciSpec(_Player):
    """An engine that speaks UCI. With no limit given: the clock where there is one, else nodes."""

    kind: Literal["uci"] = "uci"
    path: str = Field(min_length=1)  # a file, or a name to be found on PATH or in /usr/games
    args: tuple[str, ...] = ()
    nodes: int | None = Field(default=None, ge=1)
    depth: int | None = Field(default=None, ge=1)
    movetime: int | None = Field(default=None, ge=1)  # milliseconds; timing-dependent
    elo: int | None = Field(default=None, ge=1)  # UCI_Elo with UCI_LimitStrength
    options: dict[str, bool | int | str] = Field(default_factory=dict)
    processes: int = Field(default=2, ge=1, le=64)  # that may search at the same time
    startup_timeout: float = Field(default=10.0, gt=0)  # seconds
    stall_timeout: float = Field(default=60.0, gt=0)  # seconds; beyond the clock or movetime
    restarts: int = Field(default=3, ge=0)  # times a dead process is replaced for later moves


class EngineOptions(_Frozen):
    """How the in-process engine runs a model; names and meanings are the engine's own."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = "auto"
    quantization: str | None = None
    max_model_len: int | None = Field(default=None, ge=16)
    max_num_seqs: int | None = Field(default=None, ge=1)
    max_num_batched_tokens: int | None = Field(default=None, ge=1)
    max_num_trie_tokens: int | None = Field(default=None, ge=1)
    max_num_queued_reqs: int | None = Field(default=None, ge=0)
    block_size: int | None = Field(default=None, ge=1)
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    kv_cache_memory_bytes: int | None = Field(default=None, ge=1)
    num_gpu_blocks_override: int | None = Field(default=None, ge=1)
    kv_cache_dtype: str | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    batching: Literal["continuous", "static", "serial"] | None = None
    deterministic: bool | None = None
    kv_fraction: float | None = Field(default=None, gt=0, le=1)  # of [memory] kv_cache_bytes

    @property
    def sizes_kv(self) -> bool:
        """Whether these options say themselves how large the KV pool is."""
        return self.kv_cache_memory_bytes is not None or self.num_gpu_blocks_override is not None


class _Prompted(_Player):
    """What a language model is asked and how, wherever it runs."""

    model: str = Field(min_length=1)  # a known name, a directory, a Hugging Face id; the server's
    mode: Mode = "constrained"
    template: str = "history"
    notation: Notation = "uci"  # lists, scores and reads moves
    temperature: float = Field(default=0.0, ge=0)
    top_k: int = Field(default=0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    min_p: float = Field(default=0.0, ge=0, le=1)
    repetition_penalty: float = Field(default=1.0, gt=0)
    max_tokens: int = Field(default=64, ge=1)  # of one answer in `free`
    think_tokens: int = Field(default=256, ge=1)  # of the reasoning in `think`
    thinking: bool | None = None  # the switch of the model's own chat template
    terminator: Literal["none", "eos", "newline"] = "none"
    priority: int = 0
    timeout_s: float | None = Field(default=None, gt=0)  # a request's; then no result
    policy: Policy = Field(default_factory=Policy)

    @field_validator("template")
    @classmethod
    def _known_template(cls, name: str) -> str:
        if name not in TEMPLATES:
            known = ", ".join(TEMPLATES)
            raise ValueError(f"unknown template {name!r}{nearest(name, TEMPLATES)}: known: {known}")
        return name


class LlmSpec(_Prompted):
    """A language model on the in-process engine. Mode, precision and file make the player."""

    kind: Literal["llm"] = "llm"
    engine: EngineOptions = Field(default_factory=EngineOptions)


_URL = r"^https?://[^/\s@]+(/\S*)?$"  # no user and password: keys come from the environment
Constraint = Literal[
    "none",
    "structured_outputs",
    "guided_choice",
    "regex",
    "grammar",
    "json_schema",
    "ollama_format",
]
"""How a server is held to the legal moves: vLLM, older vLLM, SGLang, llama.cpp, hosted, Ollama."""


class EndpointSpec(_Prompted):
    """A language model behind HTTP: vLLM, SGLang, llama.cpp, Ollama, hosted."""

    kind: Literal["endpoint"] = "endpoint"
    base_url: str = Field(pattern=_URL)  # of OpenAI's API it ends in /v1
    api: Literal["openai", "ollama"] = "openai"
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    mode: Mode = "free"
    constraint: Constraint = "none"
    num_ctx: int | None = Field(default=None, ge=16)  # Ollama's context, tokens
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)  # goes into every request
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    max_concurrency: int = Field(default=16, ge=1, le=4096)  # requests in flight at once
    retries: int = Field(default=5, ge=0, le=20)
    timeout_s: float | None = Field(default=300.0, gt=0)  # of one try; then no result
    metrics_url: str | None = Field(default=None, pattern=_URL)

    @model_validator(mode="after")
    def _possible(self) -> "EndpointSpec":
        if self.mode in ("choice", "think"):
            raise ValueError(
                f"mode {self.mode!r} scores every legal move, which endpoints do not offer: "
                "use constrained or free, or run the model here (kind = 'llm')"
            )
        if (self.mode == "constrained") != (self.constraint != "none"):
            raise ValueError(
                "mode 'constrained' and a constraint go together: set both, such as "
                "mode = 'constrained', constraint = 'structured_outputs'"
            )
        if (self.constraint == "ollama_format") != (
            self.api == "ollama" and self.constraint != "none"
        ):
            raise ValueError("constraint 'ollama_format' and api 'ollama' go together")
        if self.num_ctx is not None and self.api != "ollama":
            raise ValueError("num_ctx is Ollama's: other servers take their context when started")
        return self


class HumanSpec(_Player):
    """A person at this terminal."""

    kind: Literal["human"] = "human"
    notation: Notation = "uci"  # of what is shown; any form that can be read may be typed


class MqttSpec(_Player):
    """A player at the other end of an MQTT 5 broker, who takes requests by its own name."""

    kind: Literal["mqtt"] = "mqtt"
    broker: str = Field(pattern=r"^mqtts?://[^/\s@:]+(:\d+)?$")  # mqtts: over TLS
    agent: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")  # the name it answers to
    prefix: str = Field(default="madang", pattern=r"^[^#+\s$][^#+\s]{0,64}$")
    username: str = ""
    password_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    notation: Notation = "uci"
    max_pending: int = Field(default=64, ge=1, le=10_000)  # requests on their way at once
    startup_timeout: float = Field(default=30.0, gt=0)  # seconds until it has to be there
    stall_timeout: float = Field(default=120.0, gt=0)  # seconds for one move, absences included
    policy: Policy = Field(default_factory=Policy)


Behaviour = Literal[
    "moves", "crash", "stall", "flood", "illegal", "late", "wrong_turn", "fail_start", "garbage"
]


class ScriptedSpec(_Player):
    """A test double: a list of moves, then (or from `after` own moves on) one kind of misbehaviour.

    `late` waits `seconds` before each answer; `stall` never answers.
    """

    kind: Literal["scripted"] = "scripted"
    behaviour: Behaviour = "moves"
    moves: tuple[str, ...] = ()  # UCI, by own move number; the first legal move where it runs out
    after: int = Field(default=0, ge=0)  # own moves played properly before misbehaving
    seconds: float = Field(default=0.5, ge=0)


AgentSpec = Annotated[
    RandomSpec
    | MaterialSpec
    | UciSpec
    | LlmSpec
    | EndpointSpec
    | HumanSpec
    | MqttSpec
    | ScriptedSpec,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[AgentSpec] = TypeAdapter(AgentSpec)
SPECS: Mapping[str, type[_Player]] = {
    "random": RandomSpec,
    "material": MaterialSpec,
    "uci": UciSpec,
    "llm": LlmSpec,
    "endpoint": EndpointSpec,
    "human": HumanSpec,
    "mqtt": MqttSpec,
    "scripted": ScriptedSpec,
}


def load_spec(data: Mapping[str, Any]) -> AgentSpec:
    """The player that a table of keys describes. Raises SpecError with the nearest key."""
    try:
        return _ADAPTER.validate_python(dict(data))
    except ValidationError as error:
        raise SpecError(explain(error)) from None


def parse_spec(text: str) -> AgentSpec:
    """The player that a command-line word describes. Raises SpecError."""
    who, _, query = text.partition("?")
    data = _who(who.strip())
    for key, value in parse_qsl(query, keep_blank_values=True, separator="&"):
        _put(data, key, value)
    try:
        return load_spec(data)
    except SpecError as error:
        raise SpecError(f"{text}: {error}") from None


def nearest(word: str, known: Any) -> str:
    """` (did you mean …?)`, or nothing where no known word is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def explain(error: ValidationError) -> str:
    """The first fault of a player's keys in one line."""
    fault = error.errors()[0]
    where = [str(part) for part in fault["loc"]]
    model = SPECS.get(where[0]) if where else None
    path = ".".join(where[1:] if model else where)
    if fault["type"] == "extra_forbidden":
        known = _fields_at(model, where[1:-1])
        return f"unknown key {path!r}{nearest(where[-1], known)}: known are {', '.join(known)}"
    if fault["type"] == "union_tag_invalid":
        tag = str(fault.get("ctx", {}).get("tag", ""))
        return f"unknown kind {tag!r}{nearest(tag, SPECS)}: known are {', '.join(SPECS)}"
    if fault["type"] == "union_tag_not_found":
        return f"a player needs a kind: one of {', '.join(SPECS)}"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "value_error":
        return f"{path}: {message}"
    given = fault.get("input")
    got = f", not {given!r}" if isinstance(given, str | int | float | bool) else ""
    return f"{path or 'player'}: {message[:1].lower()}{message[1:]}{got}"


def _fields_at(model: type[BaseModel] | None, path: list[str]) -> list[str]:
    fields: type[BaseModel] | None = model
    for part in path:
        if fields is None or part not in fields.model_fields:
            return []
        inner = fields.model_fields[part].annotation
        fields = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    return sorted(fields.model_fields) if fields is not None else []


def _who(who: str) -> dict[str, Any]:
    head, _, rest = who.partition(":")
    if head in ("random", "material", "human") and not rest:
        return {"kind": head}
    if head in KNOWN_ENGINES and not rest:
        return {"kind": "uci", "path": head}
    if head == "uci" and rest:
        return {"kind": "uci", "path": rest}
    if head == "scripted" and rest:
        return _scripted(rest)
    if head == "llm" and rest:
        return _llm(rest)
    if head == "mqtt" and rest:
        return {"kind": "mqtt", "agent": rest}
    if head == "endpoint" and rest:
        return {"kind": "endpoint", "model": rest}
    if head in KNOWN_MODELS:
        return _llm(who)
    known = ["random", "material", "human", *KNOWN_ENGINES, *KNOWN_MODELS]
    raise SpecError(
        f"unknown player {who!r}{nearest(head, known)}: known are {', '.join(known)}; "
        "others are written uci:/path/to/engine or llm:/path/to/model:MODE"
    )


def _scripted(rest: str) -> dict[str, Any]:
    if rest in get_args(Behaviour):
        return {"kind": "scripted", "behaviour": rest}
    return {"kind": "scripted", "moves": tuple(rest.split(","))}


def _llm(text: str) -> dict[str, Any]:
    model, _, mode = text.rpartition(":")
    if not model:
        return {"kind": "llm", "model": text}
    if mode not in MODES:
        if "/" in mode or "\\" in mode:  # the colon belongs to a path
            return {"kind": "llm", "model": text}
        raise SpecError(
            f"unknown mode {mode!r}{nearest(mode, MODES)}: known are {', '.join(MODES)}"
        )
    return {"kind": "llm", "model": model, "mode": mode}


def _put(data: dict[str, Any], key: str, value: str) -> None:
    """One `key=value` of the query; `option.Hash` is a UCI option, other dots are nested tables."""
    if key.startswith("option."):
        data.setdefault("options", {})[key.removeprefix("option.")] = _scalar(value)
        return
    head, _, rest = key.partition(".")
    if rest:
        inner = data.setdefault(head, {})
        if not isinstance(inner, dict):
            raise SpecError(f"{head!r} is given both as a value and as a table")
        _put(inner, rest, value)
        return
    data[head] = tuple(value.split(",")) if head in ("moves", "args") else _scalar(value)


def _scalar(value: str) -> bool | int | str:
    lowered = value.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    return int(value) if value.lstrip("-").isdecimal() else value
