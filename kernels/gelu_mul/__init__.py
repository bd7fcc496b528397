"""The gate of a gated MLP in Gemma: gelu(gate) · up, gelu by its tanh approximation."""

from torch import Tensor

from . import reference


def gelu_mul(gate_up: Tensor) -> Tensor:
    """gate_up [rows, 2·size], gate first → [rows, size]. Raises ValueError on an odd width."""
    if gate_up.shape[-1] % 2:
        raise ValueError(f"gelu_mul: the width {gate_up.shape[-1]} is odd")
    return reference.gelu_mul(gate_up)
