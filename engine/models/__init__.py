"""Architectures by name; `load_model` reads a directory into a decoder."""

from pathlib import Path

from engine.model_config import ModelError, read_config
from engine.weights import load_tensors

from .decoder import Decoder
from .gemma3 import load_gemma3
from .llama import load_llama
from .qwen3 import load_qwen3

LOADERS = {
    "LlamaForCausalLM": load_llama,
    "MistralForCausalLM": load_llama,  # the same decoder, with a window where config.json has one
    "Qwen2ForCausalLM": load_llama,  # biases on q, k and v, which come with the weights
    "Qwen3ForCausalLM": load_qwen3,
    "Gemma3ForCausalLM": load_gemma3,
}

__all__ = ["LOADERS", "Decoder", "ModelError", "load_model"]


def load_model(model_dir: Path, max_model_len: int | None = None) -> Decoder:
    """The model of a directory, ready for positions below `max_model_len` (None: the model's own).

    Raises ModelError with one line that names what is wrong and what to do.
    """
    config = read_config(model_dir)
    positions = config.max_position_embeddings
    if max_model_len is not None and max_model_len > positions:
        raise ModelError(
            f"max_model_len: {max_model_len} is more than the model's {positions} positions"
        )
    weights = load_tensors(model_dir, config)
    try:
        return LOADERS[config.architecture](weights, config, max_model_len or positions)
    except (MemoryError, RuntimeError) as error:
        reason = (str(error).splitlines() or ["out of memory"])[0]
        raise ModelError(
            f"{model_dir} does not load ({reason}); where memory is short, choose a smaller model "
            "or a lower max_model_len"
        ) from None
    finally:
        weights.close()
