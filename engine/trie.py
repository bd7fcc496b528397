"""The trie of the legal moves' tokens: which rows to feed, which edges to score. Torch-free.

Inner nodes below the root are fed as rows; a leaf's own logits are never needed and the root's come
from the last prompt row. Rows are in depth-first order of sorted tokens, so `tin`/`tout` of the
one mask rule are row numbers: among new rows, q sees k ⟺ tin[k] ≤ tin[q] < tout[k].
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.types import TokenIds


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
        builder = _Builder(choices)
        return builder.trie()


class _Builder:
    """Walks the sorted choices once, opening a row whenever a node turns out to be inner."""

    def __init__(self, choices: Sequence[TokenIds]) -> None:
        self.choices = choices
        self.prefixes = {choice[:i] for choice in choices for i in range(1, len(choice))}
        self.rows: list[TokenIds] = sorted(self.prefixes)  # depth-first: a prefix sorts first
        self.row_of = {prefix: row for row, prefix in enumerate(self.rows)} | {(): -1}
        self.edge_of: dict[tuple[int, int], int] = {}

    def trie(self) -> ChoiceTrie:
        rows = self.rows
        for choice in sorted(self.choices):
            for i, token in enumerate(choice):
                key = (self.row_of[choice[:i]], token)
                self.edge_of.setdefault(key, len(self.edge_of))
        return ChoiceTrie(
            tokens=tuple(prefix[-1] for prefix in rows),
            parents=tuple(self.row_of[prefix[:-1]] for prefix in rows),
            depths=tuple(len(prefix) for prefix in rows),
            ends=tuple(self._end(row) for row in range(len(rows))),
            edges=tuple(self.edge_of),
            paths=tuple(self._path(choice) for choice in self.choices),
            tails=tuple(self._tail(choice) for choice in self.choices),
        )

    def _end(self, row: int) -> int:
        prefix = self.rows[row]
        end = row + 1
        while end < len(self.rows) and self.rows[end][: len(prefix)] == prefix:
            end += 1
        return end

    def _path(self, choice: TokenIds) -> tuple[int, ...]:
        return tuple(self.edge_of[self.row_of[choice[:i]], token] for i, token in enumerate(choice))

    def _tail(self, choice: TokenIds) -> tuple[int, ...]:
        row = self.row_of.get(choice)
        if row is None:
            return ()
        return tuple(e for (parent, _), e in self.edge_of.items() if parent == row)
