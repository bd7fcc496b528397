"""Gives sequences their blocks and takes them back: the only place where both meet.

A sequence that runs holds blocks for all its present tokens (never for its maximum). Blocks become
findable when the step that filled them has been committed; a copy's source is held until the step
that copied it has. What must hold: a block's holders are the tables and pending copies naming it.
"""

from collections import Counter
from collections.abc import Iterable

from engine.blocks import BlockPool, BlockUsage, PrefixMatch
from engine.sequence import Sequence
from engine.types import BlockCopy, EngineError, num_blocks_for


class SequenceMemory:
    """Blocks of many sequences out of one pool."""

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool

    def num_missing(self, sequence: Sequence, num_tokens: int) -> int:
        """Blocks still to allocate before so many tokens have their slots."""
        wanted = num_blocks_for(num_tokens, self.pool.block_size)
        return max(0, wanted - len(sequence.block_table))

    def num_exclusive(self, sequence: Sequence) -> int:
        """Blocks that come free when this sequence lets go: the work that preempting it loses."""
        return sum(self.pool.num_holders(i) == 1 for i in sequence.block_table)

    def could_open(self, sequence: Sequence, victims: Iterable[Sequence], num_spare: int) -> bool:
        """Whether `try_open` would do if the victims let go of all they hold."""
        match = self._match(sequence)
        held = Counter(i for victim in victims for i in victim.block_table)
        freed = sum(
            count == self.pool.num_holders(i)
            for i, count in held.items()
            if i not in match.blocks and i != match.source
        )
        return self._num_wanted(sequence, match) + num_spare <= self.pool.num_free + freed

    def try_open(self, sequence: Sequence, *, num_spare: int = 0) -> bool:
        """Find what is cached and allocate the rest, if `num_spare` blocks stay free then."""
        match = self._match(sequence)
        whole = PrefixMatch(match.blocks)  # where the copy's source is one block too many
        for found in (match, whole) if match.source is not None else (match,):
            if self._num_wanted(sequence, found) + num_spare <= self.pool.num_free:
                self._open(sequence, found)
                return True
        return False

    def _match(self, sequence: Sequence) -> PrefixMatch:
        """All but the last token may come from the cache: that row yields the next token."""
        tokens = sequence.tokens
        return self.pool.match(tokens, sequence.request.cache_salt, len(tokens) - 1)

    def _num_wanted(self, sequence: Sequence, match: PrefixMatch) -> int:
        whole = num_blocks_for(len(sequence.tokens), self.pool.block_size)
        return whole - len(match.blocks) + self.pool.num_needed_from_free(match)

    def _open(self, sequence: Sequence, match: PrefixMatch) -> None:
        size = self.pool.block_size
        self.pool.hold(match.blocks)
        if match.source is not None:
            self.pool.hold([match.source])
        fresh = self.pool.allocate(num_blocks_for(len(sequence.tokens), size) - len(match.blocks))
        sequence.copied_from = match.source
        if match.source is not None:
            sequence.copy = BlockCopy(match.source, fresh[0], match.num_slots)
        sequence.block_table = [*match.blocks, *fresh]
        sequence.num_published = len(match.blocks)
        sequence.num_computed = len(match.blocks) * size + match.num_slots

    def try_grow(self, sequence: Sequence) -> bool:
        """Blocks for all its present tokens; False leaves everything as it was."""
        missing = self.num_missing(sequence, len(sequence.tokens))
        if missing > self.pool.num_free:
            return False
        sequence.block_table += self.pool.allocate(missing)
        return True

    def commit(self, sequence: Sequence) -> None:
        """After a step: its copy is done, and blocks it filled can be found from now on."""
        self._drop_copy(sequence)
        size = self.pool.block_size
        while (sequence.num_published + 1) * size <= sequence.num_computed:
            i = sequence.num_published
            if not self._publish(sequence, i, size):
                break
            sequence.num_published = i + 1

    def close(self, sequence: Sequence, *, keep: bool = True) -> None:
        """Take everything back. `keep`: its unfinished last block can be found as well."""
        keep = keep and sequence.copy is None  # a copy that was not done left nothing to find
        self._drop_copy(sequence)
        whole, rest = divmod(sequence.num_computed, self.pool.block_size)
        if keep and rest and sequence.num_published == whole:
            self._publish(sequence, whole, rest)
        self.pool.release(sequence.block_table)
        sequence.block_table, sequence.num_computed, sequence.num_published = [], 0, 0

    def distrust(self, sequence: Sequence) -> None:
        """Take everything back and make sure that none of its blocks is found again.

        What its copy came from is forgotten too, or what lies there by now.
        """
        self.pool.forget(sequence.block_table)
        if sequence.copied_from is not None:
            self.pool.forget([sequence.copied_from])
        self.close(sequence, keep=False)

    def _publish(self, sequence: Sequence, i: int, num_tokens: int) -> bool:
        table, start = sequence.block_table, i * self.pool.block_size
        tokens = tuple(sequence.tokens[start : start + num_tokens])
        parent = table[i - 1] if i else None
        table[i] = self.pool.publish(table[i], parent, tokens, sequence.request.cache_salt)
        return self.pool.is_cached(table[i])

    def _drop_copy(self, sequence: Sequence) -> None:
        if sequence.copy is not None:
            self.pool.release([sequence.copy.source])
            sequence.copy = None

    def check_integrity(self, sequences: Iterable[Sequence]) -> BlockUsage:
        """`sequences` are all that may hold blocks. Raises EngineError on a broken invariant."""
        holders: Counter[int] = Counter()
        for sequence in sequences:
            holders.update(sequence.block_table)
            if sequence.copy is not None:
                holders[sequence.copy.source] += 1
            if len(sequence.block_table) * self.pool.block_size < sequence.num_computed:
                raise EngineError(f"{sequence.request_id}: computed past its blocks")
        for i in range(self.pool.num_blocks):
            if self.pool.num_holders(i) != holders[i]:
                raise EngineError(
                    f"block {i} has {self.pool.num_holders(i)} holders, {holders[i]} are known"
                )
        return self.pool.check_integrity()
