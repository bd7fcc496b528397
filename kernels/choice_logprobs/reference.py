"""The plain twin: the vocabulary-wide rows of CHUNK nodes at a time live in one buffer."""

import torch
from torch import Tensor

from kernels.linear import PackedWeight, linear

CHUNK = 128


def choice_logprobs(
    hidden: Tensor, head: PackedWeight, edge_rows: Tensor, edge_tokens: Tensor
) -> Tensor:
    out = torch.empty(len(edge_rows), dtype=torch.float32)
    borders = torch.arange(0, len(hidden) + CHUNK, CHUNK)
    edges = torch.searchsorted(edge_rows, borders).tolist()
    for i, first in enumerate(range(0, len(hidden), CHUNK)):
        low, high = edges[i], edges[i + 1]
        # log_softmax runs along one row at a time; logsumexp would share a lone row among threads
        terms = torch.log_softmax(linear(hidden[first : first + CHUNK], head).float(), dim=-1)
        out[low:high] = terms[edge_rows[low:high] - first, edge_tokens[low:high]]
    return out
