"""The plain twin, and how int8 entries are made."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

INT8_MAX = 127.0


@dataclass(frozen=True, slots=True)
class KVLayer:
    """The pool of one layer: [blocks, kv_heads, block_size, head_dim] each; int8 with scales
    float32 [blocks, kv_heads, block_size]."""

    keys: Tensor
    values: Tensor
    key_scales: Tensor | None = None
    value_scales: Tensor | None = None


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Which rows are written, and where: made once a step, used by every layer.

    `rows` int64 [stored], None where all rows but the padding at the end are written;
    `targets` int64 [stored · kv_heads] are lines of the pool seen as [lines, head_dim].
    """

    rows: Tensor | None
    num_rows: int
    targets: Tensor


def plan_store(slots: NDArray[np.int64], kv_heads: int, block_size: int) -> StorePlan:
    """slots [rows], −1 for rows that are not stored."""
    rows = np.flatnonzero(slots >= 0)
    stored = slots[rows]
    first = (stored // block_size) * kv_heads * block_size + stored % block_size
    targets = first[:, None] + np.arange(kv_heads) * block_size
    is_prefix = bool((rows == np.arange(len(rows))).all())
    return StorePlan(
        None if is_prefix else torch.from_numpy(rows),
        len(rows),
        torch.from_numpy(targets.reshape(-1)),
    )


def store(keys: Tensor, values: Tensor, pool: KVLayer, plan: StorePlan) -> None:
    _store_one(keys, pool.keys, pool.key_scales, plan)
    _store_one(values, pool.values, pool.value_scales, plan)


def _store_one(new: Tensor, pool: Tensor, scales: Tensor | None, plan: StorePlan) -> None:
    new = new[: plan.num_rows] if plan.rows is None else new.index_select(0, plan.rows)
    lines = new.reshape(-1, new.shape[-1])  # [stored · kv_heads, head_dim]
    if scales is not None:
        lines, scale = quantise(lines)
        scales.view(-1).index_copy_(0, plan.targets, scale)
    pool.view(-1, pool.shape[-1]).index_copy_(0, plan.targets, lines.to(pool.dtype))


def quantise(lines: Tensor) -> tuple[Tensor, Tensor]:
    """[lines, head_dim] → int8 of the same shape and float32 scales [lines]."""
    scale = lines.abs().amax(-1) / INT8_MAX
    steps = lines / scale.clamp_min(torch.finfo(torch.float32).tiny).unsqueeze(-1)
    return steps.round_().to(torch.int8), scale
