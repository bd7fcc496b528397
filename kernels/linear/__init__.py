"""Products with a weight: y = x Wᵀ (+ b) (+ residual).

A row of the result depends on its own row of x alone, bit for bit, whatever the number of rows:
the determinism of the engine stands on this function.
"""

from torch import Tensor

from .reference import PackedWeight, pack

__all__ = ["PackedWeight", "linear", "pack"]


def linear(x: Tensor, weight: PackedWeight, residual: Tensor | None = None) -> Tensor:
    """x [rows, in], weight packed from [out, in] → [rows, out]; residual [rows, out] is added.

    Raises ValueError where the shapes don't go together.
    """
    if x.dim() != 2 or x.shape[1] != weight.num_in:
        raise ValueError(f"linear: x is {list(x.shape)}, the weight takes [rows, {weight.num_in}]")
    if residual is not None and residual.shape != (x.shape[0], weight.num_out):
        raise ValueError(
            f"linear: the residual is {list(residual.shape)}, "
            f"the result is {[x.shape[0], weight.num_out]}"
        )
    return weight.multiply(x, residual)
