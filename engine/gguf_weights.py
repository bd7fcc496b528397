"""The weights of a GGUF file under their Hugging Face names, each dequantised when asked for.

Quantised weights become float32; F32, F16 and BF16 keep their bits. Rows of q and k, which
llama-type files store permuted for their rotary layout, are put back; the one that Gemma's files
have in their norms is taken out again.
"""

import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .gguf_config import ROPE_FACTORS
from .gguf_file import GgufFile, GgufTensor
from .model_types import ModelError
from .recipe import elsewhere

if TYPE_CHECKING:
    import torch

PARTS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GEMMA3_PARTS = PARTS | {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
SEEING = ("v.", "mm.")
KEPT = ("F32", "F16", "BF16")
BLOCKS = 4096  # dequantised at a time: fourteen times faster than the package's own sixteen rows


class GgufWeight:
    """One weight: its Hugging Face name, safetensors' dtype, shape [out, in], bytes on demand."""

    def __init__(self, file: GgufFile, tensor: GgufTensor) -> None:
        self.name = hf_name(file, tensor.name)
        self.shape = tensor.shape
        self._file = file
        self._tensor = tensor
        self._offset = file.architecture == "gemma3" and self.name.endswith("norm.weight")
        self.dtype = tensor.kind if tensor.kind in KEPT and not self._offset else "F32"
        self._heads = _permuted_heads(file, self.name)

    @property
    def num_bytes(self) -> int:
        """Of `data`."""
        elements = 1
        for length in self.shape:
            elements *= length
        return elements * (4 if self.dtype == "F32" else 2)

    def data(self) -> npt.NDArray[np.uint8]:
        """Contiguous little-endian bytes, a copy or a view into the file."""
        raw: Any = self._file.data(self._tensor)
        if self._tensor.kind != self.dtype:
            raw = _dequantised(raw, self._tensor.kind)
        if self._offset:
            raw = raw.reshape(-1).view(np.float32) - np.float32(1)
        rows: npt.NDArray[np.uint8] = raw.reshape(-1).view(np.uint8).reshape(self.shape[0], -1)
        if self._heads:  # [heads, half, 2] interleaved pairs → [heads, 2, half]
            halves = rows.reshape(self._heads, -1, 2, rows.shape[1])
            rows = np.ascontiguousarray(halves.swapaxes(1, 2))
        return rows.reshape(-1)


def _dequantised(raw: npt.NDArray[np.uint8], kind: str) -> npt.NDArray[np.float32]:
    """float32 [elements], block by block: a few thousand at a time stay in the cache."""
    import gguf

    if kind == "F16":
        return raw.reshape(-1).view(np.float16).astype(np.float32)
    length, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = raw.reshape(-1, size)
    values = np.empty((len(blocks), length), np.float32)
    quants = getattr(gguf.quants, kind)

    def fill(i: int) -> None:
        values[i : i + BLOCKS] = quants.dequantize_blocks(blocks[i : i + BLOCKS])

    starts, cores = range(0, len(blocks), BLOCKS), len(os.sched_getaffinity(0))
    if len(starts) < 2 * cores:
        for i in starts:
            fill(i)
    else:  # numpy lets other threads run meanwhile
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(fill, starts))
    return values.reshape(-1)


class GgufWeights(Mapping[str, "torch.Tensor"]):
    """All weights of a file, as `engine.weights.Weights` gives a directory's."""

    def __init__(self, file: GgufFile) -> None:
        self._file = file
        self._weights = {weight.name: weight for weight in weights_of(file)}

    def __getitem__(self, name: str) -> "torch.Tensor":
        import torch

        weight = self._weights[name]
        kinds = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
        data = weight.data()
        if not data.flags.writeable:
            data = data.copy()  # never a view into the file, which may be closed before
        return torch.from_numpy(data).view(kinds[weight.dtype]).view(weight.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def layout(self, name: str) -> tuple[str, tuple[int, ...]]:
        """dtype (safetensors' name) and shape, without reading the weight."""
        return self._weights[name].dtype, self._weights[name].shape

    def drop(self, name: str) -> None:
        """Hide a weight that the model does not use."""
        del self._weights[name]

    def misplaced(self) -> list[str]:
        """None: there is one file."""
        return []

    def close(self) -> None:
        self._file.close()


def weights_of(file: GgufFile) -> list[GgufWeight]:
    """Every weight, in the file's order, of a Gemma 3 that sees its text half.

    Raises ModelError for one without a place.
    """
    others = SEEING if file.architecture == "gemma3" else ()
    return [
        GgufWeight(file, tensor)
        for name, tensor in file.tensors.items()
        if name != ROPE_FACTORS and not name.startswith(others)
    ]


def hf_name(file: GgufFile, name: str) -> str:
    """`blk.3.attn_q.weight` → `model.layers.3.self_attn.q_proj.weight`."""
    parts = GEMMA3_PARTS if file.architecture == "gemma3" else PARTS
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in parts:
        raise ModelError(
            f"{file.path.name}: no place for the weight {name!r}; {elsewhere(file.path)}"
        )
    layer = f"model.layers.{match[1]}." if match[1] else ""
    return f"{layer}{parts[match[2]]}.{match[3]}"


def _permuted_heads(file: GgufFile, name: str) -> int | None:
    """Heads whose rows are stored in pairs, None where rows lie as in Hugging Face's files."""
    match = re.search(r"self_attn\.([qk])_proj\.", name)
    if match is None or file.architecture != "llama":
        return None
    heads = int(file.need("attention.head_count"))
    return int(file.get("attention.head_count_kv", heads)) if match[1] == "k" else heads


def precision_of(file: GgufFile) -> str:
    """The file's precision as its publisher names it (q4_k_m), else its largest weights' type."""
    import gguf

    try:
        name = gguf.LlamaFileType(file.fields["general.file_type"]).name
        return name.removeprefix("MOSTLY_").removeprefix("ALL_").lower()
    except (KeyError, ValueError):
        totals: dict[str, int] = {}
        for tensor in file.tensors.values():
            totals[tensor.kind] = totals.get(tensor.kind, 0) + tensor.num_bytes
        return max(totals, key=lambda kind: totals[kind], default="f32").lower()
