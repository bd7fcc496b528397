"""A row of a product keeps its bits whatever the number of rows, threads and neighbours."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from kernels.linear import PackedWeight, linear, pack

ROWS = (*range(1, 18), 31, 33, 48, 63, 65, 100, 129, 257, 300)
SHAPES = ((576, 960), (1536, 576), (64, 96), (20, 30))  # in, out


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def unpacked(weight: Tensor, bias: Tensor | None = None) -> PackedWeight:
    return PackedWeight(weight, bias, weight.shape[0], weight.shape[1], is_packed=False)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [pack, unpacked])
def test_bits_of_a_row_do_not_depend_on_the_others(shape: tuple[int, int], make, threads) -> None:  # type: ignore[no-untyped-def]
    num_in, num_out = shape
    generator = torch.Generator().manual_seed(num_in)
    x = torch.randn(2 * ROWS[-1], num_in, generator=generator)
    weight = make(torch.randn(num_out, num_in, generator=generator))
    whole = linear(x, weight)
    for rows in ROWS:
        assert torch.equal(linear(x[:rows], weight), whole[:rows]), rows
        assert torch.equal(linear(x[7 : 7 + rows], weight), whole[7 : 7 + rows]), rows


@pytest.mark.parametrize("make", [pack, unpacked])
def test_value_bias_and_residual(make) -> None:  # type: ignore[no-untyped-def]
    x, w, b, r = torch.randn(5, 24), torch.randn(16, 24), torch.randn(16), torch.randn(5, 16)
    expected = (x.double() @ w.double().T + b + r).float()
    torch.testing.assert_close(linear(x, make(w, b), r), expected)
    torch.testing.assert_close(linear(x, make(w)), (x.double() @ w.double().T).float())


@pytest.mark.parametrize("make", [pack, unpacked])
def test_a_residual_keeps_bits_too(make) -> None:  # type: ignore[no-untyped-def]
    x, w, r = torch.randn(40, 64), torch.randn(96, 64), torch.randn(40, 96)
    weight = make(w)
    whole = linear(x, weight, r)
    for rows in (1, 2, 3, 5, 11, 33):
        assert torch.equal(linear(x[:rows], weight, r[:rows]), whole[:rows])


def test_wrong_shapes_are_named() -> None:
    weight = pack(torch.randn(16, 24))
    with pytest.raises(ValueError, match=r"x is \[5, 23\]"):
        linear(torch.randn(5, 23), weight)
    with pytest.raises(ValueError, match="residual"):
        linear(torch.randn(5, 24), weight, torch.randn(4, 16))
