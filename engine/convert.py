"""Turns a GGUF file into a Hugging Face style model directory, once and without loss.

Either the whole (`convert_gguf`), or its small files only (`write_texts`), where the weights are to
stay in the GGUF file. One weight is in memory at a time; numpy and gguf only, no torch.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .gguf_config import config_of
from .gguf_file import GgufFile
from .gguf_tokenizer import tokenizer_config, tokenizer_json
from .gguf_weights import GgufWeight, weights_of


@dataclass(frozen=True, slots=True)
class Written:
    """One file of the new directory, hashed while it was written."""

    name: str
    num_bytes: int
    sha256: str


def convert_gguf(
    source: Path, target: Path, progress: Callable[[int, int], None] | None = None
) -> tuple[Written, ...]:
    """Write config.json, model.safetensors, tokenizer.json and tokenizer_config.json.

    `target` is an existing empty directory; `progress(done, total)` counts bytes of weights.
    Raises ModelError for a file that is no GGUF, of another version, or of an unknown kind;
    OSError as the disk gives it.
    """
    file = GgufFile(source)
    try:
        written = write_texts(file, target)
        weights = weights_of(file)
        return (*written, _write_safetensors(target / "model.safetensors", weights, progress))
    finally:
        file.close()


def write_texts(file: GgufFile, target: Path) -> tuple[Written, ...]:
    """Write config.json, tokenizer_config.json and tokenizer.json. Raises as `convert_gguf`."""
    texts = {
        "config.json": _dump(config_of(file)),
        "tokenizer_config.json": _dump(tokenizer_config(file)),
        "tokenizer.json": tokenizer_json(file),
    }
    return tuple(_write_text(target / name, text) for name, text in texts.items())


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write_text(path: Path, text: str) -> Written:
    data = text.encode()
    path.write_bytes(data)
    return Written(path.name, len(data), hashlib.sha256(data).hexdigest())


def _write_safetensors(
    path: Path, weights: list[GgufWeight], progress: Callable[[int, int], None] | None
) -> Written:
    """The safetensors format: u64 length, JSON header padded to 8 bytes, then the data."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    total = 0
    for weight in weights:
        span = [total, total + weight.num_bytes]
        header[weight.name] = {
            "dtype": weight.dtype,
            "shape": list(weight.shape),
            "data_offsets": span,
        }
        total = span[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest, done = hashlib.sha256(), 0
    with path.open("wb") as file:
        for chunk in _chunks(len(text).to_bytes(8, "little") + text, weights):
            _write(file, digest, chunk)
            done += len(chunk)
            if progress is not None:
                progress(max(0, done - len(text) - 8), total)
        size = file.tell()
    return Written(path.name, size, digest.hexdigest())


def _chunks(head: bytes, weights: list[GgufWeight]) -> Iterator[Any]:
    yield head
    for weight in weights:
        yield weight.data().data


def _write(file: IO[bytes], digest: Any, chunk: Any) -> None:
    file.write(chunk)
    digest.update(chunk)
