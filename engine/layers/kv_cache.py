"""The block pool of all layers, and its size."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.config import EngineConfig, KVCacheDType
from engine.model_config import ModelConfig, ModelError
from engine.types import BlockCopy, num_blocks_for
from kernels.store_kv import KVLayer

DEFAULT_BYTES = 1 << 30  # on a CPU, if settings don't say: 1 GiB, or what max_num_seqs can fill
DTYPES: dict[KVCacheDType, torch.dtype] = {
    "auto": torch.float32,
    "float32": torch.float32,
    "int8": torch.int8,
}


@dataclass(frozen=True, slots=True)
class KVCache:
    """`entries` [layers, 2, blocks, kv_heads, block_size, head_dim], keys then values; `scales`
    float32 [layers, 2, blocks, kv_heads, block_size] where entries are int8."""

    entries: Tensor
    scales: Tensor | None

    @classmethod
    def allocate(cls, model: ModelConfig, config: EngineConfig, max_model_len: int) -> "KVCache":
        """Raises ModelError where the pool can't be had."""
        dtype = DTYPES.get(config.kv_cache_dtype)
        if dtype is None:
            raise ModelError(
                f"kv_cache_dtype {config.kv_cache_dtype!r} does not run on a CPU; "
                f"use one of {', '.join(DTYPES)}"
            )
        size = bytes_per_token(model, dtype) * config.block_size
        blocks = num_blocks(config, max_model_len, size)
        shape = (model.num_hidden_layers, 2, blocks, model.num_key_value_heads, config.block_size)
        try:
            entries = torch.zeros(*shape, model.head_dim, dtype=dtype)
            scales = torch.zeros(shape) if dtype is torch.int8 else None
        except RuntimeError:
            raise ModelError(
                f"no memory for a KV pool of {blocks} blocks ({blocks * size >> 20} MiB); "
                "set kv_cache_memory_bytes lower"
            ) from None
        return cls(entries, scales)

    @property
    def num_blocks(self) -> int:
        return self.entries.shape[2]

    def layer(self, i: int) -> KVLayer:
        keys, values = self.entries[i]
        if self.scales is None:
            return KVLayer(keys, values)
        return KVLayer(keys, values, *self.scales[i])

    def copy(self, copies: tuple[BlockCopy, ...]) -> None:
        """Leading slots of blocks, in all layers, in order."""
        for c in copies:
            for pool in (self.entries, self.scales):
                if pool is not None:
                    pool[:, :, c.target, :, : c.num_slots] = pool[:, :, c.source, :, : c.num_slots]

    def poison(self) -> None:
        """Fill with NaN: whatever reads a slot that was never written, shows."""
        pool = self.entries if self.scales is None else self.scales
        with torch.inference_mode():
            pool.fill_(torch.nan)


def bytes_per_token(model: ModelConfig, dtype: torch.dtype) -> int:
    """2 × layers × kv_heads × (head_dim values, and a float32 scale where they are int8)."""
    head = model.head_dim * dtype.itemsize + (4 if dtype is torch.int8 else 0)
    return 2 * model.num_hidden_layers * model.num_key_value_heads * head


def num_blocks(config: EngineConfig, max_model_len: int, block_bytes: int) -> int:
    """As set, else DEFAULT_BYTES or what `max_num_seqs` sequences can fill, at least one whole
    sequence."""
    if config.num_gpu_blocks_override is not None:
        return config.num_gpu_blocks_override
    if config.kv_cache_memory_bytes is not None:
        count = config.kv_cache_memory_bytes // block_bytes
        if count < 1:
            raise ModelError(
                f"kv_cache_memory_bytes: {config.kv_cache_memory_bytes} is less than one block "
                f"({block_bytes} bytes)"
            )
        return count
    whole = num_blocks_for(max_model_len, config.block_size)
    return max(whole, min(DEFAULT_BYTES // block_bytes, whole * config.max_num_seqs))
