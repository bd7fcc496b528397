"""Every architecture gives a row the same bits alone, in chunks, among neighbours and in a trie."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.trie import ChoiceTrie
from tests.engine.runner_kit import (
    GEMMA3,
    QWEN2,
    QWEN3,
    WINDOW,
    last_logits,
    logits_of,
    make_runner,
    part,
    tokens_of,
    write_checkpoint,
)

LENGTH, CUT = 600, 541  # across a tile's border, and far past the windows


@pytest.mark.parametrize(
    "changes", [{**QWEN2, **WINDOW}, {**QWEN3, **WINDOW}, GEMMA3], ids=["qwen2", "qwen3", "gemma3"]
)
def test_bits_do_not_depend_on_company(tmp_path: Path, changes: dict[str, Any]) -> None:
    runner = make_runner(write_checkpoint(tmp_path, **changes))
    assert runner.deterministic
    tokens = tokens_of(1, LENGTH)
    alone = last_logits(runner, tokens)
    others = [tokens_of(i, 10 + 7 * i) for i in range(2, 6)]
    neighbours = [part(other, 0, len(other), i) for i, other in enumerate(others, 2)]
    logits_of(runner, [*neighbours, part(tokens, 0, CUT, 1)])
    chunked = logits_of(runner, [part(tokens, CUT, LENGTH, 1), *neighbours])[0][0]
    decoded = logits_of(runner, [*neighbours, part(tokens, LENGTH - 1, LENGTH, 1)])[-1][0]
    assert torch.equal(alone, chunked)
    assert torch.equal(alone, decoded)


@pytest.mark.parametrize("changes", [QWEN3, GEMMA3], ids=["qwen3", "gemma3"])
def test_a_trie_scores_as_whole_sequences(tmp_path: Path, changes: dict[str, Any]) -> None:
    runner = make_runner(write_checkpoint(tmp_path, **changes))
    tokens, choices = tokens_of(1, 300), [(3, 4, 5), (3, 4, 9), (7,)]
    trie = ChoiceTrie.build(choices)
    rows = logits_of(runner, [part(tokens, 0, 300, 0, trie=trie)])[0]
    for row, prefix in zip(rows, [(), (3,), (3, 4)], strict=True):
        whole = last_logits(runner, (*tokens, *prefix), 1)
        assert (row - whole).abs().max() < 1e-4
