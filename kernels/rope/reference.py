"""The plain twin."""

import torch
from torch import Tensor

from kernels.pieces import row_pieces


def rope_(x: Tensor, turns: Tensor) -> None:
    rows, heads, head_dim = x.shape
    pairs = torch.view_as_complex(x.view(rows, heads, head_dim // 2, 2))
    for piece in row_pieces(rows, heads * head_dim // 2):
        pairs[piece].mul_(turns[piece].unsqueeze(1))
