"""A model's weights as memory: what they cost on a CPU, giving it back, knowing them again."""

import ctypes
import math
from pathlib import Path

from engine.model_config import ModelConfig, expected_shapes

FLOAT = 4  # bytes: a CPU computes in float32, whatever the file holds
SUFFIXES = (".safetensors", ".gguf", ".json")
EMBEDDING = "model.embed_tokens.weight"


def weights_bytes(config: ModelConfig) -> int:
    """Bytes at most: every weight in float32, and the head twice, as it is for products with a few
    of its rows and packed for those with all, once the first is made."""
    shapes = expected_shapes(config)
    return FLOAT * (config.num_parameters + math.prod(shapes[EMBEDDING]))


def kv_bytes_per_token(config: ModelConfig) -> int:
    """Bytes of a token's keys and values in all layers, in float32."""
    return FLOAT * 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim


def give_back_memory() -> None:
    """Return what was freed to the system; glibc keeps freed pieces below 32 MiB otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def fingerprint(source: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, bytes and time of change (ns) of a model's files, those that weights come from."""
    files = sorted(source.iterdir()) if source.is_dir() else [source] if source.exists() else []
    stats = [(file.name, file.stat()) for file in files if file.suffix in SUFFIXES]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
