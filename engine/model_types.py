"""The shape of a model: its configuration as the engine uses it, and every weight it must have.

Torch-free. `model_config` reads one from a directory.
"""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from engine.types import EngineError


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
