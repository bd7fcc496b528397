"""A step plan as one flat batch of rows, in numpy: no tensor, no weight, no request policy.

Rows of a sequence are its tokens (a chain), then its trie's nodes. `tin` of a chain row is its
absolute position and `tout` endless; a trie's row r has tin = context + r, tout = context + end(r),
where context counts the stored positions. So one rule, tin[k] ≤ tin[q] < tout[k], holds for all.
"""

from dataclasses import dataclass

import numpy as np

from engine.types import SequenceStep, StepPlan
from kernels.paged_attention import FlatRows
from kernels.paged_attention.layout import FOREVER, Ints


@dataclass(frozen=True, slots=True)
class Batch:
    """`input_ids`, `slots` [rows] (slot −1: not stored); `wanted` [n]: rows that meet the head, in
    the plan's order; sequence s has `wanted` from `wanted_start[s]` to `wanted_start[s+1]`: none,
    its last chain row, or that and its trie's rows."""

    rows: FlatRows
    input_ids: Ints
    slots: Ints
    wanted: Ints
    wanted_start: Ints

    @property
    def num_rows(self) -> int:
        return len(self.input_ids)


def build_batch(plan: StepPlan, block_size: int) -> Batch:
    """The rows of all sequences, in the plan's order."""
    parts = [_rows(step, block_size) for step in plan.sequences]
    row_start = _starts([len(p.input_ids) for p in parts])
    wanted = [p.wanted + start for p, start in zip(parts, row_start[:-1], strict=True)]
    return Batch(
        rows=FlatRows(
            row_start=row_start,
            num_stored=_ints([len(step.tokens) for step in plan.sequences]),
            context_len=_ints([step.start + len(step.tokens) for step in plan.sequences]),
            block_tables=tuple(step.block_table for step in plan.sequences),
            positions=np.concatenate([p.positions for p in parts]),
            tin=np.concatenate([p.tin for p in parts]),
            tout=np.concatenate([p.tout for p in parts]),
        ),
        input_ids=np.concatenate([p.input_ids for p in parts]),
        slots=np.concatenate([p.slots for p in parts]),
        wanted=np.concatenate(wanted),
        wanted_start=_starts([len(p.wanted) for p in parts]),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    input_ids: Ints
    positions: Ints
    slots: Ints
    tin: Ints
    tout: Ints
    wanted: Ints


def _rows(step: SequenceStep, block_size: int) -> _Rows:
    count = len(step.tokens)
    context = step.start + count
    chain = np.arange(step.start, context)
    table = _ints(step.block_table)
    slots = table[chain // block_size] * block_size + chain % block_size
    if step.trie is None:
        wanted = [count - 1] if step.sample is not None else []
        endless = np.full(count, FOREVER)
        return _Rows(_ints(step.tokens), chain, slots, chain, endless, _ints(wanted))
    trie = step.trie
    nodes = len(trie.tokens)
    return _Rows(
        input_ids=_ints((*step.tokens, *trie.tokens)),
        positions=np.concatenate((chain, context - 1 + _ints(trie.depths))),
        slots=np.concatenate((slots, np.full(nodes, -1))),
        tin=np.concatenate((chain, context + np.arange(nodes))),
        tout=np.concatenate((np.full(count, FOREVER), context + _ints(trie.ends))),
        wanted=np.arange(count - 1, count + nodes),
    )


def _ints(values: tuple[int, ...] | list[int]) -> Ints:
    return np.asarray(values, dtype=np.int64)


def _starts(counts: list[int]) -> Ints:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(_ints(counts))))
