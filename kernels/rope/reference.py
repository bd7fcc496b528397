"""The plain twin."""

import torch
from torch import Tensor


def rope_(x: Tensor, turns: Tensor) -> None:
    rows, heads, head_dim = x.shape
    pairs = torch.view_as_complex(x.view(rows, heads, head_dim // 2, 2))
    pairs.mul_(turns.unsqueeze(1))
