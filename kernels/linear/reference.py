"""The product on the CPU: oneDNN with the weight packed once, else torch's linear on padded rows.

oneDNN's packed product gave every row the same bits for any number of rows from 1 to 3,000, and is
the faster one at few rows. torch's own linear picks another kernel below 4 rows and splits them
over threads in whatever way, so there rows are padded to a multiple of 4.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

ROW_MULTIPLE = 4


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A weight [num_out, num_in] in the layout its product wants, and its bias [num_out]."""

    data: Tensor
    bias: Tensor | None
    num_out: int
    num_in: int
    is_packed: bool  # oneDNN's own layout; only oneDNN can read it

    def multiply(self, x: Tensor, residual: Tensor | None) -> Tensor:
        if not self.is_packed:
            return _padded(x, self.data, self.bias, residual)
        ops = torch.ops.mkldnn
        y: Tensor
        if residual is None:
            y = ops._linear_pointwise(x, self.data, self.bias, "none", [], "")
        else:
            y = ops._linear_pointwise.binary(x, residual, self.data, self.bias, "add")
        return y


def pack(weight: Tensor, bias: Tensor | None = None) -> PackedWeight:
    """Pack a weight [out, in]; the tensor given may be freed afterwards."""
    num_out, num_in = weight.shape
    if weight.dtype == torch.float32 and weight.device.type == "cpu" and has_onednn():
        data = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 1024)
        return PackedWeight(data, bias, num_out, num_in, is_packed=True)
    return PackedWeight(weight.contiguous(), bias, num_out, num_in, is_packed=False)


def has_onednn() -> bool:
    """Whether this build of torch has oneDNN and the two operators used here."""
    ops = torch.ops.mkldnn
    return torch._C._has_mkldnn and all(
        hasattr(ops, name) for name in ("_linear_pointwise", "_reorder_linear_weight")
    )


def _padded(x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None) -> Tensor:
    rows = x.shape[0]
    missing = -rows % ROW_MULTIPLE
    if missing:
        x = torch.cat((x, x.new_zeros(missing, x.shape[1])))
    y = torch.nn.functional.linear(x, weight, bias)[:rows]
    return y if residual is None else y.add_(residual)
