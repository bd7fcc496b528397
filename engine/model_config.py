"""What a model directory says about its model: `config.json` → `ModelConfig`. Torch-free.

Both spellings of Hugging Face are read (rope_theta + rope_scaling, and rope_parameters). What this
engine does not know is refused by name: architectures, rope types. `expected_shapes` lists every
weight that a checkpoint of such a configuration holds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from engine.types import EngineError

ARCHITECTURES = (
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "Gemma3ForCausalLM",
)
ROPE_TYPES = ("default", "linear", "llama3", "yarn")
ELSEWHERE = (
    "run it behind an OpenAI-compatible endpoint instead (for example `vllm serve MODEL`) "
    "and name that endpoint as the player"
)


class ModelError(EngineError):
    """A model directory that cannot be used; one line that names the thing and the fix."""


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary positions: `kind` is one of ROPE_TYPES, `parameters` are its own (factor, …)."""

    kind: str
    theta: float
    parameters: tuple[tuple[str, float], ...] = ()

    def get(self, name: str, default: float | None = None) -> float:
        """One parameter by its name in config.json. Raises ModelError if absent, no default."""
        value = dict(self.parameters).get(name, default)
        if value is None:
            raise ModelError(f"config.json: rope type {self.kind!r} needs {name!r}")
        return value


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a decoder. Sizes are counts of elements.

    `layer_types` has one of full_attention, sliding_attention a layer; sliding layers see
    `sliding_window` positions and use `rope_local` where it is set.
    """

    architecture: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rope: RopeConfig
    rms_norm_eps: float
    tie_word_embeddings: bool
    max_position_embeddings: int
    bos_token_id: int | None
    eos_token_ids: tuple[int, ...]
    hidden_act: str
    attention_bias: bool
    attention_out_bias: bool
    mlp_bias: bool
    layer_types: tuple[str, ...]
    sliding_window: int | None
    rope_local: RopeConfig | None
    query_pre_attn_scalar: float  # attention scores are scaled by its −1/2 power
    dtype: str  # of the stored weights, as config.json says

    @property
    def num_parameters(self) -> int:
        """Elements of all weights, a tied head counted once."""
        return sum(prod(shape) for shape in expected_shapes(self).values())


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object. Raises ModelError naming the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path.parent} is no model directory: {path.name} is missing") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} is not a JSON object")
    return value


def read_config(model_dir: Path | str) -> ModelConfig:
    """The configuration of the model in this directory.

    Raises ModelError: no directory, no or broken config.json, an architecture or rope type that
    this engine does not know, a value that is missing or contradicts another.
    """
    folder = Path(model_dir)
    if not folder.is_dir():
        raise ModelError(f"model directory {folder} does not exist")
    raw = read_json(folder / "config.json")
    if "text_config" in raw and "hidden_size" not in raw:  # a vision model's text half
        raw = {**raw["text_config"], **{k: v for k, v in raw.items() if k == "architectures"}}
    names = raw.get("architectures") or ["none"]
    architecture = str(names[0])
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"unknown architecture {architecture!r} in {folder / 'config.json'} "
            f"(known: {', '.join(ARCHITECTURES)}); {ELSEWHERE}"
        )
    generation = folder / "generation_config.json"
    extra = read_json(generation) if generation.exists() else {}
    return _check(_Reader(raw, folder / "config.json").config(architecture, extra))


class _Reader:
    """Picks typed values out of config.json and names what is wrong."""

    def __init__(self, raw: Mapping[str, Any], path: Path) -> None:
        self.raw = raw
        self.path = path

    def config(self, architecture: str, generation: Mapping[str, Any]) -> ModelConfig:
        gemma, qwen2 = architecture.startswith("Gemma"), architecture.startswith("Qwen2")
        hidden, heads = self.integer("hidden_size"), self.integer("num_attention_heads")
        head_dim = self.integer("head_dim", 256 if gemma else hidden // heads)
        layers = self.integer("num_hidden_layers")
        bias = bool(self.raw.get("attention_bias", False))
        main, local = self.ropes(gemma)
        window, layer_types = self.windows(architecture, layers)
        eos = ids_of(generation.get("eos_token_id")) + ids_of(self.raw.get("eos_token_id"))
        bos = ids_of(self.raw.get("bos_token_id")) + ids_of(generation.get("bos_token_id"))
        return ModelConfig(
            architecture=architecture,
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=self.integer("num_key_value_heads", heads),
            head_dim=head_dim,
            intermediate_size=self.integer("intermediate_size"),
            vocab_size=self.integer("vocab_size"),
            rope=main,
            rms_norm_eps=self.number("rms_norm_eps", 1e-6),
            tie_word_embeddings=bool(self.raw.get("tie_word_embeddings", gemma)),
            max_position_embeddings=self.integer("max_position_embeddings", 2048),
            bos_token_id=bos[0] if bos else None,
            eos_token_ids=tuple(dict.fromkeys(eos)),
            hidden_act=str(
                self.raw.get("hidden_activation")
                or self.raw.get("hidden_act")
                or ("gelu_pytorch_tanh" if gemma else "silu")
            ),
            attention_bias=bias or qwen2,
            attention_out_bias=bias and not qwen2,
            mlp_bias=bool(self.raw.get("mlp_bias", False)),
            layer_types=layer_types,
            sliding_window=window,
            rope_local=local,
            query_pre_attn_scalar=self.number(
                "query_pre_attn_scalar", 256.0 if gemma else float(head_dim)
            ),
            dtype=str(self.raw.get("dtype") or self.raw.get("torch_dtype") or "float32"),
        )

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.raw.get(key)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(f"{self.path}: {key} must be a positive integer, found {value!r}")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.raw.get(key)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ModelError(f"{self.path}: {key} must be a positive number, found {value!r}")
        return float(value)

    def ropes(self, gemma: bool) -> tuple[RopeConfig, RopeConfig | None]:
        """Both spellings: rope_theta + rope_scaling, and the newer rope_parameters."""
        parameters = self.raw.get("rope_parameters") or {}
        theta = self.number("rope_theta", 1_000_000.0 if gemma else 10_000.0)
        if "full_attention" in parameters:
            full = self.rope(parameters["full_attention"], theta)
            local = parameters.get("sliding_attention")
            return full, self.rope(local, 10_000.0) if local else None
        main = self.rope(parameters or self.raw.get("rope_scaling") or {}, theta)
        if not gemma:
            return main, None
        return main, RopeConfig("default", self.number("rope_local_base_freq", 10_000.0))

    def rope(self, values: Mapping[str, Any], theta: float) -> RopeConfig:
        kind = str(values.get("rope_type") or values.get("type") or "default")
        if kind not in ROPE_TYPES:
            raise ModelError(
                f"unknown rope type {kind!r} in {self.path} "
                f"(known: {', '.join(ROPE_TYPES)}); {ELSEWHERE}"
            )
        numbers = {
            key: float(value)
            for key, value in values.items()
            if isinstance(value, int | float) and key != "rope_theta"
        }
        theta = float(values.get("rope_theta") or theta)
        return RopeConfig(kind, theta, tuple(sorted(numbers.items())))

    def windows(self, architecture: str, layers: int) -> tuple[int | None, tuple[str, ...]]:
        """The sliding window, if any layer uses it, and each layer's kind."""
        full, sliding = "full_attention", "sliding_attention"
        window, default = None, [full] * layers
        if architecture.startswith("Mistral"):
            window = self.raw.get("sliding_window", 4096)  # transformers' values where unsaid
            default = [sliding] * layers
        elif architecture.startswith("Gemma"):
            window = self.raw.get("sliding_window", 4096)
            every = self.integer("sliding_window_pattern", 6)
            default = [full if (i + 1) % every == 0 else sliding for i in range(layers)]
        elif architecture.startswith("Qwen") and self.raw.get("use_sliding_window"):
            window = self.raw.get("sliding_window", 4096)
            first = int(self.raw.get("max_window_layers", 28))
            default = [sliding if i >= first else full for i in range(layers)]
        kinds = self.raw.get("layer_types") or default
        if len(kinds) != layers or set(kinds) - {full, sliding}:
            raise ModelError(
                f"{self.path}: layer_types must say {full} or {sliding} {layers} times"
            )
        if not window:
            kinds = [full] * layers
        return (int(window) if window and sliding in kinds else None), tuple(kinds)


