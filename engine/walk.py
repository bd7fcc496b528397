"""The cursor of a masked walk through the trie of some choices. Torch-free.

At a node the walk may take one of the children's tokens. A node with one child that ends no choice
is *forced*: its token is appended without a forward pass. A node that ends one choice and begins
others (`a2a1`, `a2a10`) is a *fork*: the walk ends there with the probability that the full
vocabulary gives to anything but the children, 1 − ΣP(child), which is also what choice scoring
says of such a choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.choices import log_rest, pick, tempered
from engine.rng import uniform
from engine.types import SamplingParams, TokenIds


@dataclass(slots=True)
class _Node:
    choice: int | None = None
    children: "dict[int, _Node]" = field(default_factory=dict)


class ChoiceWalk:
    """Stands at the root of the choices; `choice` numbers follow the caller's order."""

    def __init__(self, choices: Sequence[TokenIds]) -> None:
        self._node = _Node()
        for i in sorted(range(len(choices)), key=lambda i: choices[i]):
            node = self._node
            for token in choices[i]:
                node = node.children.setdefault(token, _Node())
            node.choice = i

    @property
    def allowed(self) -> TokenIds:
        """Tokens that may come next, sorted; empty at the end of the walk."""
        return tuple(self._node.children)

    @property
    def is_fork(self) -> bool:
        return self._node.choice is not None and bool(self._node.children)

    @property
    def choice(self) -> int | None:
        """The choice that ends where the walk stands."""
        return self._node.choice

    def advance(self, token: int) -> None:
        """Take a child. Raises KeyError for a token that is not allowed."""
        self._node = self._node.children[token]

    def end(self) -> None:
        """End at a fork with the shorter choice."""
        self._node = _Node(self._node.choice)

    def take_forced(self) -> list[int]:
        """Walk on as long as there is only one way; the tokens passed."""
        tokens = []
        while len(self._node.children) == 1 and self._node.choice is None:
            ((token, self._node),) = self._node.children.items()
            tokens.append(token)
        return tokens

    def decide(
        self, logprobs: Sequence[float], params: SamplingParams, position: int
    ) -> int | None:
        """At a fork: which child comes next, as an index into `allowed`; None ends the walk.

        `logprobs` are the children's under the full vocabulary. Temperature applies to the
        distribution over {end, children}; a draw is that of (seed, position).
        """
        return decide_fork(logprobs, params.temperature, uniform(params.seed, position))


def decide_fork(logprobs: Sequence[float], temperature: float, draw: float) -> int | None:
    """Index of the child taken, None to end. Ties go to the end, then to the smaller token."""
    options = [log_rest(logprobs), *logprobs]
    if temperature == 0.0:
        best = max(range(len(options)), key=lambda i: options[i])
        return None if best == 0 else best - 1
    taken = pick(tempered(options, temperature), draw)
    return None if taken == 0 else taken - 1
