"""Paged writes: the keys and values of a step's rows go to their slots in the pool.

A pool of one layer is [blocks, kv_heads, block_size, head_dim], so that the keys of one head in one
block are one run of memory. Slot s is place s % block_size of block s // block_size; slot −1 is
written nowhere. An int8 pool keeps one scale a slot and head, the largest magnitude / 127.
"""

from torch import Tensor

from .reference import KVLayer, StorePlan, plan_store, store

__all__ = ["KVLayer", "StorePlan", "plan_store", "store_kv"]


def store_kv(keys: Tensor, values: Tensor, pool: KVLayer, plan: StorePlan) -> None:
    """Write keys and values [rows, kv_heads, head_dim] as planned.

    Raises ValueError where they don't have the pool's heads and sizes.
    """
    _, kv_heads, _, head_dim = pool.keys.shape
    for name, value in (("keys", keys), ("values", values)):
        if value.shape[1:] != (kv_heads, head_dim):
            raise ValueError(
                f"store_kv: {name} are {list(value.shape)}, the pool has {kv_heads} heads of "
                f"{head_dim}"
            )
    store(keys, values, pool, plan)
