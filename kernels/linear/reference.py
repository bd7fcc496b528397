"""The product on the CPU: oneDNN with the weight packed once, else torch's linear.

oneDNN's packed product is the faster one at few rows. Rows are padded where the library, on this
machine and for this shape, would otherwise change a row's bits with their number.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from .padding import Padding, find_padding

_found: dict[tuple[object, ...], Padding] = {}  # by shape, library and threads


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A weight [num_out, num_in] in the layout its product wants, and its bias [num_out]."""

    data: Tensor
    bias: Tensor | None
    num_out: int
    num_in: int
    is_packed: bool  # oneDNN's own layout; only oneDNN can read it

    def multiply(self, x: Tensor, residual: Tensor | None) -> Tensor:
        rows = len(x)
        if missing := self.padding().missing(rows):
            x = _filled(x, missing)
            residual = None if residual is None else _filled(residual, missing)
        return self._product(x, residual)[:rows]

    def padding(self) -> Padding:
        """Tried once a shape, library and number of threads."""
        data = self.data
        key = (self.num_out, self.num_in, self.is_packed, data.dtype, torch.get_num_threads())
        if key not in _found:
            row = torch.randn(1, self.num_in, generator=torch.Generator().manual_seed(1))
            product = partial(self._product, residual=None)
            _found[key] = find_padding(product, row.to(data), self.num_out)
        return _found[key]

    def _product(self, x: Tensor, residual: Tensor | None) -> Tensor:
        if not self.is_packed:
            y = torch.nn.functional.linear(x, self.data, self.bias)
            return y if residual is None else y.add_(residual)
        ops = torch.ops.mkldnn
        out: Tensor
        if residual is None:
            out = ops._linear_pointwise(x, self.data, self.bias, "none", [], "")
        else:
            out = ops._linear_pointwise.binary(x, residual, self.data, self.bias, "add")
        return out


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


def _filled(x: Tensor, missing: int) -> Tensor:
    return torch.cat((x, x.new_zeros(missing, x.shape[1])))
