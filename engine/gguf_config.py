"""A GGUF file's metadata as the config.json that transformers would have for the same model."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .gguf_file import GgufFile
from .model_types import ModelError
from .recipe import elsewhere

ARCHITECTURES = {
    "llama": ("LlamaForCausalLM", "llama"),
    "qwen2": ("Qwen2ForCausalLM", "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
    "gemma3": ("Gemma3ForCausalLM", "gemma3_text"),
}
ENDS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>")  # end a turn, whatever the metadata say
CONTROL = 3  # a token's type
ROPE_FACTORS = "rope_freqs.weight"  # how llama.cpp stores llama3 scaling: a divisor a frequency
LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # of every published Llama 3.1, 3.2 and 3.3
# Gemma 3 as llama.cpp runs it, where the file does not say.
THETA, LOCAL_THETA, PATTERN, LAYERS_27B = 1_000_000.0, 10_000.0, 6, 62
CAPS = ("final_logit_softcapping", "attn_logit_softcapping")  # refused where they are set


def config_of(file: GgufFile) -> dict[str, Any]:
    """Raises ModelError: an unknown architecture or rope scaling, metadata that is missing."""
    if file.architecture not in ARCHITECTURES:
        raise ModelError(
            f"{file.path.name}: unknown GGUF architecture {file.architecture!r} "
            f"(known: {', '.join(ARCHITECTURES)}); {elsewhere(file.path)}"
        )
    architecture, model_type = ARCHITECTURES[file.architecture]
    heads, hidden = file.need("attention.head_count"), file.need("embedding_length")
    head_dim = file.get("attention.key_length", hidden // heads)
    if file.get("rope.dimension_count", head_dim) != head_dim:
        raise ModelError(f"{file.path.name}: rotary over part of a head; {elsewhere(file.path)}")
    tied = "output.weight" not in file.tensors
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": len(file.need_field("tokenizer.ggml.tokens")),
        "hidden_size": hidden,
        "intermediate_size": file.need("feed_forward_length"),
        "num_hidden_layers": file.need("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": file.get("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": file.need("context_length"),
        "rms_norm_eps": _short(file.need("attention.layer_norm_rms_epsilon")),
        "rope_theta": _short(file.get("rope.freq_base", 10000.0)),
        **_scaling(file, head_dim),
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": file.fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": _ends(file.fields),
        "pad_token_id": file.fields.get("tokenizer.ggml.padding_token_id"),
        "dtype": "float32",
        **(_gemma3(file, hidden // heads, head_dim) if file.architecture == "gemma3" else {}),
    }


def _gemma3(file: GgufFile, share: int, head_dim: int) -> dict[str, Any]:
    """`share`: hidden elements a head; the 27B model scales its scores by that."""
    theta = file.get("rope.freq_base", file.get("rope.global.freq_base", THETA))
    local = file.get("rope.freq_base_swa", file.get("rope.local.freq_base", LOCAL_THETA))
    return {
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": share if file.need("block_count") == LAYERS_27B else head_dim,
        "sliding_window": file.need("attention.sliding_window"),
        "sliding_window_pattern": file.get("attention.sliding_window_pattern", PATTERN),
        "rope_theta": _short(theta),
        "rope_local_base_freq": _short(local),
        **{key: cap for key in CAPS if (cap := file.get(key))},
    }


def _ends(fields: Mapping[str, Any]) -> int | list[int] | None:
    """The end token, or the list where a turn ends with another one."""
    tokens, types = fields["tokenizer.ggml.tokens"], fields.get("tokenizer.ggml.token_type", [])
    named = [fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")]
    found = [token for token in named if token is not None]
    marked = zip(tokens, types, strict=False)
    found += [i for i, (text, kind) in enumerate(marked) if kind == CONTROL and text in ENDS]
    ends = list(dict.fromkeys(found))
    return ends if len(ends) > 1 else next(iter(ends), None)


def _scaling(file: GgufFile, head_dim: int) -> dict[str, Any]:
    """`rope_scaling`, if there is any."""
    kind = file.get("rope.scaling.type", "none")
    if kind == "none":
        return _llama3(file, head_dim)
    values: dict[str, Any] = {"rope_type": kind, "factor": file.need("rope.scaling.factor")}
    if kind == "yarn":
        old = file.need("rope.scaling.original_context_length")
        values["original_max_position_embeddings"] = old
    if kind not in ("linear", "yarn") or file.get("rope.scaling.attn_factor", 1.0) != 1.0:
        raise ModelError(
            f"{file.path.name}: unknown rope scaling {kind!r} in GGUF; {elsewhere(file.path)}"
        )
    return {"rope_scaling": values}


def _llama3(file: GgufFile, head_dim: int) -> dict[str, Any]:
    """The scaling whose divisors are the file's. Raises ModelError where none has them."""
    stored = file.tensors.get(ROPE_FACTORS)
    if stored is None:
        return {}
    divisors = file.data(stored).reshape(-1).view("<f4").astype(np.float64)
    factor = round(float(divisors.max()), 3)
    theta = float(file.get("rope.freq_base", 10000.0))
    if divisors.shape != (head_dim // 2,) or not np.allclose(
        divisors, _divisors(theta, head_dim, factor), rtol=1e-4
    ):
        raise ModelError(
            f"{file.path.name}: {ROPE_FACTORS} is no llama3 scaling that is known; "
            f"{elsewhere(file.path)}"
        )
    return {"rope_scaling": {"rope_type": "llama3", "factor": factor, **LLAMA3}}


def _divisors(theta: float, head_dim: int, factor: float) -> npt.NDArray[np.float64]:
    """What each frequency is divided by: long waves by `factor`, short ones by 1 (Llama 3.1)."""
    low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
    frequencies = theta ** -(np.arange(0, head_dim, 2) / head_dim)
    turns = LLAMA3["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    kept = ((turns - low) / (high - low)).clip(0, 1)
    divisors: npt.NDArray[np.float64] = 1 / (kept + (1 - kept) / factor)
    return divisors


def _short(value: float) -> float:
    """The shortest decimal of a float32: 9.999999747378752e-06 was written as 1e-05."""
    return float(str(np.float32(value)))
