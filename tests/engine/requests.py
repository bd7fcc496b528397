"""Requests and readings that the scheduler's tests share."""

import random
from collections.abc import Sequence

from engine.config import EngineConfig
from engine.types import (
    Request,
    SamplingParams,
    StepPlan,
    TokenIds,
)

from .drive import Drive
from .fake_runner import answer_alone

VOCAB = 32
LONG = SamplingParams(max_tokens=12, ignore_eos=True)


def config(**settings: object) -> EngineConfig:
    return EngineConfig.from_dict({"model": "fake", **settings})


def prompt(seed: int, length: int) -> TokenIds:
    rng = random.Random(seed)
    return tuple(rng.randrange(1, VOCAB) for _ in range(length))


def free(name: str, tokens: TokenIds, max_tokens: int = 6, **fields: int) -> Request:
    params = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
    return Request(name, tokens, params, priority=fields.get("priority", 0))


def score(name: str, tokens: TokenIds, choices: Sequence[TokenIds]) -> Request:
    return Request(name, tokens, choices=tuple(choices), score=True)


def expected(drive: Drive, request: Request) -> TokenIds:
    """Free decoding that ignores the end token."""
    tokens = list(request.prompt)
    for _ in range(request.sampling.max_tokens):
        one = Request("x", tuple(tokens), SamplingParams(max_tokens=1))
        tokens += answer_alone(one, drive.runner.vocab_size, 10**9)
    return tuple(tokens[len(request.prompt) :])


def rows(plan: StepPlan) -> dict[str, int]:
    return {step.request_id: step.num_rows for step in plan.sequences}
