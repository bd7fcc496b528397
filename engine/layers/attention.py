"""Attention of one layer: fused projection, optional head norms, rotary, paged write, mix, output.

Knows nothing of requests; what a step looks like comes in as `StepTensors`, made once a step.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model_config import ModelConfig
from kernels.linear import PackedWeight, linear, pack
from kernels.paged_attention import AttentionPlan, paged_attention
from kernels.rms_norm import rms_norm
from kernels.rope import rope_
from kernels.store_kv import KVLayer, StorePlan, store_kv

from .rope import interleave


@dataclass(frozen=True, slots=True)
class StepTensors:
    """What all layers of a step share.

    `input_ids` int64 [rows]; `turns` complex64 [rows, head_dim/2] by kind of layer
    (full_attention, sliding_attention), like `plans`; `wanted` int64 [n]: rows that meet the head.
    """

    input_ids: Tensor
    wanted: Tensor
    store: StorePlan
    turns: Mapping[str, Tensor]
    plans: Mapping[str, AttentionPlan]


@dataclass(frozen=True, slots=True)
class HeadNorms:
    """RMS norms over every query and key head (Qwen3, Gemma 3), permuted like their heads."""

    query: Tensor
    key: Tensor
    eps: float

    @classmethod
    def load(
        cls, weights: Mapping[str, Tensor], layer: int, config: ModelConfig, offset: float = 0.0
    ) -> "HeadNorms":
        """`offset` is added to the stored weights (1 in Gemma)."""
        query, key = (
            interleave(
                weights[f"model.layers.{layer}.self_attn.{name}_norm.weight"].float() + offset,
                config.head_dim,
            )
            for name in "qk"
        )
        return cls(query, key, config.rms_norm_eps)


@dataclass(frozen=True, slots=True)
class Attention:
    """`kind` picks rotary table and plan; `scale` multiplies scores."""

    qkv: PackedWeight
    output: PackedWeight
    heads: int
    kv_heads: int
    head_dim: int
    scale: float
    kind: str
    norms: HeadNorms | None = None

    @classmethod
    def load(
        cls,
        weights: Mapping[str, Tensor],
        layer: int,
        config: ModelConfig,
        norms: HeadNorms | None = None,
    ) -> "Attention":
        prefix = f"model.layers.{layer}.self_attn."

        def part(name: str) -> Tensor | None:
            found = weights.get(prefix + name)
            if found is None:
                return None
            found = found.float()
            return interleave(found, config.head_dim) if name[0] in "qk" else found

        biases = [bias for p in "qkv" if (bias := part(f"{p}_proj.bias")) is not None]
        matrices = [matrix for p in "qkv" if (matrix := part(f"{p}_proj.weight")) is not None]
        qkv = pack(torch.cat(matrices), torch.cat(biases) if biases else None)
        return cls(
            qkv=qkv,
            output=pack(weights[prefix + "o_proj.weight"].float(), part("o_proj.bias")),
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            scale=config.query_pre_attn_scalar**-0.5,
            kind=config.layer_types[layer],
            norms=norms,
        )

    def mix(self, x: Tensor, pool: KVLayer, step: StepTensors) -> Tensor:
        """Normed rows [rows, hidden] → attended heads [rows, heads · head_dim], before `output`."""
        rows = len(x)
        turned = self.heads + self.kv_heads
        heads = linear(x, self.qkv).view(rows, turned + self.kv_heads, self.head_dim)
        if self.norms is not None:
            query, key = heads[:, : self.heads], heads[:, self.heads : turned]
            query.copy_(rms_norm(query, self.norms.query, self.norms.eps))
            key.copy_(rms_norm(key, self.norms.key, self.norms.eps))
        rope_(heads[:, :turned], step.turns[self.kind])
        q, k, v = heads[:, : self.heads], heads[:, self.heads : turned], heads[:, turned:]
        store_kv(k, v, pool, step.store)
        mixed = paged_attention(q, k, v, pool, step.plans[self.kind], self.scale)
        return mixed.view(rows, self.heads * self.head_dim)
