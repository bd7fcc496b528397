"""Reads a GGUF file: its metadata as plain values, its tensors where they lie.

The whole header is checked before anything is used: what it counts must be in the file. The file is
mapped, never written. (The `gguf` package knows the quantised types; its own reader takes ten
seconds for a vocabulary of 262,144.)
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .model_types import ModelError

Fields = dict[str, Any]
VERSIONS = (2, 3)
ALIGNMENT = 32
MAX_DEPTH = 4  # of arrays in arrays
STRING, ARRAY, BOOL = 8, 9, 7
NUMBERS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 10: "<u8",
           11: "<i8", 12: "<f8", BOOL: "?"}  # fmt: skip
# Their dequantisation is the `gguf` package's.
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K",
         "Q5_K", "Q6_K")  # fmt: skip


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One stored tensor: `shape` [out, in], the name of its type, its bytes in the file."""

    name: str
    shape: tuple[int, ...]
    kind: str
    start: int
    num_bytes: int


class GgufFile:
    """`fields` are the metadata. Raises ModelError: no GGUF, another version, a file cut short."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _mapped(path)
        try:
            cursor = _Cursor(self._map)
            self.fields, self.tensors = self._read(cursor)
        except (_Short, UnicodeDecodeError) as error:
            self.close()
            raise ModelError(f"{path} is truncated or damaged ({error})") from None
        except BaseException:
            self.close()
            raise

    @property
    def architecture(self) -> str:
        """GGUF's own name for it, such as llama."""
        return str(self.fields.get("general.architecture"))

    def get(self, name: str, default: Any = None) -> Any:
        """A metadata value under the architecture's name."""
        return self.fields.get(f"{self.architecture}.{name}", default)

    def need(self, name: str) -> Any:
        """As `get`. Raises ModelError where it is absent."""
        return self.need_field(f"{self.architecture}.{name}")

    def need_field(self, name: str) -> Any:
        """A metadata value by its whole name. Raises ModelError where it is absent."""
        if name not in self.fields:
            raise ModelError(f"{self.path.name} lacks the metadata {name!r}")
        return self.fields[name]

    def data(self, tensor: GgufTensor) -> npt.NDArray[np.uint8]:
        """The stored bytes, a view into the mapped file: [rows, bytes a row]."""
        flat = np.frombuffer(self._map, np.uint8, tensor.num_bytes, tensor.start)
        return flat.reshape(int(np.prod(tensor.shape[:-1], dtype=np.int64)), -1)

    def close(self) -> None:
        """Let go of the file, at the latest when no view of `data` is left."""
        try:
            self._map.close()
        except BufferError:
            return

    def _read(self, cursor: "_Cursor") -> tuple[Fields, dict[str, GgufTensor]]:
        cursor.skip(8)  # magic and version, looked at already
        num_tensors, num_fields = cursor.count(24), cursor.count(13)
        fields = {}
        for _ in range(num_fields):
            name = cursor.string()
            fields[name] = cursor.value(cursor.number("<u4"))
        if int(fields.get("split.count", 1)) > 1:
            raise ModelError(
                f"{self.path} is one of {fields['split.count']} parts; join them with "
                "`llama-gguf-split --merge FIRST_PART WHOLE.gguf`"
            )
        heads = [_head(cursor, self.path) for _ in range(num_tensors)]
        alignment = int(fields.get("general.alignment", ALIGNMENT)) or ALIGNMENT
        base = -(-cursor.at // alignment) * alignment
        tensors = {
            name: _placed(name, shape, kind, base + offset, self.path)
            for name, shape, kind, offset in heads
        }
        for tensor in tensors.values():
            if tensor.start + tensor.num_bytes > len(self._map):
                raise _Short(f"{tensor.name} ends after the file")
        return fields, tensors


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            head = file.read(8)
            if head[:4] != b"GGUF":
                raise ModelError(f"{path} is no GGUF file")
            version = int.from_bytes(head[4:8], "little")
            if len(head) < 8 or version not in VERSIONS:
                raise ModelError(f"{path} is GGUF version {version}; versions 2 and 3 can be read")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise ModelError(f"model file {path} does not exist") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None


class _Short(Exception):
    """Something that should be in the file is not."""


class _Cursor:
    """Reads forward; never past the end."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def skip(self, size: int) -> int:
        """Where the next `size` bytes start."""
        start = self.at
        if size > len(self.data) - start:
            raise _Short(f"it ends at byte {len(self.data)}, in the header")
        self.at += size
        return start

    def number(self, kind: str) -> Any:
        start = self.skip(np.dtype(kind).itemsize)
        return np.frombuffer(self.data, kind, 1, start)[0].item()

    def length(self) -> int:
        length: int = struct.unpack_from("<Q", self.data, self.skip(8))[0]
        return length

    def count(self, least: int) -> int:
        """A number of things of at least so many bytes each."""
        count = self.length()
        if count * least > len(self.data):
            raise _Short(f"{count} entries do not fit in it")
        return count

    def string(self) -> str:
        size = self.length()
        start = self.skip(size)
        return self.data[start : start + size].decode("utf-8")

    def strings(self, count: int) -> list[str]:
        """So many of them in a row: vocabularies have hundreds of thousands."""
        data, at, found = self.data, self.at, []
        for _ in range(count):
            self.at = at
            size = self.length()
            at = self.at + size
            if at > len(data):
                raise _Short(f"it ends at byte {len(data)}, in the header")
            found.append(data[self.at : at].decode("utf-8"))
        self.at = at
        return found

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == STRING:
            return self.string()
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind != ARRAY or depth >= MAX_DEPTH:
            raise _Short(f"metadata of unknown type {kind}")
        inner: int = self.number("<u4")
        if inner in NUMBERS:
            dtype = np.dtype(NUMBERS[inner])
            count = self.count(dtype.itemsize)
            start = self.skip(count * dtype.itemsize)
            return np.frombuffer(self.data, dtype, count, start).tolist()
        if inner == STRING:
            return self.strings(self.count(8))
        return [self.value(inner, depth + 1) for _ in range(self.count(8))]


def _head(cursor: _Cursor, path: Path) -> tuple[str, tuple[int, ...], str, int]:
    """Name, shape, type and offset of one tensor."""
    import gguf

    name = cursor.string()
    dimensions = [0] * int(cursor.number("<u4"))
    if not 1 <= len(dimensions) <= 4:
        raise _Short(f"{name} has {len(dimensions)} dimensions")
    shape = tuple(cursor.length() for _ in dimensions)[::-1]
    number = cursor.number("<u4")
    try:
        kind = gguf.GGMLQuantizationType(number).name
    except ValueError:
        kind = f"type {number}"
    if kind not in TYPES:
        raise ModelError(
            f"{path.name}: weight {name} is stored as {kind}, which cannot be read; take a file "
            f"in one of {', '.join(TYPES)}"
        )
    return name, shape, kind, cursor.length()


def _placed(name: str, shape: tuple[int, ...], kind: str, start: int, path: Path) -> GgufTensor:
    import gguf

    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    if shape[-1] % block:
        raise ModelError(f"{path.name}: rows of weight {name} are no whole blocks of {kind}")
    elements = 1
    for length in shape:
        elements *= length
    return GgufTensor(name, shape, kind, start, elements // block * size)
