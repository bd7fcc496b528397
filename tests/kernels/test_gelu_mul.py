"""Gemma's gate against the plain formula, and row by row on any number of threads."""

import math
from collections.abc import Iterator

import pytest
import torch

from kernels.gelu_mul import gelu_mul


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("size", [1, 3, 16, 63, 100, 576])
def test_the_tanh_approximation(size: int) -> None:
    x = torch.randn(40, 2 * size) * 2
    gate, up = x.double().chunk(2, -1)
    inner = math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)
    torch.testing.assert_close(gelu_mul(x), (gate / 2 * (1 + inner.tanh()) * up).float())


@pytest.mark.parametrize("size", [20, 80, 82, 164, 2048])
def test_a_row_keeps_its_bits(size: int, threads: None) -> None:
    """One row repeated: PyTorch cuts gelu over threads in the middle of a row, from 16,385
    elements on."""
    row = torch.randn(1, 2 * size, generator=torch.Generator().manual_seed(size)) * 3
    alone = gelu_mul(row)
    for rows in (2, 3, 5, 31, 205, 210, 415):
        result = gelu_mul(row.repeat(rows, 1))
        assert torch.equal(result, alone.expand_as(result)), rows


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="odd"):
        gelu_mul(torch.ones(2, 5))
