"""Everything about a step's attention that no layer changes: built once in numpy, used by all.

Sequences are handled in waves whose keys fit a buffer of bounded size. A wave gathers its key tiles
from the pool by one index list; then it has two kinds of calls. A *group* holds single rows
(decode) of many sequences with tiles of one length, query heads of a group folded into rows. A
*strip* is up to STRIP rows of one sequence over its tiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .layout import TILE, FlatRows, Ints

STRIP = 128  # query rows handled together; shorter strips skip more future keys
WAVE_POSITIONS = 16_384  # key positions gathered at once
ROWS = 4  # query rows come in multiples of this


@dataclass(frozen=True, slots=True)
class Tile:
    """Keys [kv_heads, length] at `offset` lines of the wave's buffer, all heads together.

    `mask` [rows, length] or None where every row sees every key; `dead` bool [rows] marks rows that
    see none of the tile, None where there is no such row.
    """

    offset: int
    length: int
    mask: Tensor | None = None
    dead: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows start … start+count−1 of one sequence, read as `padded` rows, over tiles in order."""

    start: int
    count: int
    padded: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Tiles of one length, one a single row; `rows` int64 [n] are their query rows."""

    offset: int
    length: int
    rows: Tensor
    mask: Tensor  # [n, 1, 1, length]


@dataclass(frozen=True, slots=True)
class Merge:
    """One round over single rows: of the rows that have this many tiles, which tile comes next.

    `entries` int64 index the tiles of all groups in order; `places` the single rows."""

    entries: Tensor
    places: Tensor


@dataclass(frozen=True, slots=True)
class Wave:
    """`sources` int64: lines of the pool [blocks · kv_heads, …] to gather; `blank` int64: lines of
    the buffer [lines, head_dim] to zero, so that nothing leaks from unused slots; `scratch_from`,
    `scratch_to` int64: lines of this step's own keys, and their places in the buffer."""

    num_lines: int
    sources: Tensor
    blank: Tensor
    scratch_from: Tensor | None
    scratch_to: Tensor | None
    groups: tuple[Group, ...]
    merges: tuple[Merge, ...]
    single_rows: Tensor
    strips: tuple[Strip, ...]


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """`num_rows` rows must exist in q, padding of the last strips included."""

    num_rows: int
    waves: tuple[Wave, ...]


def plan_attention(
    batch: FlatRows,
    *,
    kv_heads: int,
    block_size: int,
    key_lengths: Sequence[int],
    window: int | None = None,
) -> AttentionPlan:
    """The plan of one step. `key_lengths` are the tile lengths that may be used, TILE last."""
    waves, num_rows = [], int(batch.row_start[-1])
    for members in _split(batch):
        builder = _WaveBuilder(batch, kv_heads, block_size, key_lengths, window)
        waves.append(builder.build(members))
        num_rows = max([num_rows, *(s.start + s.padded for s in waves[-1].strips)])
    return AttentionPlan(num_rows, tuple(waves))


def _split(batch: FlatRows) -> list[list[int]]:
    """Sequences in waves of at most WAVE_POSITIONS context positions (one at least)."""
    waves: list[list[int]] = []
    room = 0
    for s, length in enumerate(batch.context_len.tolist()):
        if not waves or length > room:
            waves.append([])
            room = WAVE_POSITIONS
        waves[-1].append(s)
        room -= length
    return waves


