"""The memory that the models of one run share, and how the KV budget is split among them.

Imports no torch and no engine. Agents on the same model and engine options share one engine, so a
share belongs to an engine, not to a player.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from .spec import AgentSpec, LlmSpec, SpecError


class MemoryOptions(BaseModel):
    """Limits of all in-process models together, in bytes; None: none but each model's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights_bytes: int | None = Field(default=None, ge=1)  # above it they take turns: waves
    kv_cache_bytes: int | None = Field(default=None, ge=1)  # split by `kv_fraction`, else equally


@dataclass(frozen=True, slots=True)
class ModelCost:
    """What one model costs on this machine, in bytes and seconds; None: not measured."""

    name: str
    players: tuple[str, ...]
    weights_bytes: int
    swap_s: float | None = None  # its weights coming in
    move_s: float | None = None  # a move's part of a full batch


def engine_key(spec: LlmSpec) -> str:
    """Equal for players who share an engine."""
    return f"{spec.model}\x1f{spec.engine.model_dump_json()}"


def kv_shares(specs: Iterable[AgentSpec], memory: MemoryOptions) -> dict[str, int]:
    """Bytes of KV pool by engine key, for the engines that take part in the split.

    An engine whose own options size its pool takes no part. Those with a `kv_fraction` get it of
    the whole, the others equal parts of the rest. Raises SpecError where that cannot be had.
    """
    engines = {engine_key(spec): spec for spec in specs if isinstance(spec, LlmSpec)}
    stated = {key: s.engine.kv_fraction for key, s in engines.items() if s.engine.kv_fraction}
    for key in stated:
        _check(engines[key], memory)
    if memory.kv_cache_bytes is None:
        return {}
    equal = [key for key, s in engines.items() if not s.engine.sizes_kv and key not in stated]
    left = 1.0 - sum(stated.values())
    if left < -1e-9 or (equal and left < 1e-9):
        raise SpecError(
            f"the kv_fraction of all models together is {1 - left:g}: "
            + ("leave some to the models without one" if equal else "it cannot be above 1")
        )
    fractions = {**stated, **dict.fromkeys(equal, left / max(1, len(equal)))}
    return {key: max(1, int(memory.kv_cache_bytes * part)) for key, part in fractions.items()}


def _check(spec: LlmSpec, memory: MemoryOptions) -> None:
    if memory.kv_cache_bytes is None:
        raise SpecError(
            f"{spec.name}: kv_fraction is a part of [memory] kv_cache_bytes, which is not set"
        )
    if spec.engine.sizes_kv:
        raise SpecError(
            f"{spec.name}: kv_fraction, or kv_cache_memory_bytes and num_gpu_blocks_override: "
            "both size the KV pool, keep one"
        )
