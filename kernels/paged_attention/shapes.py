"""Which key counts of a product give the same bits as the whole tile: found by trying.

Tried for few and for many query rows, as the library takes rows in blocks of 32 and more.

Keys beyond a row's own weigh nothing, so a shorter tile should give the same sum. But the library
splits long sums where it likes (MKL on one AVX2 machine halves 208 … 368 keys and cuts 512 at 192),
so on every machine the lengths are tried once, and only those that agree are used.
"""

from functools import lru_cache

import torch

from .layout import TILE

CANDIDATES = tuple(range(64, TILE, 64))
BITE = 23  # distance between the numbers of visible keys tried
ROWS, HEADS = (8, 4, 36, 128), 2


@lru_cache(maxsize=16)
def safe_key_lengths(head_dim: int) -> tuple[int, ...]:
    """Ascending key counts, TILE last, among which a row's bits do not change (float32, CPU)."""
    return (*(n for n in CANDIDATES if _agrees(n, head_dim)), TILE)


def _agrees(length: int, head_dim: int) -> bool:
    generator = torch.Generator().manual_seed(length)
    q = torch.randn(1, HEADS, 1, head_dim, generator=generator)
    k = torch.randn(1, HEADS, TILE, head_dim, generator=generator)
    v = torch.randn(1, HEADS, TILE, head_dim, generator=generator)
    visible = sorted({length, max(1, length - 1), *range(length - 63, length, BITE)}, reverse=True)
    return all(_agrees_on(length, q, k, v, count) for count in visible)


def _agrees_on(
    length: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, visible: int
) -> bool:
    """One query row, repeated, over the first `visible` keys: all must give the whole tile's bits.
    Zeroes the other keys of k and v."""
    k[:, :, visible:] = 0
    v[:, :, visible:] = 0
    mask = torch.zeros(1, 1, 1, TILE)
    mask[..., visible:] = -torch.inf
    whole = flash(q.expand(-1, -1, ROWS[0], -1).contiguous(), k, v, mask, 0.125)
    mean, total = whole[0][:, :, :1], whole[1][:, :, :1]
    for rows in ROWS:
        repeated = q.expand(-1, -1, rows, -1).contiguous()
        short = flash(repeated, k[:, :, :length], v[:, :, :length], mask[..., :length], 0.125)
        if not torch.equal(short[0], mean.expand_as(short[0])):
            return False
        if not torch.equal(short[1], total.expand_as(short[1])):
            return False
    return True


def flash(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """One tile: q [b, h, rows, d], k and v [b, h, keys, d], added mask → mean [b, h, rows, d] and
    log-sum-exp [b, h, rows]. A wholly masked row gives zeros twice. Rows must be a multiple of 4:
    below 4 in a block of rows the library takes another product."""
    out: tuple[torch.Tensor, torch.Tensor]
    out = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, False, attn_mask=mask, scale=scale
    )
    return out
