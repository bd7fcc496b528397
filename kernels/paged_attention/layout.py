"""What attention must know about a flat batch, in numpy, before any tensor is touched."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TILE = 512  # positions of one key tile
FOREVER = np.iinfo(np.int64).max  # tout of rows that all later rows see

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FlatRows:
    """The rows of one step. Sequence s owns rows row_start[s] … row_start[s+1]−1: first the
    `num_stored[s]` rows of a chain at positions context_len[s]−num_stored[s] … context_len[s]−1,
    then rows of a trie that hangs from the last of them.

    `context_len` [S] counts stored positions, this step's included; `block_tables` cover them;
    `positions`, `tin`, `tout` [rows] as in the mask rule (tin of a stored position is itself).
    """

    row_start: Ints
    num_stored: Ints
    context_len: Ints
    block_tables: tuple[tuple[int, ...], ...]
    positions: Ints
    tin: Ints
    tout: Ints
