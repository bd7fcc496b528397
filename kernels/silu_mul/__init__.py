"""The gate of a gated MLP: silu(gate) · up."""

from torch import Tensor

from . import reference


def silu_mul(gate_up: Tensor) -> Tensor:
    """gate_up [rows, 2·size], gate first → [rows, size]. Raises ValueError on an odd width."""
    if gate_up.shape[-1] % 2:
        raise ValueError(f"silu_mul: the width {gate_up.shape[-1]} is odd")
    return reference.silu_mul(gate_up)
