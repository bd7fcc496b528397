"""From the log-probabilities of a trie's edges to the distribution over the choices. Torch-free.

A choice's log-probability is the plain sum of its edges, never a length average, in the order of
its tokens; a choice whose tokens begin others' also gets log(1 − ΣP(tokens that continue)). All
sums over choices run in the order of the choices sorted by token ids, so that the bits are the same
however the caller orders them; results are in the caller's order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.rng import uniform
from engine.trie import ChoiceTrie
from engine.types import EngineError, SamplingParams, TokenIds


@dataclass(frozen=True, slots=True)
class ChoiceDistribution:
    """The fields of `ChoiceScores` that follow from the edges; indices in the caller's order."""

    logprobs: tuple[float, ...]
    probabilities: tuple[float, ...]
    legal_mass: float
    argmax: int
    greedy: int
    choice: int


@dataclass(frozen=True, slots=True)
class ChoiceSet:
    """Choices and their trie. `order[k]` is the caller's index of the k-th smallest choice."""

    choices: tuple[TokenIds, ...]
    order: tuple[int, ...]
    trie: ChoiceTrie  # of the sorted choices

    @classmethod
    def build(cls, choices: Sequence[TokenIds]) -> "ChoiceSet":
        """Raises ValueError for empty or repeated choices."""
        order = tuple(sorted(range(len(choices)), key=lambda i: choices[i]))
        return cls(tuple(choices), order, ChoiceTrie.build([choices[i] for i in order]))

    @property
    def max_length(self) -> int:
        return max(len(choice) for choice in self.choices)

    def distribution(
        self, edges: Sequence[float], params: SamplingParams, position: int
    ) -> ChoiceDistribution:
        """`edges` are log-probabilities, one an edge; `position` is the counter of the draw.

        Raises EngineError where every choice has probability zero.
        """
        raw = [
            _sum(edges, path) + (log_rest([edges[e] for e in tail]) if tail else 0.0)
            for path, tail in zip(self.trie.paths, self.trie.tails, strict=True)
        ]
        best = max(range(len(raw)), key=lambda k: raw[k])  # ties: the smaller token ids
        if raw[best] == -math.inf:
            raise EngineError("every choice has probability zero")
        drawn = best
        if params.temperature > 0.0:
            drawn = pick(tempered(raw, params.temperature), uniform(params.seed, position))
        return ChoiceDistribution(
            logprobs=self._restore(raw),
            probabilities=self._restore(tempered(raw, 1.0)),
            legal_mass=sum(math.exp(value) for value in raw),
            argmax=self.order[best],
            greedy=self.order[self._greedy(edges)],
            choice=self.order[drawn],
        )

    def _restore(self, values: Sequence[float]) -> tuple[float, ...]:
        """From sorted order to the caller's."""
        restored = [0.0] * len(values)
        for index, value in zip(self.order, values, strict=True):
            restored[index] = value
        return tuple(restored)

    def _greedy(self, edges: Sequence[float]) -> int:
        """Where the masked greedy walk ends, as an index into the sorted choices."""
        trie = self.trie
        ways: list[list[int]] = [[] for _ in range(len(trie.tokens) + 1)]  # of row −1, 0, 1 …
        for edge, (row, _) in enumerate(trie.edges):
            ways[row + 1].append(edge)
        row_of = {
            (parent, token): row
            for row, (parent, token) in enumerate(zip(trie.parents, trie.tokens, strict=True))
        }
        choice_at = {path[-1]: choice for choice, path in enumerate(trie.paths)}
        row, last = -1, -1
        while True:
            here = ways[row + 1]
            edge = max(here, key=lambda e: edges[e])
            if last in choice_at and log_rest([edges[e] for e in here]) >= edges[edge]:
                return choice_at[last]
            last = edge
            child = row_of.get(trie.edges[edge])
            if child is None:
                return choice_at[last]
            row = child


def log_rest(logprobs: Sequence[float]) -> float:
    """log(1 − Σ exp): what is left beside these; −inf where rounding leaves nothing."""
    rest = 1.0 - sum(math.exp(value) for value in logprobs)
    return math.log(rest) if rest > 0.0 else -math.inf


def tempered(logprobs: Sequence[float], temperature: float) -> list[float]:
    """Probabilities proportional to exp(logprob / temperature), summing to 1."""
    top = max(logprobs)
    weights = [math.exp((value - top) / temperature) for value in logprobs]
    total = sum(weights)
    return [weight / total for weight in weights]


def pick(probabilities: Sequence[float], draw: float) -> int:
    """The index whose stretch of the cumulative sum holds `draw` in [0, 1)."""
    total, last = 0.0, 0
    for i, probability in enumerate(probabilities):
        if probability > 0.0:
            last, total = i, total + probability
            if draw < total:
                break
    return last


def _sum(edges: Sequence[float], path: Sequence[int]) -> float:
    return sum(edges[e] for e in path)
