"""Qwen3: Llama's decoder with an RMS norm over every query and key head."""

from collections.abc import Mapping

from torch import Tensor

from engine.layers.attention import HeadNorms
from engine.model_config import ModelConfig

from .decoder import Decoder
from .llama import load_llama


def load_qwen3(weights: Mapping[str, Tensor], config: ModelConfig, num_positions: int) -> Decoder:
    """Raises ModelError on an activation other than silu."""
    return load_llama(weights, config, num_positions, HeadNorms.load)
