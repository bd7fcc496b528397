"""The trie of the legal moves' tokens: which rows to feed, which edges to score. Torch-free.

Inner nodes below the root are fed as rows; a leaf's own logits are never needed and the root's come
from the last prompt row. Rows are in depth-first order of sorted tokens, so `tin`/`tout` of the
one mask rule are row numbers: among new rows, q sees k ⟺ tin[k] ≤ tin[q] < tout[k].
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.types import TokenIds, common_prefix


@dataclass(frozen=True, slots=True)
class ChoiceTrie:
    """Flat form of the trie of some choices.

    Row r (0-based) feeds `tokens[r]` at depth `depths[r]` (1 = a child of the root), parent row
    `parents[r]` (−1: the root, the last prompt row); its subtree is rows r … ends[r]−1. Edge e asks
    for log P(`edges[e][1]` | row `edges[e][0]`), again −1 for the root. Choice c is the product of
    the edges `paths[c]`, and P(choice) loses what continues to longer choices through `tails[c]`
    (edges leaving its end node), empty unless its tokens begin another choice's.
    """

    tokens: TokenIds
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    ends: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    paths: tuple[tuple[int, ...], ...]
    tails: tuple[tuple[int, ...], ...]

    @classmethod
    def build(cls, choices: Sequence[TokenIds]) -> "ChoiceTrie":
        """The trie of distinct, non-empty choices. Raises ValueError otherwise."""
        if not choices or any(not choice for choice in choices):
            raise ValueError("choices must be given and none may be empty")
        if len(set(choices)) != len(choices):
            raise ValueError("choices must be distinct")
        builder = _Builder()
        for choice in sorted(choices):
            builder.add(choice)
        return builder.trie(choices)


class _Builder:
    """Takes the choices in sorted order, each sharing what it can with the one before.

    A prefix gets its row when the first choice that goes on from it comes, so rows and edges are in
    depth-first order. `row_at[d]`, `edge_at[d]` belong to the first d tokens of the last choice.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.ends: list[int] = []
        self.edges: list[tuple[int, int]] = []
        self.edges_of: dict[int, list[int]] = {-1: []}  # by the row they leave
        self.paths: dict[TokenIds, tuple[int, ...]] = {}
        self.forks: dict[TokenIds, int] = {}  # choices that begin others: the row at their end
        self.last: TokenIds = ()
        self.row_at = [-1]
        self.edge_at = [-1]

    def add(self, choice: TokenIds) -> None:
        shared = common_prefix(self.last, choice)
        self._close(shared + 1)
        del self.edge_at[shared + 1 :]
        for depth in range(1, len(choice) + 1):
            if depth > shared:
                self._edge(self.row_at[depth - 1], choice[depth - 1])
            if len(self.row_at) == depth < len(choice):
                self._row(choice[depth - 1], depth)
                if depth == len(self.last) == shared:
                    self.forks[self.last] = self.row_at[depth]
        self.paths[choice] = tuple(self.edge_at[1:])
        self.last = choice

    def _edge(self, row: int, token: int) -> None:
        self.edge_at.append(len(self.edges))
        self.edges_of[row].append(len(self.edges))
        self.edges.append((row, token))

    def _row(self, token: int, depth: int) -> None:
        row = len(self.tokens)
        self.tokens.append(token)
        self.parents.append(self.row_at[depth - 1])
        self.depths.append(depth)
        self.ends.append(row + 1)
        self.edges_of[row] = []
        self.row_at.append(row)

    def _close(self, depth: int) -> None:
        """Subtrees deeper than the shared prefix are complete."""
        for row in self.row_at[depth:]:
            self.ends[row] = len(self.tokens)
        del self.row_at[depth:]

    def trie(self, choices: Sequence[TokenIds]) -> ChoiceTrie:
        self._close(1)
        tails = {choice: tuple(self.edges_of[row]) for choice, row in self.forks.items()}
        return ChoiceTrie(
            tokens=tuple(self.tokens),
            parents=tuple(self.parents),
            depths=tuple(self.depths),
            ends=tuple(self.ends),
            edges=tuple(self.edges),
            paths=tuple(self.paths[choice] for choice in choices),
            tails=tuple(tails.get(choice, ()) for choice in choices),
        )
