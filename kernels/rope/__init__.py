"""Rotary positions on interleaved pairs: elements 2i and 2i+1 of a head turn by one angle.

Checkpoints in Hugging Face's layout (i and i + size/2) are permuted once at load, on queries and
keys alike, so scores are the same; a turn is then one complex product in place.
"""

import torch
from torch import Tensor

from . import reference


def rope_(x: Tensor, turns: Tensor) -> None:
    """Turn x in place.

    x [rows, heads, head_dim] float32 with the last dimension contiguous; turns [rows, head_dim/2]
    complex64, one unit (times a scale) a pair. Raises ValueError on other shapes.
    """
    rows, _, head_dim = x.shape
    if turns.shape != (rows, head_dim // 2) or turns.dtype != torch.complex64:
        raise ValueError(f"rope_: x is {list(x.shape)}, turns {list(turns.shape)} {turns.dtype}")
    reference.rope_(x, turns)