class _WaveBuilder:
    """Lays tiles into the buffer one after the other and remembers who reads them."""

    def __init__(
        self,
        batch: FlatRows,
        kv_heads: int,
        block_size: int,
        key_lengths: Sequence[int],
        window: int | None,
    ) -> None:
        self.batch = batch
        self.kv_heads = kv_heads
        self.block_size = block_size
        self.key_lengths = [n for n in key_lengths if n % block_size == 0]
        self.window = window if window is not None else 1 << 62
        self.num_lines = 0
        self.sources: list[Ints] = []
        self.blank: list[Ints] = []
        self.scratch_from: list[Ints] = []
        self.scratch_to: list[Ints] = []

    def build(self, members: list[int]) -> Wave:
        batch = self.batch
        counts = np.diff(batch.row_start)
        singles = [s for s in members if counts[s] == 1 and batch.num_stored[s] == 1]
        groups, merges = self._groups(singles)
        strips = [strip for s in members if s not in set(singles) for strip in self._strips(s)]
        scratch = bool(self.scratch_from)
        return Wave(
            num_lines=self.num_lines,
            sources=_tensor(self.sources),
            blank=_tensor(self.blank),
            scratch_from=_tensor(self.scratch_from) if scratch else None,
            scratch_to=_tensor(self.scratch_to) if scratch else None,
            groups=groups,
            merges=merges,
            single_rows=torch.tensor([int(batch.row_start[s]) for s in singles]),
            strips=tuple(strips),
        )

    # Tiles

    def _fit(self, count: int) -> int:
        return next(n for n in self.key_lengths if n >= count)

    def _context_tile(self, s: int, first: int, end: int) -> tuple[int, int]:
        """Gather positions first … end−1 of sequence s. Returns the tile's offset and length."""
        length = self._fit(end - first)
        table = self.batch.block_tables[s]
        low = first // self.block_size
        blocks = np.zeros(length // self.block_size, dtype=np.int64)
        held = table[low : low + len(blocks)]
        blocks[: len(held)] = held
        heads = np.arange(self.kv_heads)[:, None]
        self.sources.append((blocks * self.kv_heads + heads).reshape(-1))
        return self._place(end - first, length), length

    def _scratch_tile(self, start: int, count: int) -> tuple[int, int]:
        """Take the keys of rows start … start+count−1 of this step."""
        length = self._fit(count)
        heads = np.arange(self.kv_heads)[:, None]
        empty = np.zeros(self.kv_heads * length // self.block_size, dtype=np.int64)
        self.sources.append(empty)  # any block; overwritten or blanked
        rows = np.arange(start, start + count)
        self.scratch_from.append((rows * self.kv_heads + heads).reshape(-1))
        lines = self.num_lines + heads * length + np.arange(count)
        self.scratch_to.append(lines.reshape(-1))
        return self._place(count, length), length

    def _place(self, used: int, length: int) -> int:
        offset = self.num_lines
        if used < length:
            heads = np.arange(self.kv_heads)[:, None]
            self.blank.append((offset + heads * length + np.arange(used, length)).reshape(-1))
        self.num_lines += self.kv_heads * length
        return offset

    # Single rows

    def _groups(self, singles: list[int]) -> tuple[tuple[Group, ...], tuple[Merge, ...]]:
        parts: dict[int, list[tuple[int, int, int, int]]] = {}  # length → (place, tile, seq, end)
        for place, s in enumerate(singles):
            context = int(self.batch.context_len[s])
            oldest = max(0, context - self.window)
            for tile in range(oldest // TILE, (context - 1) // TILE + 1):
                end = min(context, (tile + 1) * TILE)
                part = (place, tile, s, end)
                parts.setdefault(self._fit(end - tile * TILE), []).append(part)
        groups = []
        entries: list[tuple[int, int, int]] = []  # (place, tile, entry)
        for length in sorted(parts):
            groups.append(self._group(length, parts[length]))
            for place, tile, _, _ in parts[length]:
                entries.append((place, tile, len(entries)))
        return tuple(groups), _merges(entries)

    def _group(self, length: int, parts: list[tuple[int, int, int, int]]) -> Group:
        offset = self.num_lines
        visible = np.zeros((len(parts), length), dtype=bool)
        for i, (_, tile, s, end) in enumerate(parts):
            first = tile * TILE
            self._context_tile(s, first, end)
            oldest = max(0, int(self.batch.context_len[s]) - self.window - first)
            visible[i, oldest : end - first] = True
        rows = [int(self.batch.row_start[s]) for _, _, s, _ in parts]
        mask = _added(visible)[:, None, None, :]
        return Group(offset, length, torch.tensor(rows), mask)

    # Strips

    def _strips(self, s: int) -> list[Strip]:
        start, stop = int(self.batch.row_start[s]), int(self.batch.row_start[s + 1])
        fork = start + int(self.batch.num_stored[s])
        strips = []
        low = start
        while low < fork:  # strips end where a tile does: no stored row meets a tile it can't see
            position = int(self.batch.positions[low])
            high = min(fork, low + STRIP, low + TILE - position % TILE)
            tiles = self._context_tiles(s, low, high)
            strips.append(Strip(low, high - low, _up(high - low), tuple(tiles)))
            low = high
        for low in range(fork, stop, STRIP):
            high = min(stop, low + STRIP)
            tiles = self._context_tiles(s, low, high)
            tiles += self._trie_tiles(fork, low, high)
            strips.append(Strip(low, high - low, _up(high - low), tuple(tiles)))
        return strips

    def _context_tiles(self, s: int, low: int, high: int) -> list[Tile]:
        positions, tin = self.batch.positions[low:high, None], self.batch.tin[low:high, None]
        end = min(int(self.batch.context_len[s]), int(tin.max()) + 1)
        oldest = max(0, int(positions.min()) - self.window + 1)
        tiles = []
        for first in range(oldest // TILE * TILE, end, TILE):
            stop = min(end, first + TILE)
            offset, length = self._context_tile(s, first, stop)
            keys = first + np.arange(length)[None, :]
            visible = (keys <= tin) & (keys < stop) & (keys > positions - self.window)
            tiles.append(_tile(offset, length, visible))
        return tiles

    def _trie_tiles(self, fork: int, low: int, high: int) -> list[Tile]:
        batch, tiles = self.batch, []
        tin = batch.tin[low:high, None]
        positions = batch.positions[low:high, None]
        for first in range(fork, high, TILE):
            stop = min(high, first + TILE)
            offset, length = self._scratch_tile(first, stop - first)
            visible = np.zeros((high - low, length), dtype=bool)
            keys = slice(first, stop)
            visible[:, : stop - first] = (
                (batch.tin[None, keys] <= tin)
                & (tin < batch.tout[None, keys])
                & (batch.positions[None, keys] > positions - self.window)
            )
            tiles.append(_tile(offset, length, visible))
        return tiles


def _merges(entries: list[tuple[int, int, int]]) -> tuple[Merge, ...]:
    """Round r takes tile r of every single row that has one, in ascending order of tiles."""
    by_place: dict[int, list[int]] = {}
    for place, _, entry in sorted(entries):
        by_place.setdefault(place, []).append(entry)
    rounds = max(map(len, by_place.values()), default=0)
    merges = []
    for r in range(rounds):
        pairs = [(found[r], place) for place, found in by_place.items() if len(found) > r]
        merges.append(Merge(*(torch.tensor(column) for column in zip(*pairs, strict=True))))
    return tuple(merges)


def _tile(offset: int, length: int, visible: NDArray[np.bool_]) -> Tile:
    rows = len(visible)
    visible = np.concatenate((visible, np.repeat(visible[-1:], _up(rows) - rows, axis=0)))
    if visible.all():
        return Tile(offset, length)
    dead = ~visible.any(axis=1)
    return Tile(offset, length, _added(visible), torch.from_numpy(dead) if dead.any() else None)


def _added(visible: NDArray[np.bool_]) -> Tensor:
    """0 where a key is seen, −inf elsewhere."""
    return torch.from_numpy(np.where(visible, np.float32(0), np.float32(-np.inf)))


def _up(rows: int) -> int:
    return -(-rows // ROWS) * ROWS


def _tensor(parts: list[Ints]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)) if parts else torch.empty(0, dtype=torch.int64)
