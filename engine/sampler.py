"""From logits to a token: one row at a time, so no row depends on its neighbours.

Order: repetition penalty, allowed tokens, temperature, top-k, top-p, min-p, then the draw,
argmax(score / temperature + Gumbel noise of (seed, position, token)). Ties go to the smaller token.
Logprobs are those of the raw logits over the full vocabulary. Work is in float64.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.rng import gumbel, uniform
from engine.types import SampleSpec, SamplingParams, SequenceOutput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CORRUPTED = SequenceOutput(corrupted=True)
FEW = 512  # below this many candidates noise is made token by token


def sample_rows(logits: Tensor, specs: Sequence[SampleSpec]) -> list[SequenceOutput]:
    """logits float32 [rows, vocabulary], one spec a row."""
    is_finite = torch.isfinite(logits.sum(-1)).tolist()
    greedy = logits.argmax(-1).tolist()
    outputs = []
    for i, spec in enumerate(specs):
        if not is_finite[i]:
            outputs.append(CORRUPTED)
        elif _is_plain(spec):
            outputs.append(SequenceOutput(token=greedy[i]))
        else:
            outputs.append(_sample_row(logits[i], spec))
    return outputs


def sample_allowed(scores: Floats, spec: SampleSpec) -> SequenceOutput:
    """Draw where only the allowed tokens' logits are known: float64 [allowed], in their order."""
    if not np.isfinite(scores).all():
        return CORRUPTED
    allowed = np.asarray(spec.allowed, dtype=np.int64)
    return SequenceOutput(token=draw(allowed, scores, spec))


def draw(tokens: Ints, scores: Floats, spec: SampleSpec) -> int:
    """One of the ascending tokens by their raw logits float64 [tokens]."""
    params = spec.params
    scores = _penalised(tokens, scores, spec)
    if params.temperature == 0.0:
        return int(tokens[np.argmax(scores)])
    scores = scores / params.temperature
    keep = _kept(scores, params)
    tokens, scores = tokens[keep], scores[keep]
    return int(tokens[np.argmax(scores + _noise(tokens, spec))])


def _is_plain(spec: SampleSpec) -> bool:
    """Greedy over the whole vocabulary, nothing else asked."""
    params = spec.params
    return (
        params.temperature == 0.0
        and params.repetition_penalty == 1.0
        and params.logprobs == 0
        and spec.allowed is None
    )


def _sample_row(row: Tensor, spec: SampleSpec) -> SequenceOutput:
    logits = row.double().numpy()
    if spec.allowed is None:
        tokens = np.arange(len(logits))
        token = draw(tokens, logits, spec)
    else:
        tokens = np.asarray(spec.allowed, dtype=np.int64)
        token = draw(tokens, logits[tokens], spec)
    if spec.params.logprobs == 0:
        return SequenceOutput(token=token)
    logprobs = torch.log_softmax(row, -1)
    top = torch.topk(logprobs, min(spec.params.logprobs, len(logits)))
    pairs = tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))
    return SequenceOutput(token=token, logprob=float(logprobs[token]), top_logprobs=pairs)


def _penalised(tokens: Ints, scores: Floats, spec: SampleSpec) -> Floats:
    """Tokens of the history: positive logits divided by the penalty, negative multiplied (CTRL)."""
    penalty = spec.params.repetition_penalty
    if penalty == 1.0 or not spec.history:
        return scores
    seen = np.isin(tokens, np.asarray(spec.history, dtype=np.int64))
    return np.where(seen, np.where(scores > 0, scores / penalty, scores * penalty), scores)


def _kept(scores: Floats, params: SamplingParams) -> Ints:
    """Indices, ascending, that top-k, top-p and min-p leave; the best always stays."""
    keep = np.arange(len(scores))
    if 0 < params.top_k < len(scores):
        keep = np.argsort(-scores, kind="stable")[: params.top_k]
    if params.top_p < 1.0 or params.min_p > 0.0:
        order = keep[np.argsort(-scores[keep], kind="stable")]
        weights = np.exp(scores[order] - scores[order[0]])
        probabilities = weights / weights.sum()
        before = np.cumsum(probabilities) - probabilities
        stay = (before < params.top_p) & (probabilities >= params.min_p * probabilities[0])
        stay[0] = True
        keep = order[stay]
    return np.sort(keep)


def _noise(tokens: Ints, spec: SampleSpec) -> Floats:
    """Gumbel noise of the tokens, the same whichever others are candidates."""
    seed, position = spec.params.seed, spec.position
    if len(tokens) > FEW:
        return gumbel(seed, position, int(tokens[-1]) + 1)[tokens]
    units = np.array([uniform(seed, position, int(token)) for token in tokens])
    inside = np.minimum(units + 2.0**-54, 1.0 - 2.0**-53)
    return -np.log(-np.log(inside))
