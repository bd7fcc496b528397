"""Gemma 3, its text half: norms before and after attention and MLP, scaled embeddings, gelu gates,
norms over heads, and two rotary tables, one for layers with a window and one for those without.

Norm weights are stored less one; the one is added when they are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from engine.layers.attention import Attention, HeadNorms, StepTensors
from engine.layers.mlp import GatedMLP
from engine.layers.rope import rope_table
from engine.model_config import ModelConfig, ModelError
from kernels.gelu_mul import gelu_mul
from kernels.linear import linear
from kernels.rms_norm import rms_norm
from kernels.store_kv import KVLayer

from .decoder import Decoder, Head

OFFSET = 1.0  # of norm weights


@dataclass(frozen=True, slots=True)
class SandwichLayer:
    """x + norm(attention(norm(x))), then + norm(MLP(norm(x))). Norm weights are [hidden]."""

    attention_norm: Tensor
    attention: Attention
    attention_out_norm: Tensor
    mlp_norm: Tensor
    mlp: GatedMLP
    mlp_out_norm: Tensor
    eps: float

    def __call__(
        self, x: Tensor, pool: KVLayer, step: StepTensors, wanted: Tensor | None
    ) -> Tensor:
        mixed = self.attention.mix(rms_norm(x, self.attention_norm, self.eps), pool, step)
        if wanted is not None:
            x, mixed = x.index_select(0, wanted), mixed.index_select(0, wanted)
        x = x + rms_norm(linear(mixed, self.attention.output), self.attention_out_norm, self.eps)
        inner = self.mlp(rms_norm(x, self.mlp_norm, self.eps))
        return x + rms_norm(inner, self.mlp_out_norm, self.eps)


def load_gemma3(weights: Mapping[str, Tensor], config: ModelConfig, num_positions: int) -> Decoder:
    """Raises ModelError on an activation other than gelu's tanh approximation."""
    if config.hidden_act != "gelu_pytorch_tanh":
        raise ModelError(f"config.json: hidden_act {config.hidden_act!r} is not gelu_pytorch_tanh")
    embedding = weights["model.embed_tokens.weight"].float()
    head = weights.get("lm_head.weight")
    head_rows = embedding if head is None else head.float()
    local = config.rope_local or config.rope
    ropes = {"full_attention": config.rope, "sliding_attention": local}
    return Decoder(
        config=config,
        embedding=embedding,
        layers=tuple(_layer(weights, config, i) for i in range(config.num_hidden_layers)),
        norm=weights["model.norm.weight"].float() + OFFSET,
        output=Head(head_rows),
        ropes={
            kind: rope_table(rope, config.head_dim, num_positions)
            for kind, rope in ropes.items()
            if kind in config.layer_types
        },
        embedding_scale=config.hidden_size**0.5,
    )


def _layer(weights: Mapping[str, Tensor], config: ModelConfig, i: int) -> SandwichLayer:
    def norm(name: str) -> Tensor:
        return weights[f"model.layers.{i}.{name}_layernorm.weight"].float() + OFFSET

    return SandwichLayer(
        attention_norm=norm("input"),
        attention=Attention.load(weights, i, config, HeadNorms.load(weights, i, config, OFFSET)),
        attention_out_norm=norm("post_attention"),
        mlp_norm=norm("pre_feedforward"),
        mlp=GatedMLP.load(weights, i, gelu_mul),
        mlp_out_norm=norm("post_feedforward"),
        eps=config.rms_norm_eps,
    )
