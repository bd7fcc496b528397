"""Turns a GGUF file into a Hugging Face style model directory, once and without loss.

Quantised weights are dequantised to float32; F32, F16 and BF16 keep their bits. Rows of q and k,
which llama-type GGUF stores permuted for its rotary layout, are put back. The tokenizer is built
from the file's metadata. One weight is in memory at a time; numpy and gguf only, no torch.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .model_config import ELSEWHERE, ModelError

Fields = dict[str, Any]
Bytes = npt.NDArray[np.uint8]

ARCHITECTURES = {
    "llama": ("LlamaForCausalLM", "llama"),
    "qwen2": ("Qwen2ForCausalLM", "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
}
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
# The splitting of text before byte-pair merging, by the name GGUF gives it; None: GPT-2's own.
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {"gpt-2": None, "smollm": "digits", "qwen2": QWEN2_SPLIT}
CONTROL, USER_DEFINED = 3, 4  # GGUF token types


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
    reader, fields = _read(source)
    architecture = str(fields.get("general.architecture"))
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(
            f"{source.name}: unknown GGUF architecture {architecture!r} (known: {known}); "
            f"{ELSEWHERE}"
        )
    heads = {"q": _field(fields, f"{architecture}.attention.head_count", source)}
    heads["k"] = fields.get(f"{architecture}.attention.head_count_kv", heads["q"])
    permuted = heads if architecture == "llama" else {}
    tensors = [_Tensor(_hf_name(t.name, source), t, permuted) for t in reader.tensors]
    tied = "output.weight" not in {t.name for t in reader.tensors}
    texts = {
        "config.json": _config(fields, architecture, tied, source),
        "tokenizer_config.json": _tokenizer_config(fields, architecture),
    }
    written = [_write_text(target / name, _dump(value)) for name, value in texts.items()]
    written.append(_write_text(target / "tokenizer.json", _tokenizer_json(fields, source)))
    written.append(_write_safetensors(target / "model.safetensors", tensors, progress))
    return tuple(written)


def _read(source: Path) -> tuple[Any, Fields]:
    """The reader and the plain values of its metadata."""
    import gguf

    with source.open("rb") as file:
        head = file.read(8)
    if head[:4] != b"GGUF":
        raise ModelError(f"{source} is no GGUF file")
    if (version := int.from_bytes(head[4:8], "little")) not in (2, 3):
        raise ModelError(f"{source} is GGUF version {version}; versions 2 and 3 can be read")
    try:
        reader = gguf.GGUFReader(source)
        return reader, {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise ModelError(f"{source} is truncated or damaged ({error})") from None


def _field(fields: Fields, name: str, source: Path) -> Any:
    if name not in fields:
        raise ModelError(f"{source.name} lacks the metadata {name!r}")
    return fields[name]


def _hf_name(name: str, source: Path) -> str:
    """`blk.3.attn_q.weight` → `model.layers.3.self_attn.q_proj.weight`."""
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in PARTS:
        raise ModelError(f"{source.name}: no place for the weight {name!r}; {ELSEWHERE}")
    layer = f"model.layers.{match[1]}." if match[1] else ""
    return f"{layer}{PARTS[match[2]]}.{match[3]}"


class _Tensor:
    """One weight on its way: name, safetensors dtype, shape [out, in], and its bytes on demand."""

    def __init__(self, name: str, source: Any, permuted: dict[str, int]) -> None:
        self.name = name
        self.shape = [int(size) for size in reversed(source.shape)]
        self.kind = source.tensor_type.name
        self.dtype = self.kind if self.kind in ("F32", "F16", "BF16") else "F32"
        self.num_bytes = int(np.prod(self.shape)) * (4 if self.dtype == "F32" else 2)
        part = re.search(r"self_attn\.([qk])_proj\.", name)
        self.heads = permuted.get(part[1]) if part else None
        self._source = source

    def data(self) -> Bytes:
        """Contiguous little-endian bytes."""
        import gguf

        raw = self._source.data
        if self.dtype == "F32" and self.kind != "F32":
            raw = gguf.quants.dequantize(raw, self._source.tensor_type)
        rows = np.ascontiguousarray(raw).view(np.uint8).reshape(self.shape[0], -1)
        if self.heads:  # [heads, half, 2] interleaved pairs → [heads, 2, half]
            halves = rows.reshape(self.heads, -1, 2, rows.shape[1])
            rows = np.ascontiguousarray(halves.swapaxes(1, 2))
        return rows.reshape(-1)


def _config(fields: Fields, architecture: str, tied: bool, source: Path) -> dict[str, Any]:
    hf_architecture, model_type = ARCHITECTURES[architecture]

    def get(name: str) -> Any:
        return _field(fields, f"{architecture}.{name}", source)

    heads = get("attention.head_count")
    head_dim = fields.get(f"{architecture}.attention.key_length", get("embedding_length") // heads)
    scaling = fields.get(f"{architecture}.rope.scaling.type", "none")
    if scaling != "none":
        raise ModelError(f"{source.name}: rope scaling {scaling!r} in GGUF; {ELSEWHERE}")
    return {
        "architectures": [hf_architecture],
        "model_type": model_type,
        "vocab_size": len(_field(fields, "tokenizer.ggml.tokens", source)),
        "hidden_size": get("embedding_length"),
        "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": fields.get(f"{architecture}.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": get("context_length"),
        "rms_norm_eps": _short(get("attention.layer_norm_rms_epsilon")),
        "rope_theta": _short(fields.get(f"{architecture}.rope.freq_base", 10000.0)),
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": fields.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": fields.get("tokenizer.ggml.padding_token_id"),
        "dtype": "float32",
    }


def _short(value: float) -> float:
    """The shortest decimal of a float32: 9.999999747378752e-06 was written as 1e-05."""
    return float(str(np.float32(value)))


def _tokenizer_json(fields: Fields, source: Path) -> str:
    """A byte-level BPE tokenizer in the `tokenizers` package's own form."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, processors

    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or pre not in SPLITS:
        raise ModelError(f"{source.name}: unknown tokenizer {kind!r}/{pre!r}; {ELSEWHERE}")
    tokens: list[str] = _field(fields, "tokenizer.ggml.tokens", source)
    merges = [tuple(pair.split(" ")) for pair in _field(fields, "tokenizer.ggml.merges", source)]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = _splitter(SPLITS[pre])
    tokenizer.decoder = decoders.ByteLevel()
    types = _field(fields, "tokenizer.ggml.token_type", source)
    for token, token_type in zip(tokens, types, strict=True):
        if token_type in (CONTROL, USER_DEFINED):
            special = token_type == CONTROL
            tokenizer.add_tokens([AddedToken(token, special=special, normalized=False)])
    if fields.get("tokenizer.ggml.add_bos_token"):
        bos_id = _field(fields, "tokenizer.ggml.bos_token_id", source)
        bos = tokens[bos_id]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, bos_id)]
        )
    return tokenizer.to_str(pretty=True)


