"""Every op gives a row the same bits alone and among many, for any number of threads.

All rows of an input are one row repeated: whatever differs in the result came from the row's place.
The widths are odd and the rows many, so that PyTorch cuts the work in the middle of a row.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from kernels.choice_logprobs import choice_logprobs
from kernels.linear import linear, pack
from kernels.pieces import GRAIN, row_pieces
from kernels.rms_norm import rms_norm
from kernels.rope import rope_
from kernels.silu_mul import silu_mul
from kernels.store_kv import KVLayer, plan_store, store_kv

ROWS = (1, 2, 3, 4, 5, 31, 210, 415, 601)  # 415 rows of 80 were cut inside a row
WIDTHS = (20, 80, 164, 576)
Op = Callable[[Tensor], Tensor]


@pytest.fixture(params=[1, 2, 3, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(shape[-1])) * 3


def turned(x: Tensor) -> Tensor:
    """As in a model: the heads that turn share their rows with heads that don't."""
    heads = torch.cat((x, x), dim=1).view(len(x), -1, 2)
    heads = heads.view(len(x), 4, x.shape[1] // 2)
    angles = random(x.shape[1] // 4).expand(len(x), -1)
    rope_(heads[:, :3], torch.polar(torch.ones_like(angles), angles))
    return heads.reshape(len(x), -1)


def stored_int8(x: Tensor) -> Tensor:
    blocks = len(x) // 4 + 1
    entries = torch.zeros(2, blocks, 1, 4, x.shape[1], dtype=torch.int8)
    scales = torch.zeros(2, blocks, 1, 4)
    layer = KVLayer(entries[0], entries[1], scales[0], scales[1])
    store_kv(x[:, None], x[:, None], layer, plan_store(np.arange(len(x)), 1, 4))
    values = layer.keys.float() * scales[0, ..., None]
    return values.view(-1, x.shape[1])[: len(x)]


def edges(x: Tensor) -> Tensor:
    head = pack(random(1000, x.shape[1]))
    rows = torch.arange(len(x)).repeat_interleave(2)
    return choice_logprobs(x, head, rows, torch.tensor([7, 998]).repeat(len(x))).view(-1, 2)


OPS: dict[str, Op] = {
    "silu_mul": lambda x: silu_mul(torch.cat((x, x.flip(1)), dim=1)),
    "rope": turned,
    "rms_norm": lambda x: rms_norm(x, random(x.shape[1]), 1e-5),
    "store_kv int8": stored_int8,
    "choice_logprobs": edges,
    "linear": lambda x: linear(x, pack(random(50, x.shape[1]))),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", OPS)
def test_a_row_keeps_its_bits(name: str, width: int, threads: int) -> None:
    row = random(1, width)
    alone = OPS[name](row.clone())
    for rows in ROWS:
        result = OPS[name](row.repeat(rows, 1))
        assert torch.equal(result, alone.expand_as(result)), rows


@pytest.mark.parametrize(("num_out", "num_in"), [(576, 1536), (1152, 896), (896, 4864), (64, 96)])
def test_a_row_of_a_deep_product_keeps_its_bits(num_out: int, num_in: int, threads: int) -> None:
    """oneDNN on one AVX-512 machine sums 1,536 products in another order for a single row."""
    row, residual = random(1, num_in), random(1, num_out)
    weight = pack(random(num_out, num_in))
    alone, added = linear(row, weight), linear(row, weight, residual)
    for rows in ROWS[:7]:
        result = linear(row.repeat(rows, 1), weight)
        assert torch.equal(result, alone.expand_as(result)), rows
        result = linear(row.repeat(rows, 1), weight, residual.repeat(rows, 1))
        assert torch.equal(result, added.expand_as(result)), rows


@pytest.mark.parametrize(("rows", "width"), [(0, 5), (1, 5), (415, 80), (3, GRAIN), (7, 1 << 20)])
def test_pieces_cover_all_rows_once(rows: int, width: int) -> None:
    pieces = list(row_pieces(rows, width))
    assert [r for p in pieces for r in range(p.start, p.stop)] == list(range(rows))
    assert all((p.stop - p.start) * width < GRAIN or p.stop - p.start == 1 for p in pieces)
