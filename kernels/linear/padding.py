"""How many rows a product must be given for a row to keep its bits: found by trying.

Libraries pick another kernel, with another order of summation, below some number of rows: torch's
linear below 4, oneDNN on one AVX-512 machine for a single row of 1,536 inputs and more. Which and
where depends on the machine, so on each machine every shape is tried once, with rows that are all
the same: they must all come out the same, for every number of rows.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

COUNTS = (1, 2, 3, 4, 5, 8, 11, 16, 17, 31, 33, 64, 65, 100, 129, 257, 400)
MAX_PRODUCTS = 1 << 28  # multiplications of one trial; larger shapes are tried with fewer rows


class Padding(NamedTuple):
    """Rows are filled up to `least`, then to a multiple of `multiple`."""

    least: int
    multiple: int

    def missing(self, rows: int) -> int:
        return max(self.least, -(-rows // self.multiple) * self.multiple) - rows


CANDIDATES = (Padding(1, 1), Padding(2, 1), Padding(4, 1), Padding(4, 4), Padding(16, 16))


def find_padding(product: Callable[[Tensor], Tensor], row: Tensor, num_out: int) -> Padding:
    """The cheapest padding under which `product` [rows, in] → [rows, out] keeps the bits of `row`
    [1, in]; the widest where none does (the check at a runner's start then withdraws its label)."""
    most = max(16, MAX_PRODUCTS // (num_out * row.shape[1]))

    @cache
    def bits(rows: int) -> bytes | None:
        """The bits that all rows share; None where they differ among themselves."""
        result = product(row.expand(rows, -1).contiguous())
        same = torch.equal(result, result[:1].expand_as(result))
        return result[0].view(torch.uint8).numpy().tobytes() if same else None

    for padding in CANDIDATES:
        counts = {n + padding.missing(n) for n in COUNTS if n <= most}
        found = {bits(n) for n in sorted(counts)}
        if len(found) == 1 and None not in found:
            return padding
    return CANDIDATES[-1]
