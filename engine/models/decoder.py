"""The decoder that all architectures share: embedding, layers, last norm, head.

A file of an architecture builds one from weights. Knows nothing of requests, blocks or sampling.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from engine.layers.attention import Attention, StepTensors
from engine.layers.kv_cache import KVCache
from engine.layers.mlp import GatedMLP
from engine.model_config import ModelConfig
from kernels.linear import PackedWeight, linear, pack
from kernels.rms_norm import rms_norm
from kernels.store_kv import KVLayer


class Layer(Protocol):
    """One layer; `wanted` int64 [n] keeps only these rows after attention (the last layer's)."""

    def __call__(
        self, x: Tensor, pool: KVLayer, step: StepTensors, wanted: Tensor | None
    ) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class PreNormLayer:
    """x + attention(norm(x)), then + MLP(norm(x)): Llama, Mistral, Qwen2, Qwen3."""

    attention_norm: Tensor
    attention: Attention
    mlp_norm: Tensor
    mlp: GatedMLP
    eps: float

    def __call__(
        self, x: Tensor, pool: KVLayer, step: StepTensors, wanted: Tensor | None
    ) -> Tensor:
        mixed = self.attention.mix(rms_norm(x, self.attention_norm, self.eps), pool, step)
        if wanted is not None:
            x, mixed = x.index_select(0, wanted), mixed.index_select(0, wanted)
        x = linear(mixed, self.attention.output, x)
        return self.mlp(rms_norm(x, self.mlp_norm, self.eps), x)


class Head:
    """Hidden rows → logits: `rows` [vocabulary, hidden] for products with a few tokens, `packed`
    for those with all. It is packed when it is first needed: masked walks never need it."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    @cached_property
    def packed(self) -> PackedWeight:
        return pack(self.rows)


@dataclass(frozen=True, slots=True)
class Decoder:
    """`embedding` [vocabulary, hidden], which may be the head's rows too; `ropes` complex64
    [positions, head_dim/2] by kind of layer; `embedding_scale` multiplies embedded rows."""

    config: ModelConfig
    embedding: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    output: Head
    ropes: Mapping[str, Tensor]
    embedding_scale: float = 1.0

    @property
    def head(self) -> PackedWeight:
        return self.output.packed

    @property
    def head_rows(self) -> Tensor:
        return self.output.rows

    @property
    def max_model_len(self) -> int:
        return min(len(table) for table in self.ropes.values())

    def forward(self, step: StepTensors, cache: KVCache, num_layers: int | None = None) -> Tensor:
        """Normed hidden rows [wanted, hidden] of a step. `num_layers`: only the first so many."""
        x = torch.nn.functional.embedding(step.input_ids, self.embedding)
        if self.embedding_scale != 1.0:
            x = x * self.embedding_scale
        last = (num_layers or len(self.layers)) - 1
        for i, layer in enumerate(self.layers[: last + 1]):
            x = layer(x, cache.layer(i), step, step.wanted if i == last else None)
        return rms_norm(x, self.norm, self.config.rms_norm_eps)
