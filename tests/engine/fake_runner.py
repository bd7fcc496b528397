"""A model without weights for tests of the planning half, and the plain answers to compare with.

Its KV pool holds the token that was fed to each slot, poison elsewhere. The logits of a row are a
hash of the tokens that the row really sees through the block table, read before anything of the
step is written: a wrong block, a block found too early, a missing copy, an overwritten or a stale
slot all show as poison or as another answer.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.choices import ChoiceSet
from engine.rng import gumbel
from engine.types import (
    Request,
    SampleSpec,
    SequenceOutput,
    SequenceStep,
    StepOutput,
    StepPlan,
    TokenIds,
)

POISON = -1
EOS = 0


class PoisonError(AssertionError):
    """A row would have seen a slot that holds nothing of its sequence."""


def log_softmax(context: Sequence[int], vocab_size: int) -> NDArray[np.float64]:
    """The fake model: log-probabilities of the next token, float64 [vocab_size]."""
    logits = gumbel(hash(tuple(context)), len(context), vocab_size) * 2.0
    top = float(logits.max())
    normalised: NDArray[np.float64] = logits - (top + math.log(float(np.exp(logits - top).sum())))
    return normalised


def draw(logprobs: NDArray[np.float64], spec: SampleSpec) -> int:
    """Greedy or Gumbel draw among the allowed tokens."""
    scores = logprobs
    if spec.params.temperature > 0:
        noise = gumbel(spec.params.seed, spec.position, len(logprobs))
        scores = logprobs / spec.params.temperature + noise
    if spec.allowed is None:
        return int(np.argmax(scores))
    return max(spec.allowed, key=lambda token: float(scores[token]))


class FakeRunner:
    """Implements `Runner`. `script` may name the next token of a context, in free decoding."""

    def __init__(
        self,
        *,
        num_blocks: int = 64,
        block_size: int = 4,
        max_model_len: int = 128,
        vocab_size: int = 32,
        script: Callable[[TokenIds], int | None] | None = None,
    ) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.max_model_len = max_model_len
        self.vocab_size = vocab_size
        self.script = script
        self.slots = [POISON] * (num_blocks * block_size)
        self.plans: list[StepPlan] = []
        self.corrupt: set[str] = set()
        self.fails = False
        self.is_closed = False
        self.before_step: Callable[[StepPlan], None] = lambda plan: None

    def step(self, plan: StepPlan) -> StepOutput:
        self.plans.append(plan)
        self.before_step(plan)
        if self.fails:
            raise RuntimeError("the device is gone")
        size = self.block_size
        for copy in plan.copies:
            for i in range(copy.num_slots):
                self.slots[copy.target * size + i] = self.slots[copy.source * size + i]
        contexts = [self._context(step) for step in plan.sequences]
        for step in plan.sequences:
            for i, token in enumerate(step.tokens):
                self.slots[self._slot(step, step.start + i)] = token
        outputs = tuple(map(self._output, plan.sequences, contexts))
        return StepOutput(outputs, 0.0)

    def close(self) -> None:
        self.is_closed = True

    def _slot(self, step: SequenceStep, position: int) -> int:
        block = step.block_table[position // self.block_size]
        return block * self.block_size + position % self.block_size

    def _context(self, step: SequenceStep) -> TokenIds:
        """What the last row sees."""
        seen = [self.slots[self._slot(step, i)] for i in range(step.start)]
        if POISON in seen:
            raise PoisonError(f"{step.request_id} sees an empty slot at {seen.index(POISON)}")
        return (*seen, *step.tokens)

    def _output(self, step: SequenceStep, context: TokenIds) -> SequenceOutput:
        if step.request_id in self.corrupt and (step.sample or step.trie):
            return SequenceOutput(corrupted=True)
        if step.trie is not None:
            contexts = [context]
            for token, parent in zip(step.trie.tokens, step.trie.parents, strict=True):
                contexts.append((*contexts[parent + 1], token))
            rows = [log_softmax(c, self.vocab_size) for c in contexts]
            return SequenceOutput(
                edge_logprobs=tuple(float(rows[r + 1][token]) for r, token in step.trie.edges)
            )
        if step.sample is None:
            return SequenceOutput()
        scripted = self.script(context) if self.script is not None else None
        logprobs = log_softmax(context, self.vocab_size)
        token = draw(logprobs, step.sample) if scripted is None else scripted
        return SequenceOutput(token=token, logprob=float(logprobs[token]))


def answer_alone(request: Request, vocab_size: int, max_model_len: int) -> TokenIds:
    """The tokens of free decoding or of a masked walk, one at a time, with no engine."""
    context = list(request.prompt)
    params = request.sampling
    limit = min(len(context) + params.max_tokens, max_model_len)
    while True:
        left = None
        if request.choices is not None:
            done = tuple(context[len(request.prompt) :])
            left = [c for c in request.choices if c[: len(done)] == done]
            if left == [done]:
                return done
        logprobs = log_softmax(context, vocab_size)
        if left is not None:
            allowed = tuple(sorted({c[len(done)] for c in left if len(c) > len(done)}))
            if done in left:  # temperature 0 only
                rest = 1 - sum(math.exp(logprobs[token]) for token in allowed)
                if rest >= max(math.exp(logprobs[token]) for token in allowed):
                    return done
            spec = SampleSpec(params, len(context), allowed)
        else:
            spec = SampleSpec(params, len(context))
        token = draw(logprobs, spec)
        context.append(token)
        if request.choices is None and (token == EOS or len(context) >= limit):
            return tuple(context[len(request.prompt) :])


def scores_alone(request: Request, vocab_size: int) -> tuple[float, ...]:
    """The raw log-probability of every choice by plain passes, with no trie."""
    assert request.choices is not None
    scores = []
    for choice in request.choices:
        context, total = list(request.prompt), 0.0
        for token in choice:
            total += float(log_softmax(context, vocab_size)[token])
            context.append(token)
        longer = {
            c[len(choice)] for c in request.choices if c[: len(choice)] == choice and c != choice
        }
        if longer:
            logprobs = log_softmax(context, vocab_size)
            total += math.log(1 - sum(math.exp(logprobs[token]) for token in sorted(longer)))
        scores.append(total)
    return tuple(scores)


def greedy_alone(request: Request, vocab_size: int) -> int:
    """Index of the choice that a masked greedy walk ends at."""
    assert request.choices is not None
    walk = Request("greedy", request.prompt, choices=request.choices)
    return request.choices.index(answer_alone(walk, vocab_size, 10**9))


def choice_set(*choices: TokenIds) -> ChoiceSet:
    return ChoiceSet.build(choices)
