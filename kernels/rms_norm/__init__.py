"""x / rms(x) · w over the last dimension."""

from torch import Tensor

from . import reference


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., size], weight [size] → [..., size]. Raises ValueError on other shapes."""
    if weight.dim() != 1 or x.shape[-1] != weight.shape[0]:
        raise ValueError(f"rms_norm: x is {list(x.shape)}, the weight {list(weight.shape)}")
    return reference.rms_norm(x, weight, eps)
