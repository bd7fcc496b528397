"""Norm, rotary, gate, paged writes and trie terms against plain formulas, and row by row."""

import math

import numpy as np
import pytest
import torch

from kernels.choice_logprobs import choice_logprobs
from kernels.linear import pack
from kernels.rms_norm import rms_norm
from kernels.rope import rope_
from kernels.silu_mul import silu_mul
from kernels.store_kv import KVLayer, plan_store, store_kv

SIZES = (1, 3, 16, 63, 100, 576)
ROWS = (1, 2, 5, 17, 40)


@pytest.mark.parametrize("size", SIZES)
def test_rms_norm(size: int) -> None:
    x, w = torch.randn(40, size), torch.randn(size)
    plain = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-5).sqrt() * w
    whole = rms_norm(x, w, 1e-5)
    torch.testing.assert_close(whole, plain.float())
    for rows in ROWS:
        assert torch.equal(rms_norm(x[:rows], w, 1e-5), whole[:rows])


@pytest.mark.parametrize("head_dim", [2, 6, 64, 100])
def test_rope_turns_pairs(head_dim: int) -> None:
    x = torch.randn(40, 5, head_dim)
    angles = torch.randn(40, head_dim // 2)
    even, odd = x[..., 0::2].double(), x[..., 1::2].double()
    cos, sin = angles.cos().double()[:, None], angles.sin().double()[:, None]
    turned = x.clone()
    rope_(turned, torch.polar(torch.ones_like(angles), angles))
    torch.testing.assert_close(turned[..., 0::2], (even * cos - odd * sin).float())
    torch.testing.assert_close(turned[..., 1::2], (odd * cos + even * sin).float())
    for rows in ROWS:
        part = x[:rows].clone()
        rope_(part, torch.polar(torch.ones_like(angles), angles)[:rows])
        assert torch.equal(part, turned[:rows])


def test_rope_leaves_the_rest_of_the_buffer_alone() -> None:
    heads = torch.randn(7, 6, 8)
    before = heads.clone()
    rope_(heads[:, :4], torch.polar(torch.ones(7, 4), torch.randn(7, 4)))
    assert torch.equal(heads[:, 4:], before[:, 4:])
    assert not torch.equal(heads[:, :4], before[:, :4])


@pytest.mark.parametrize("size", SIZES)
def test_silu_mul(size: int) -> None:
    x = torch.randn(40, 2 * size)
    gate, up = x.double().chunk(2, -1)
    whole = silu_mul(x)
    torch.testing.assert_close(whole, (gate / (1 + torch.exp(-gate)) * up).float())
    for rows in ROWS:
        assert torch.equal(silu_mul(x[:rows]), whole[:rows])


def pool(dtype: torch.dtype = torch.float32) -> KVLayer:
    shape = (6, 2, 4, 8)  # blocks, kv_heads, block_size, head_dim
    if dtype is torch.int8:
        scales = torch.full((2, *shape[:3]), torch.nan)
        entries = torch.zeros(2, *shape, dtype=dtype)
        return KVLayer(entries[0], entries[1], scales[0], scales[1])
    entries = torch.full((2, *shape), torch.nan)
    return KVLayer(entries[0], entries[1])


@pytest.mark.parametrize("slots", [[3, 9, 22], [-1, 5, -1, 6, -1], [-1, -1], [0, 1, 2, 3, -1]])
def test_store_kv_writes_slots_and_nothing_else(slots: list[int]) -> None:
    layer, keys, values = pool(), torch.randn(len(slots), 2, 8), torch.randn(len(slots), 2, 8)
    store_kv(keys, values, layer, plan_store(np.array(slots), 2, 4))
    for new, stored in ((keys, layer.keys), (values, layer.values)):
        for row, slot in enumerate(slots):
            if slot >= 0:
                assert torch.equal(stored[slot // 4, :, slot % 4], new[row])
        written = (~stored.isnan()).sum().item()
        assert written == sum(slot >= 0 for slot in slots) * 2 * 8


def test_store_kv_int8_keeps_a_scale_a_slot_and_head() -> None:
    layer, keys, values = pool(torch.int8), torch.randn(3, 2, 8), torch.randn(3, 2, 8)
    keys[1] = 0
    store_kv(keys, values, layer, plan_store(np.array([3, 9, 22]), 2, 4))
    assert layer.key_scales is not None
    for row, slot in enumerate([3, 9, 22]):
        scale = layer.key_scales[slot // 4, :, slot % 4]
        assert torch.equal(scale, keys[row].abs().amax(-1) / 127)
        back = layer.keys[slot // 4, :, slot % 4] * scale[:, None]
        assert (back - keys[row]).abs().max() <= scale.max() / 2 * 1.001
    assert layer.key_scales.isnan().sum() == 6 * 2 * 4 - 3 * 2


@pytest.mark.parametrize("nodes", [1, 2, 127, 128, 129, 300])
def test_choice_logprobs(nodes: int) -> None:
    generator = torch.Generator().manual_seed(nodes)
    hidden = torch.randn(nodes, 12, generator=generator)
    weight = torch.randn(70, 12, generator=generator)
    rows = torch.randint(0, nodes, (nodes + 9,), generator=generator).sort().values
    tokens = torch.randint(0, 70, (nodes + 9,), generator=generator)
    logits = hidden.double() @ weight.double().T
    expected = torch.log_softmax(logits, -1)[rows, tokens].float()
    found = choice_logprobs(hidden, pack(weight), rows, tokens)
    torch.testing.assert_close(found, expected)
    row = int(rows[-1])
    alone = choice_logprobs(
        hidden[row : row + 1], pack(weight), torch.zeros(1, dtype=torch.int64), tokens[-1:]
    )
    assert torch.equal(alone, found[-1:])


def test_choice_logprobs_of_a_lone_wide_row() -> None:
    """A sum over a vocabulary is not shared among threads when one row is alone."""
    hidden, head = torch.randn(5, 16), pack(torch.randn(50_000, 16))
    rows, tokens = torch.arange(5), torch.arange(5) * 9_000
    together = choice_logprobs(hidden, head, rows, tokens)
    for i in range(5):
        alone = choice_logprobs(hidden[i : i + 1], head, rows[:1], tokens[i : i + 1])
        assert torch.equal(alone, together[i : i + 1])


def test_choice_logprobs_shows_broken_rows() -> None:
    hidden = torch.randn(3, 12)
    hidden[1, 4] = math.nan
    terms = choice_logprobs(hidden, pack(torch.randn(70, 12)), torch.arange(3), torch.arange(3))
    assert terms.isnan().tolist() == [False, True, False]
