"""What a model directory says about its model: `config.json` → `ModelConfig`. Torch-free.

Both spellings of Hugging Face are read (rope_theta + rope_scaling, and rope_parameters). What this
engine does not know is refused by name: architectures, rope types.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .model_types import ModelConfig, ModelError, RopeConfig, expected_shapes, read_json
from .recipe import elsewhere

__all__ = [
    "ARCHITECTURES",
    "ROPE_TYPES",
    "ModelConfig",
    "ModelError",
    "RopeConfig",
    "expected_shapes",
    "ids_of",
    "read_config",
    "read_json",
]

ARCHITECTURES = (
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "Gemma3ForCausalLM",
)
ROPE_TYPES = ("default", "linear", "llama3", "yarn")
MAX_LAYERS = 1000
VISION = {"Gemma3ForConditionalGeneration": "Gemma3ForCausalLM"}  # only their text half is used
UNSUPPORTED = (
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "use_bidirectional_attention",
    "quantization_config",
)
# What transformers takes where a Gemma 3 config.json is silent, as those of its vision models are.
GEMMA3 = {
    "vocab_size": 262_208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": True,
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "rope_theta": 1_000_000.0,
}


def read_config(model_dir: Path | str) -> ModelConfig:
    """The configuration of the model in this directory, of a vision model its text half.

    Raises ModelError: no directory, no or broken config.json, an architecture, rope type or
    setting that this engine does not know, a value that is missing or contradicts another.
    """
    folder = Path(model_dir)
    if not folder.is_dir():
        raise ModelError(f"model directory {folder} does not exist")
    raw = read_json(folder / "config.json")
    try:
        return _read(folder, raw)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise ModelError(
            f"{folder / 'config.json'}: a value is of the wrong kind: {error}"
        ) from None


def _read(folder: Path, raw: dict[str, Any]) -> ModelConfig:
    names = raw.get("architectures") or ["none"]
    architecture = VISION.get(str(names[0]), str(names[0]))
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"unknown architecture {architecture!r} in {folder / 'config.json'} "
            f"(known: {', '.join(ARCHITECTURES)}); {elsewhere(folder)}"
        )
    if names[0] in VISION:
        ends: dict[str, Any] = {
            key: raw[key] for key in ("eos_token_id", "bos_token_id") if key in raw
        }
        raw = {**raw.get("text_config", {}), **ends}
    if architecture.startswith("Gemma3"):
        raw = {**GEMMA3, **raw}
    generation = folder / "generation_config.json"
    extra = read_json(generation) if generation.exists() else {}
    return _check(_Reader(raw, folder / "config.json").config(architecture, extra))


class _Reader:
    """Picks typed values out of config.json and names what is wrong."""

    def __init__(self, raw: Mapping[str, Any], path: Path) -> None:
        self.raw = raw
        self.path = path

    def config(self, architecture: str, generation: Mapping[str, Any]) -> ModelConfig:
        self.refuse_unknown()
        gemma, qwen2 = architecture.startswith("Gemma"), architecture.startswith("Qwen2")
        hidden, heads = self.integer("hidden_size"), self.integer("num_attention_heads")
        head_dim = self.integer("head_dim", hidden // heads)
        layers = self.integer("num_hidden_layers")
        if layers > MAX_LAYERS:  # lists as long are made before any weight is looked for
            raise ModelError(f"{self.path}: {layers} layers are past belief")
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
            tie_word_embeddings=bool(self.raw.get("tie_word_embeddings", False)),
            max_position_embeddings=self.integer("max_position_embeddings", 2048),
            bos_token_id=bos[0] if bos else None,
            eos_token_ids=tuple(dict.fromkeys(eos)),
            hidden_act=str(
                self.raw.get("hidden_activation") or self.raw.get("hidden_act") or "silu"
            ),
            attention_bias=bias or qwen2,
            attention_out_bias=bias and not qwen2,
            mlp_bias=bool(self.raw.get("mlp_bias", False)),
            layer_types=layer_types,
            sliding_window=window,
            rope_local=local,
            query_pre_attn_scalar=self.number("query_pre_attn_scalar", float(head_dim)),
            dtype=str(self.raw.get("dtype") or self.raw.get("torch_dtype") or "float32"),
        )

    def refuse_unknown(self) -> None:
        """Settings that change results and are not computed here."""
        used = [key for key in UNSUPPORTED if self.raw.get(key)]
        ropes = (self.raw.get(key) or {} for key in ("rope_parameters", "rope_scaling"))
        if any(v.get("partial_rotary_factor", 1) != 1 for v in (self.raw, *ropes)):
            used.append("partial_rotary_factor")
        if used:
            raise ModelError(
                f"{self.path}: {used[0]} is not computed here; {elsewhere(self.path.parent)}"
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
        theta = self.number("rope_theta", 10_000.0)
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
                f"(known: {', '.join(ROPE_TYPES)}); {elsewhere(self.path.parent)}"
            )
        numbers = {
            key: float(value)
            for key, value in values.items()
            if isinstance(value, int | float) and key != "rope_theta"
        }
        if numbers.get("factor", 1.0) <= 0:
            raise ModelError(f"{self.path}: the factor of rope type {kind!r} must be above 0")
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
            window = self.raw.get("sliding_window")
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
