"""The plain twin: tiles gathered from the pool, one fused product and softmax a tile, then merges.

Tiles come back as (mean, log-sum-exp), which is (m, l, o) with l folded in; merging is
l = log(e^l1 + e^l2), o = (o1·e^l1 + o2·e^l2) / e^l, exact where one side has seen nothing.
"""

import torch
from torch import Tensor

from kernels.store_kv import KVLayer

from .plan import AttentionPlan, Group, Strip, Wave
from .shapes import flash


def attend(
    q: Tensor, keys: Tensor, values: Tensor, pool: KVLayer, plan: AttentionPlan, scale: float
) -> Tensor:
    rows, heads, head_dim = q.shape
    kv_heads = pool.keys.shape[1]
    grouped = q.view(rows, kv_heads, heads // kv_heads, head_dim)
    out = torch.empty(rows, kv_heads, heads // kv_heads, head_dim, dtype=q.dtype)
    for wave in plan.waves:
        k = _gather(wave, keys, pool.keys, pool.key_scales)
        v = _gather(wave, values, pool.values, pool.value_scales)
        if wave.groups:
            out.index_copy_(0, wave.single_rows, _singles(grouped, k, v, wave, scale))
        for strip in wave.strips:
            _strip(grouped, k, v, strip, scale, out)
    return out.view(rows, heads, head_dim)


def _gather(wave: Wave, new: Tensor, pool: Tensor, scales: Tensor | None) -> Tensor:
    """Lines [num_lines, head_dim] of all the wave's tiles."""
    block_size, head_dim = pool.shape[2:]
    lines = pool.view(-1, block_size * head_dim).index_select(0, wave.sources)
    lines = lines.view(-1, head_dim)
    if scales is not None:
        scale = scales.view(-1, block_size).index_select(0, wave.sources)
        lines = lines.to(scale.dtype).mul_(scale.view(-1, 1))
    if wave.scratch_from is not None and wave.scratch_to is not None:
        scratch = new.reshape(-1, head_dim).index_select(0, wave.scratch_from)
        lines.index_copy_(0, wave.scratch_to, scratch)
    return lines.index_fill_(0, wave.blank, 0)


def _singles(q: Tensor, k: Tensor, v: Tensor, wave: Wave, scale: float) -> Tensor:
    """[single rows, kv_heads, group, head_dim]."""
    parts = [_group(q, k, v, group, scale) for group in wave.groups]
    means = torch.cat([mean for mean, _ in parts]) if len(parts) > 1 else parts[0][0]
    sums = torch.cat([lse for _, lse in parts]) if len(parts) > 1 else parts[0][1]
    first, *more = wave.merges
    mean, lse = (
        torch.empty_like(means[: len(first.places)]),
        torch.empty_like(sums[: len(first.places)]),
    )
    mean.index_copy_(0, first.places, means.index_select(0, first.entries))
    lse.index_copy_(0, first.places, sums.index_select(0, first.entries))
    for merge in more:
        held = mean.index_select(0, merge.places), lse.index_select(0, merge.places)
        following = means.index_select(0, merge.entries), sums.index_select(0, merge.entries)
        merged, total = _merge(*held, *following)
        mean.index_copy_(0, merge.places, merged)
        lse.index_copy_(0, merge.places, total)
    return mean


def _group(q: Tensor, k: Tensor, v: Tensor, group: Group, scale: float) -> tuple[Tensor, Tensor]:
    """Means [n, kv_heads, group, head_dim] and log-sum-exps [n, kv_heads, group]."""
    _, kv_heads, size, head_dim = q.shape
    count = len(group.rows)
    folded = q.new_zeros(count, kv_heads, -(-size // 4) * 4, head_dim)
    folded[:, :, :size] = q.index_select(0, group.rows)
    end = group.offset + count * kv_heads * group.length
    shape = (count, kv_heads, group.length, head_dim)
    tile_k, tile_v = k[group.offset : end].view(shape), v[group.offset : end].view(shape)
    mean, lse = flash(folded, tile_k, tile_v, group.mask, scale)
    return mean[:, :, :size], lse[:, :, :size]


def _strip(q: Tensor, k: Tensor, v: Tensor, strip: Strip, scale: float, out: Tensor) -> None:
    _, kv_heads, size, head_dim = q.shape
    rows = q[strip.start : strip.start + strip.padded].permute(1, 2, 0, 3)
    mean = lse = None
    for tile in strip.tiles:
        lines = slice(tile.offset, tile.offset + kv_heads * tile.length)
        shape = (kv_heads, size, tile.length, head_dim)
        tile_k = k[lines].view(kv_heads, 1, tile.length, head_dim).expand(shape)
        tile_v = v[lines].view(kv_heads, 1, tile.length, head_dim).expand(shape)
        o, total = flash(rows, tile_k, tile_v, tile.mask, scale)
        if tile.dead is not None:  # the library says log-sum-exp 0 there
            total = total.masked_fill(tile.dead, -torch.inf)
        if mean is None or lse is None:
            mean, lse = o, total
        else:
            mean, lse = _merge(mean, lse, o, total)
    if mean is None:
        raise ValueError("a strip without keys")
    out[strip.start : strip.start + strip.count] = mean[:, :, : strip.count].permute(2, 0, 1, 3)


def _merge(o1: Tensor, l1: Tensor, o2: Tensor, l2: Tensor) -> tuple[Tensor, Tensor]:
    top = torch.maximum(l1, l2)
    a, b = torch.exp(l1 - top), torch.exp(l2 - top)
    total = a + b
    o = (o1 * a.unsqueeze(-1) + o2 * b.unsqueeze(-1)) / total.unsqueeze(-1)
    return o, top + torch.log(total)
