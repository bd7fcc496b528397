"""The tile formula against an explicit masked softmax, on odd lengths and poisoned memory."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from kernels.paged_attention import (
    TILE,
    FlatRows,
    paged_attention,
    plan_attention,
    safe_key_lengths,
)
from kernels.paged_attention import plan as plan_module
from kernels.paged_attention.layout import FOREVER, Ints
from kernels.store_kv import KVLayer, plan_store, store_kv

BLOCK = 16


@dataclass(frozen=True)
class Piece:
    """One sequence of a step: `start` cached, `chain` new rows, trie given by its parents."""

    seed: int
    start: int
    chain: int
    parents: tuple[int, ...] = ()


def trie_ends(parents: tuple[int, ...]) -> list[int]:
    ends = [i + 1 for i in range(len(parents))]
    for i in reversed(range(len(parents))):
        if parents[i] >= 0:
            ends[parents[i]] = max(ends[parents[i]], ends[i])
    return ends


class Scene:
    """Keys and values of any (seed, row) are fixed, so pieces may be put into any batch."""

    def __init__(self, heads: int, kv_heads: int, head_dim: int, window: int | None = None) -> None:
        self.heads, self.kv_heads, self.head_dim, self.window = heads, kv_heads, head_dim, window

    def tensors(self, piece: Piece) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(piece.seed)
        rows, d = 2400, self.head_dim
        q = torch.randn(rows, self.heads, d, generator=generator)
        k, v = (torch.randn(rows, self.kv_heads, d, generator=generator) for _ in range(2))
        total = piece.start + piece.chain + len(piece.parents)
        return q[:total], k[:total], v[:total]

    def run(self, pieces: list[Piece], dtype: torch.dtype = torch.float32) -> list[Tensor]:
        """Results [chain + trie, heads, head_dim] of every piece; the pool starts as NaN."""
        tables, at = [], 3
        for piece in pieces:
            count = -(-(piece.start + piece.chain) // BLOCK)
            tables.append(tuple(reversed(range(at, at + count))))
            at += count
        layer = self.pool(at, dtype)
        q, k, v, rows, slots = [], [], [], [], []
        for piece, table in zip(pieces, tables, strict=True):
            pq, pk, pv = self.tensors(piece)
            all_slots = np.array(
                [table[p // BLOCK] * BLOCK + p % BLOCK for p in range(piece.start + piece.chain)]
                + [-1] * len(piece.parents)
            )
            cached = plan_store(all_slots[: piece.start], self.kv_heads, BLOCK)
            store_kv(pk[: piece.start], pv[: piece.start], layer, cached)
            q.append(pq[piece.start :])
            k.append(pk[piece.start :])
            v.append(pv[piece.start :])
            slots.append(all_slots[piece.start :])
            rows.append(self.columns(piece))
        batch = FlatRows(
            row_start=np.cumsum([0, *(len(x) for x in q)]),
            num_stored=np.array([p.chain for p in pieces]),
            context_len=np.array([p.start + p.chain for p in pieces]),
            block_tables=tuple(tables),
            positions=np.concatenate([r[0] for r in rows]),
            tin=np.concatenate([r[1] for r in rows]),
            tout=np.concatenate([r[2] for r in rows]),
        )
        plan = plan_attention(
            batch,
            kv_heads=self.kv_heads,
            block_size=BLOCK,
            key_lengths=safe_key_lengths(self.head_dim),
            window=self.window,
        )
        padding = torch.full((plan.num_rows - batch.row_start[-1], self.heads, self.head_dim), 9.0)
        query = torch.cat((*q, padding))
        keys, values = (torch.cat((*x, padding[:, : self.kv_heads])) for x in (k, v))
        store_kv(keys, values, layer, plan_store(np.concatenate(slots), self.kv_heads, BLOCK))
        out = paged_attention(query, keys, values, layer, plan, self.head_dim**-0.5)
        return [out[a:b] for a, b in pairwise(batch.row_start)]

    def pool(self, blocks: int, dtype: torch.dtype) -> KVLayer:
        shape = (2, blocks, self.kv_heads, BLOCK, self.head_dim)
        if dtype is torch.int8:
            entries, scales = torch.zeros(shape, dtype=dtype), torch.full(shape[:-1], torch.nan)
            return KVLayer(entries[0], entries[1], scales[0], scales[1])
        entries = torch.full(shape, torch.nan)
        return KVLayer(entries[0], entries[1])

    def columns(self, piece: Piece) -> tuple[Ints, Ints, Ints]:
        context, nodes = piece.start + piece.chain, len(piece.parents)
        chain = np.arange(piece.start, context)
        depths: list[int] = []
        for parent in piece.parents:
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return (
            np.concatenate((chain, context - 1 + np.array(depths, dtype=np.int64))),
            np.concatenate((chain, context + np.arange(nodes))),
            np.concatenate(
                (
                    np.full(piece.chain, FOREVER),
                    context + np.array(trie_ends(piece.parents), dtype=np.int64),
                )
            ),
        )

    def seen(self, piece: Piece) -> Tensor:
        """bool [new rows, all rows]: earlier positions and, for a node, its ancestors, which are
        found by walking up the tree."""
        context, total = piece.start + piece.chain, piece.start + piece.chain + len(piece.parents)
        mask = torch.zeros(total - piece.start, total, dtype=torch.bool)
        positions = np.concatenate((np.arange(piece.start), self.columns(piece)[0]))
        for row in range(total - piece.start):
            mask[row, : min(piece.start + row + 1, context)] = True
            node = row - piece.chain
            while node >= 0:
                mask[row, context + node] = True
                node = piece.parents[node]
            if self.window is not None:
                oldest = positions[piece.start + row] - self.window
                mask[row] &= torch.from_numpy(positions > oldest)
        return mask

    def plain(self, piece: Piece) -> Tensor:
        """One softmax a row over what it sees, in float64."""
        q, k, v = (x.double().transpose(0, 1) for x in self.tensors(piece))
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 0) for x in (k, v))
        scores = q[:, piece.start :] @ k.transpose(1, 2) * self.head_dim**-0.5
        scores = scores.masked_fill(~self.seen(piece), -torch.inf)
        mixed: Tensor = scores.softmax(-1) @ v
        return mixed.transpose(0, 1)


BUSHY = (-1, 0, 1, 0, -1, 4, 5, 6, 4, -1)
PIECES = [
    Piece(1, 0, 1),
    Piece(2, 0, 63),
    Piece(3, 100, 1),
    Piece(4, 257, 1),
    Piece(5, 511, 1),
    Piece(6, 512, 1),
    Piece(7, 37, 100),
    Piece(8, 500, 30),
    Piece(9, 1100, 1),
    Piece(10, 1000, 140),
    Piece(11, 380, 87, BUSHY),
    Piece(12, 511, 1, BUSHY),
    Piece(13, 40, 1, (-1, -1, -1)),
    Piece(14, 0, 5, (-1,)),
]
SHAPES = [(9, 3, 64), (4, 4, 16), (8, 1, 32), (6, 2, 80)]


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), SHAPES)
@pytest.mark.parametrize("window", [None, 70])
def test_equals_a_masked_softmax(
    heads: int, kv_heads: int, head_dim: int, window: int | None
) -> None:
    scene = Scene(heads, kv_heads, head_dim, window)
    for piece, found in zip(PIECES, scene.run(PIECES), strict=True):
        torch.testing.assert_close(found.double(), scene.plain(piece), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), SHAPES)
def test_bits_do_not_depend_on_neighbours(heads: int, kv_heads: int, head_dim: int) -> None:
    scene = Scene(heads, kv_heads, head_dim)
    together = scene.run(PIECES[::-1])[::-1]
    for piece, found in zip(PIECES, together, strict=True):
        assert torch.equal(scene.run([piece])[0], found), piece


@pytest.mark.parametrize("borders", [(1, 600), (64, 300), (211, 500, 530), (599,), (511, 512, 513)])
def test_bits_do_not_depend_on_chunks(borders: tuple[int, ...]) -> None:
    scene = Scene(9, 3, 64)
    whole = scene.run([Piece(1, 0, 601)])[0]
    edges = (0, *borders, 601)
    for start, stop in pairwise(edges):
        found = scene.run([Piece(3, 99, 1), Piece(1, start, stop - start)])[1]
        assert torch.equal(found, whole[start:stop])


def test_a_trie_longer_than_a_tile() -> None:
    parents = tuple(-1 if i % 50 == 0 else i - 1 if i % 3 else i - i % 50 for i in range(TILE + 90))
    scene = Scene(4, 2, 16)
    piece = Piece(1, 20, 3, parents)
    found = scene.run([piece])[0]
    torch.testing.assert_close(found.double(), scene.plain(piece), atol=2e-5, rtol=1e-5)
    assert torch.equal(scene.run([*PIECES[:3], piece])[3], found)


def test_waves_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(9, 3, 64)
    once = scene.run(PIECES)
    monkeypatch.setattr(plan_module, "WAVE_POSITIONS", 600)
    for a, b in zip(once, scene.run(PIECES), strict=True):
        assert torch.equal(a, b)


def test_int8_pool_is_near_and_stable() -> None:
    scene = Scene(9, 3, 64)
    together = scene.run(PIECES, torch.int8)
    for piece, found in zip(PIECES, together, strict=True):
        assert (found - scene.plain(piece)).abs().max() < 0.05
        assert torch.equal(scene.run([piece], torch.int8)[0], found)


def test_safe_lengths_end_with_the_tile() -> None:
    lengths = safe_key_lengths(64)
    assert lengths[-1] == TILE
    assert list(lengths) == sorted(set(lengths))


def test_wrong_shapes_are_named() -> None:
    scene = Scene(4, 2, 16)
    layer = scene.pool(4, torch.float32)
    pair, two = np.array([0, 1]), np.array([2])
    batch = FlatRows(np.array([0, 2]), two, two, ((1,),), pair, pair, np.full(2, FOREVER))
    plan = plan_attention(batch, kv_heads=2, block_size=BLOCK, key_lengths=(TILE,))
    q, k = torch.randn(2, 4, 16), torch.randn(2, 2, 16)
    with pytest.raises(ValueError, match="the plan needs 4"):
        paged_attention(q, k, k, layer, plan, 1.0)
    with pytest.raises(ValueError, match="2 heads"):
        paged_attention(torch.randn(4, 3, 16), k, k, layer, plan, 1.0)
