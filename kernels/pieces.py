"""Pieces of rows small enough that PyTorch computes each of them on one thread.

An elementwise op on more than GRAIN elements is cut into equal shares, one a thread, in the middle
of a row where that falls so. silu, gelu, sigmoid and complex products take other instructions, with
other bits, for the last few elements of a share: a row's bits would depend on how many rows there
are. On one thread every row is a loop of its own, and an element's bits depend on its place in its
row alone.
"""

from collections.abc import Iterator

GRAIN = 32_768  # at::internal::GRAIN_SIZE: fewer elements than this stay on one thread


def row_pieces(rows: int, width: int) -> Iterator[slice]:
    """Slices that cover `rows` rows of `width` elements in order."""
    step = max(1, (GRAIN - 1) // max(1, width))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))