def _splitter(split: str | None) -> Any:
    """How text is cut before merging: GPT-2's way, after single digits, or by a pattern."""
    from tokenizers import Regex, pre_tokenizers

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split != QWEN2_SPLIT)
    if split is None:
        return byte_level
    digits = pre_tokenizers.Digits(individual_digits=True)
    first = digits if split == "digits" else pre_tokenizers.Split(Regex(split), "isolated")
    return pre_tokenizers.Sequence([first, byte_level])


def _tokenizer_config(fields: Fields, architecture: str) -> dict[str, Any]:
    tokens = fields["tokenizer.ggml.tokens"]
    names = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}
    ids = {short: fields.get(f"tokenizer.ggml.{name}_token_id") for name, short in names.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{short}_token": tokens[i] for short, i in ids.items() if i is not None},
        "model_max_length": fields.get(f"{architecture}.context_length"),
        "clean_up_tokenization_spaces": False,
        "chat_template": fields.get("tokenizer.chat_template"),
    }


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _write_text(path: Path, text: str) -> Written:
    data = text.encode()
    path.write_bytes(data)
    return Written(path.name, len(data), hashlib.sha256(data).hexdigest())


def _write_safetensors(
    path: Path, tensors: list[_Tensor], progress: Callable[[int, int], None] | None
) -> Written:
    """The safetensors format: u64 length, JSON header padded to 8 bytes, then the data."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    total = 0
    for tensor in tensors:
        span = [total, total + tensor.num_bytes]
        header[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": span}
        total = span[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest, done = hashlib.sha256(), 0
    with path.open("wb") as file:
        for chunk in _chunks(len(text).to_bytes(8, "little") + text, tensors):
            _write(file, digest, chunk)
            done += len(chunk)
            if progress is not None:
                progress(max(0, done - len(text) - 8), total)
        size = file.tell()
    return Written(path.name, size, digest.hexdigest())


def _chunks(head: bytes, tensors: list[_Tensor]) -> Iterator[Any]:
    yield head
    for tensor in tensors:
        data = tensor.data()
        if data.nbytes != tensor.num_bytes:
            raise ModelError(f"GGUF weight {tensor.name} is truncated")
        yield data.data


def _write(file: IO[bytes], digest: Any, chunk: Any) -> None:
    file.write(chunk)
    digest.update(chunk)
