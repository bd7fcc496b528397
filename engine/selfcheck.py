"""Does a row keep its bits on this machine? A few small passes through the first two layers.

One sequence runs alone in one chunk; then in two chunks, the second among hundreds of rows; then
its last token as a decode row, with a neighbour and alone. All must give the same bits. It borrows
the pool's first blocks and leaves what it wrote there, so it runs before anything else.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from engine.batch import build_batch
from engine.types import SampleSpec, SamplingParams, SequenceStep, StepPlan, num_blocks_for

if TYPE_CHECKING:
    from engine.runner import ModelRunner

LENGTH, CUT, LAYERS = 45, 17, 2
CROWD = 12  # neighbours that write over each other: only their number of rows counts


def is_bit_stable(runner: "ModelRunner") -> bool:
    """True also where the pool is too small to try."""
    length = min(LENGTH, runner.max_model_len)
    blocks = num_blocks_for(length, runner.block_size)
    if runner.num_blocks < 3 * blocks or length <= CUT + 1:
        return True
    rng = np.random.default_rng(0)
    tokens, other, third = (
        tuple(rng.integers(0, runner.vocab_size, length).tolist()) for _ in range(3)
    )
    tables = [tuple(range(i * blocks, (i + 1) * blocks)) for i in range(3)]
    mine, theirs, last = tables
    alone = _last_row(runner, [_part(tokens, 0, length, mine)])
    _last_row(runner, [_part(other, 0, CUT, theirs), _part(tokens, 0, CUT, last)])
    crowd = [_part(third, 0, length, mine)] * CROWD
    rest = [_part(other, CUT, length, theirs), _part(tokens, CUT, length, last)]
    chunked = _last_row(runner, [*crowd, *rest])
    row = _part(tokens, length - 1, length, last)
    decoded = _last_row(runner, [_part(other, length - 1, length, theirs), row])
    single = _last_row(runner, [row])
    return all(torch.equal(alone, other) for other in (chunked, decoded, single))


def _part(tokens: tuple[int, ...], start: int, stop: int, table: tuple[int, ...]) -> SequenceStep:
    spec = SampleSpec(SamplingParams(), stop)
    return SequenceStep("check", tokens[start:stop], start, table, sample=spec)


def _last_row(runner: "ModelRunner", sequences: list[SequenceStep]) -> Tensor:
    batch = build_batch(StepPlan(0, tuple(sequences)), runner.block_size)
    with torch.inference_mode():
        return runner.model.forward(runner.tensors(batch), runner.cache, LAYERS)[-1]
