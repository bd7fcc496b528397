"""Rotary tables of the kinds default, linear, llama3 and yarn, as the papers define them.

Tables are made once, in float64, up to the longest position served, and hold complex64 units (times
yarn's scale) [positions, head_dim/2]. Also the permutation that lays a checkpoint's halves
(i, i + size/2) side by side, which `kernels.rope` expects.
"""

import math
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from engine.model_config import RopeConfig

_made: WeakValueDictionary[tuple[RopeConfig, int, int], Tensor] = WeakValueDictionary()


def rope_table(rope: RopeConfig, head_dim: int, num_positions: int) -> Tensor:
    """complex64 [num_positions, head_dim/2]; the same tensor while somebody holds it."""
    key = (rope, head_dim, num_positions)
    table = _made.get(key)
    if table is None:
        table = _made[key] = _table(rope, head_dim, num_positions)
    return table


def _table(rope: RopeConfig, head_dim: int, num_positions: int) -> Tensor:
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    frequencies = rope.theta**-exponents
    scale = 1.0
    if rope.kind == "linear":
        frequencies = frequencies / rope.get("factor")
    elif rope.kind == "llama3":
        frequencies = _llama3(rope, frequencies)
    elif rope.kind == "yarn":
        frequencies, scale = _yarn(rope, frequencies, head_dim)
    # float32 from here on: published weights were trained on angles rounded so
    positions = torch.arange(num_positions, dtype=torch.float32)
    angles = torch.outer(positions, frequencies.float())
    return torch.polar(torch.full_like(angles, scale), angles)


def _llama3(rope: RopeConfig, frequencies: Tensor) -> Tensor:
    """Long waves are slowed by `factor`, short ones kept, those between blended (Llama 3.1)."""
    factor, old = rope.get("factor"), rope.get("original_max_position_embeddings")
    low, high = rope.get("low_freq_factor"), rope.get("high_freq_factor")
    turns = old * frequencies / (2 * math.pi)  # over the original context
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor


def _yarn(rope: RopeConfig, frequencies: Tensor, head_dim: int) -> tuple[Tensor, float]:
    """Interpolation by parts and the temperature of attention (Peng et al. 2023)."""
    factor, old = rope.get("factor"), rope.get("original_max_position_embeddings")

    def dimension(turns: float) -> float:
        """Where a pair makes so many turns over the original context."""
        return head_dim * math.log(old / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    low, high = dimension(rope.get("beta_fast", 32.0)), dimension(rope.get("beta_slow", 1.0))
    if rope.get("truncate", 1.0):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    pairs = torch.arange(head_dim // 2, dtype=torch.float64)
    slowed = ((pairs - low) / max(high - low, 0.001)).clamp(0, 1)
    scale = rope.get("attention_factor", 0.0) or _yarn_scale(rope, factor)
    return slowed * frequencies / factor + (1 - slowed) * frequencies, scale


def _yarn_scale(rope: RopeConfig, factor: float) -> float:
    def scale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    all_dims = rope.get("mscale_all_dim", 0.0)
    if all_dims and (weight := rope.get("mscale", 0.0)):
        return scale(weight) / scale(all_dims)
    return scale(1.0)


def interleave(weight: Tensor, head_dim: int) -> Tensor:
    """Rows of every head from halves to pairs; [heads · head_dim, …] or [head_dim, …]."""
    halves = weight.reshape(-1, 2, head_dim // 2, *weight.shape[1:])
    return halves.transpose(1, 2).reshape(weight.shape).contiguous()
