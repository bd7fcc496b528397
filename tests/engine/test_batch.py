"""A plan laid out by hand."""

import numpy as np

from engine.batch import build_batch
from engine.trie import ChoiceTrie
from engine.types import SampleSpec, SamplingParams, SequenceStep, StepPlan
from kernels.paged_attention.layout import FOREVER


def test_chunk_decode_and_trie_in_one_batch() -> None:
    trie = ChoiceTrie.build([(7, 8, 9), (7, 8, 5), (3,), (4, 4)])
    plan = StepPlan(
        0,
        (
            SequenceStep("chunk", (1, 2, 3), 2, (5, 6)),
            SequenceStep("decode", (9,), 4, (1, 2), sample=SampleSpec(SamplingParams(), 5)),
            SequenceStep("score", (6, 6), 3, (3, 0), trie=trie),
        ),
    )
    batch = build_batch(plan, 4)
    assert trie.tokens == (4, 7, 8)
    assert batch.input_ids.tolist() == [1, 2, 3, 9, 6, 6, 4, 7, 8]
    assert batch.rows.positions.tolist() == [2, 3, 4, 4, 3, 4, 5, 5, 6]
    assert batch.slots.tolist() == [22, 23, 24, 8, 15, 0, -1, -1, -1]
    assert batch.rows.row_start.tolist() == [0, 3, 4, 9]
    assert batch.rows.num_stored.tolist() == [3, 1, 2]
    assert batch.rows.context_len.tolist() == [5, 5, 5]
    assert batch.rows.tin.tolist() == [2, 3, 4, 4, 3, 4, 5, 6, 7]
    endless = [FOREVER] * 6
    assert batch.rows.tout.tolist() == [*endless, 6, 8, 8]
    assert batch.wanted.tolist() == [3, 5, 6, 7, 8]
    assert batch.wanted_start.tolist() == [0, 0, 1, 5]


def test_a_trie_without_rows_wants_its_root_only() -> None:
    trie = ChoiceTrie.build([(3,), (4,)])
    step = SequenceStep("score", (6, 6), 0, (3,), trie=trie)
    batch = build_batch(StepPlan(0, (step,)), 4)
    assert batch.num_rows == 2
    assert batch.wanted.tolist() == [1]


def test_the_mask_rule_is_the_tree() -> None:
    """q sees k exactly where k is q or one of its ancestors."""
    choices = [(1, 2, 3, 4), (1, 2, 5, 6), (1, 7, 8), (2, 1), (2, 1, 1), (9,)]
    trie = ChoiceTrie.build(choices)
    rows = build_batch(StepPlan(0, (SequenceStep("s", (5,), 0, (0,), trie=trie),)), 4).rows
    tin, tout = rows.tin[1:], rows.tout[1:]
    sees = (tin[None] <= tin[:, None]) & (tin[:, None] < tout[None])
    for q in range(len(trie.tokens)):
        ancestors, node = set(), q
        while node >= 0:
            ancestors.add(node)
            node = trie.parents[node]
        assert set(np.flatnonzero(sees[q]).tolist()) == ancestors
