"""The engine's settings, frozen, under vLLM's names where the meaning is the same.

Sizes are in tokens and bytes. What depends on the model (its maximum length, the pool that fits in
memory) is found by the runner; here only what can be said without it is checked.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Batching = Literal["continuous", "static", "serial"]
SchedulingPolicy = Literal["fcfs", "priority"]
DType = Literal["auto", "float32", "float16", "bfloat16"]
KVCacheDType = Literal["auto", "float32", "float16", "bfloat16", "int8", "fp8"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Settings of one engine. Raises ValueError with one line that names the setting.

    `max_model_len` None: the model's own. `kv_cache_memory_bytes` or `num_gpu_blocks_override`
    size the pool where there is no GPU to measure; the second wins. `batching` other than
    continuous is there to show the difference. `max_num_trie_tokens` is the largest trie of choices
    (fed rows) that is taken; one above `max_num_batched_tokens` gets a step of its own.
    """

    model: str
    dtype: DType = "auto"
    device: str = "auto"
    quantization: str | None = None
    max_model_len: int | None = None
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048
    max_num_trie_tokens: int = 4096
    block_size: int = 16
    gpu_memory_utilization: float = 0.90
    kv_cache_dtype: KVCacheDType = "auto"
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    scheduling_policy: SchedulingPolicy = "fcfs"
    max_num_queued_reqs: int = 1024
    seed: int = 0
    batching: Batching = "continuous"
    deterministic: bool = True

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model: give a model's name or directory")
        _positive(self, "max_num_seqs", "max_num_batched_tokens", "max_num_trie_tokens")
        _positive(self, "block_size", "max_model_len", "kv_cache_memory_bytes")
        _positive(self, "num_gpu_blocks_override")
        if self.max_num_queued_reqs < 0:
            raise ValueError(f"max_num_queued_reqs: {self.max_num_queued_reqs} is below 0")
        if not 0.0 < self.gpu_memory_utilization <= 1.0:
            raise ValueError(
                f"gpu_memory_utilization: {self.gpu_memory_utilization} is not in (0, 1]"
            )
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens: {self.max_num_batched_tokens} is less than max_num_seqs "
                f"({self.max_num_seqs}); each running sequence needs a row a step"
            )
        _one_of("dtype", self.dtype, get_args(DType))
        _one_of("kv_cache_dtype", self.kv_cache_dtype, get_args(KVCacheDType))
        _one_of("scheduling_policy", self.scheduling_policy, get_args(SchedulingPolicy))
        _one_of("batching", self.batching, get_args(Batching))

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> "EngineConfig":
        """From a table of settings. An unknown name is a ValueError that names it."""
        known = {field.name for field in fields(cls)}
        for name in settings:
            if name not in known:
                raise ValueError(
                    f"unknown engine setting {name!r}; known: {', '.join(sorted(known))}"
                )
        return cls(**settings)

    @property
    def num_places(self) -> int:
        """How many sequences run at once."""
        return 1 if self.batching == "serial" else self.max_num_seqs


def _positive(config: EngineConfig, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and value < 1:
            raise ValueError(f"{name}: {value} is below 1")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: {value!r} is none of {', '.join(allowed)}")