def ids_of(value: Any) -> tuple[int, ...]:
    """A token id, a list of them, or none."""
    if isinstance(value, list):
        return tuple(int(item) for item in value)
    return () if value is None else (int(value),)


def _check(config: ModelConfig) -> ModelConfig:
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    if heads % kv_heads:
        raise ModelError(f"config.json: {heads} heads cannot share {kv_heads} key-value heads")
    if config.head_dim % 2:
        raise ModelError(f"config.json: head_dim {config.head_dim} is odd, rotary needs pairs")
    for token in config.eos_token_ids:
        if not 0 <= token < config.vocab_size:
            raise ModelError(f"config.json: eos token {token} is outside the vocabulary")
    return config


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every weight a checkpoint of this configuration must hold, by its Hugging Face name.

    Matrices are [out, in]. A tied head is not listed.
    """
    h, inner = config.hidden_size, config.intermediate_size
    q = config.num_attention_heads * config.head_dim
    kv = config.num_key_value_heads * config.head_dim
    layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj.weight": (q, h),
        "self_attn.k_proj.weight": (kv, h),
        "self_attn.v_proj.weight": (kv, h),
        "self_attn.o_proj.weight": (h, q),
        "mlp.gate_proj.weight": (inner, h),
        "mlp.up_proj.weight": (inner, h),
        "mlp.down_proj.weight": (h, inner),
        "input_layernorm.weight": (h,),
        "post_attention_layernorm.weight": (h,),
    }
    if config.attention_bias:
        layer |= {
            f"self_attn.{n}_proj.bias": (size,) for n, size in zip("qkv", (q, kv, kv), strict=True)
        }
    if config.attention_out_bias:
        layer["self_attn.o_proj.bias"] = (h,)
    if config.mlp_bias:
        layer |= {"mlp.gate_proj.bias": (inner,), "mlp.up_proj.bias": (inner,)}
        layer["mlp.down_proj.bias"] = (h,)
    if config.architecture.startswith(("Qwen3", "Gemma3")):
        layer |= {f"self_attn.{n}_norm.weight": (config.head_dim,) for n in "qk"}
    if config.architecture.startswith("Gemma3"):
        layer |= {f"{n}_feedforward_layernorm.weight": (h,) for n in ("pre", "post")}
    shapes = {"model.embed_tokens.weight": (config.vocab_size, h), "model.norm.weight": (h,)}
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, h)
    for i in range(config.num_hidden_layers):
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes
