"""GGUF files made on the spot from Hugging Face tensors, the way llama.cpp writes them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from tests.engine.model_kit import CHATML, CONTROL

ArrayF32 = npt.NDArray[np.float32]
FIXED = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
GEMMA3_PARTS = {
    **PARTS,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def write_gguf(
    path: Path,
    tensors: Mapping[str, ArrayF32],
    config: Mapping[str, Any],
    tokenizer: Tokenizer,
    kind: str = "F32",
    architecture: str = "llama",
    rope_factors: ArrayF32 | None = None,
    eyes: bool = False,
    **metadata: Any,
) -> Path:
    """Matrices are stored as `kind`, norms and biases as F32; rows of a llama's q and k are
    permuted, Gemma's norms grow by one. `metadata` are further values, a dot written as two
    underscores; those of a K type are random blocks, since only others can be quantised."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    for name, value in metadata.items():
        kinds = {int: "UINT32", float: "FLOAT32", str: "STRING"}
        value_type = gguf.GGUFValueType[kinds[type(value)]]
        writer.add_key_value(f"{architecture}.{name.replace('__', '.')}", value, value_type)
    add_tokenizer(writer, tokenizer)
    heads = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    for name, value in tensors.items():
        array = _permuted(name, value, heads) if architecture == "llama" else value
        if architecture == "gemma3" and name.endswith("norm.weight"):
            array = array + np.float32(1)
        stored = gguf.GGMLQuantizationType[kind if array.ndim == 2 else "F32"]
        data = (
            random_blocks(array, stored)
            if kind.endswith("_K") and array.ndim == 2
            else (gguf.quants.quantize(array, stored))
        )
        writer.add_tensor(gguf_name(name, architecture), data, raw_dtype=stored)
    if rope_factors is not None:
        writer.add_tensor("rope_freqs.weight", rope_factors)
    if eyes:
        writer.add_tensor("v.blk.0.attn_q.weight", np.ones((2, 2), np.float32))
        writer.add_tensor("mm.input_projection.weight", np.ones((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def random_blocks(array: ArrayF32, kind: gguf.GGMLQuantizationType) -> npt.NDArray[np.uint8]:
    """Bytes of a quantised matrix of this shape, its half-precision scales small and finite."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(array.shape[0])
    data = rng.integers(0, 256, (*array.shape[:-1], array.shape[-1] // block, size), np.uint8)
    scale = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
    places = (size - 2,) if kind.name == "Q6_K" else (0, 2)
    for place in places:
        data[..., place : place + 2] = scale
    return data.reshape(*array.shape[:-1], -1)


def add_tokenizer(writer: Any, tokenizer: Tokenizer) -> None:
    """A byte-level tokenizer's metadata."""
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in CONTROL else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(vocabulary["<|im_start|>"])
    writer.add_eos_token_id(vocabulary["<|im_end|>"])
    writer.add_chat_template(CHATML)


def gguf_name(name: str, architecture: str) -> str:
    """llama.cpp's name of a Hugging Face weight."""
    part, suffix = name.rsplit(".", 1)
    if part in FIXED:
        return f"{FIXED[part]}.{suffix}"
    _, _, layer, rest = part.split(".", 3)
    parts = GEMMA3_PARTS if architecture == "gemma3" else PARTS
    return f"blk.{layer}.{parts[rest]}.{suffix}"


def _permuted(name: str, weight: ArrayF32, heads: Mapping[str, int]) -> ArrayF32:
    """Rows of q and k as llama.cpp's converter lays out rotary halves: pairs side by side."""
    for letter, count in heads.items():
        if f"self_attn.{letter}_proj" in name:
            rows = weight.reshape(count, 2, weight.shape[0] // count // 2, -1)
            return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))
    return weight
