"""Attention of a flat batch over paged keys and values: prompt chunks, decode rows and tries alike.

One rule: a row sees the stored positions p ≤ tin of its sequence and, among the rows that are not
stored, k with tin[k] ≤ tin[q] < tout[k]; with a window, of these only positions less than `window`
back. One formula: the keys of a sequence are read in tiles of TILE positions that start at
multiples of TILE, every tile yields its softmax-weighted mean and its log-sum-exp on its own, and
tiles are merged in ascending order, those of unstored rows last, in their order. So a row's bits
depend on its own keys alone. Grouped heads: query head h reads key-value head h // group.
"""

from torch import Tensor

from kernels.store_kv import KVLayer

from .layout import TILE, FlatRows
from .plan import AttentionPlan, plan_attention
from .reference import attend
from .shapes import safe_key_lengths

__all__ = [
    "TILE",
    "AttentionPlan",
    "FlatRows",
    "paged_attention",
    "plan_attention",
    "safe_key_lengths",
]


def paged_attention(
    q: Tensor, keys: Tensor, values: Tensor, pool: KVLayer, plan: AttentionPlan, scale: float
) -> Tensor:
    """q [rows, heads, head_dim], this step's keys and values [rows, kv_heads, head_dim] (stored
    already where they have slots) → [rows, heads, head_dim]; rows beyond the plan are undefined.

    Raises ValueError where heads or sizes don't go together.
    """
    rows, heads, head_dim = q.shape
    kv_heads = pool.keys.shape[1]
    if heads % kv_heads or keys.shape != (rows, kv_heads, head_dim):
        raise ValueError(
            f"paged_attention: q is {list(q.shape)}, keys {list(keys.shape)}, the pool has "
            f"{kv_heads} heads"
        )
    if rows < plan.num_rows:
        raise ValueError(f"paged_attention: {rows} rows, the plan needs {plan.num_rows}")
    return attend(q, keys, values, pool, plan, scale)
