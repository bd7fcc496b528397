"""The pool of KV blocks: reference counts, a free list, and a prefix cache over full chains.

Knows ids and tokens, not memory. A block is *used* (someone holds it), *cached* (nobody holds it,
its tokens can be found) or *free*; used blocks may be findable too. What must hold:

- A block is found only after it was published, and it is published once its K/V are computed.
- A hit compares tokens, salt and parent; the chained hash only finds candidates.
- A findable block's parent is findable, and is held by whoever holds the block. Holders release
  tail first, so the free list keeps children before parents and eviction takes the oldest leaf.
- A published slot is never written again; the tail of a finished sequence is published as a block
  with fewer than `block_size` tokens, which others only copy from.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.types import EngineError, TokenIds, common_prefix

HashFunction = Callable[[int, TokenIds], int]


def chained_hash(parent: int, tokens: TokenIds) -> int:
    """Hash of a block from its parent's hash (of the salt, at the root) and its own tokens."""
    return hash((parent, tokens))


@dataclass(eq=False, slots=True)
class Block:
    """One block. `tokens` is None unless it can be found; `parent` None then means the root."""

    block_id: int
    num_holders: int = 0
    tokens: TokenIds | None = None
    salt: str = ""
    hash: int = 0
    parent: "Block | None" = None
    children: dict[int, "Block"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """Whole blocks to share, and perhaps one to copy the first `num_slots` slots of."""

    blocks: tuple[int, ...] = ()
    source: int | None = None
    num_slots: int = 0


@dataclass(frozen=True, slots=True)
class BlockUsage:
    """How many blocks are in each state; they add up to the pool."""

    free: int
    cached: int
    used: int


class BlockPool:
    """`num_blocks` blocks of `block_size` slots. One thread."""

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        enable_prefix_caching: bool = True,
        hash_function: HashFunction = chained_hash,
    ) -> None:
        self.block_size = block_size
        self.enable_prefix_caching = enable_prefix_caching
        self.num_evictions = 0
        self._hash = hash_function
        self._blocks = [Block(i) for i in range(num_blocks)]
        self._free = OrderedDict((block.block_id, block) for block in self._blocks)
        self._num_cached = 0  # findable ones among the free
        self._index: dict[int, list[Block]] = {}
        self._roots: dict[str, dict[int, Block]] = {}

    @property
    def num_blocks(self) -> int:
        return len(self._blocks)

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds; cached ones are evicted when they are needed."""
        return len(self._free)

    def num_holders(self, block_id: int) -> int:
        return self._blocks[block_id].num_holders

    def is_cached(self, block_id: int) -> bool:
        return self._blocks[block_id].tokens is not None

    def cached_tokens(self, block_id: int) -> TokenIds:
        """The published tokens of a block, empty if it can't be found."""
        return self._blocks[block_id].tokens or ()

    def num_needed_from_free(self, match: PrefixMatch) -> int:
        """How many of the match's blocks leave the free list when they are held."""
        held = match.blocks if match.source is None else (*match.blocks, match.source)
        return sum(self._blocks[i].num_holders == 0 for i in held)

    # Finding

    def match(self, tokens: Sequence[int], salt: str, limit: int) -> PrefixMatch:
        """The longest cached prefix of `tokens`, at most `limit` long. Holds nothing yet."""
        if not self.enable_prefix_caching:
            return PrefixMatch()
        size = self.block_size
        parent: Block | None = None
        blocks: list[int] = []
        while (len(blocks) + 1) * size <= limit:
            start = len(blocks) * size
            found = self._find(parent, tuple(tokens[start : start + size]), salt)
            if found is None:
                break
            blocks.append(found.block_id)
            parent = found
        rest = tuple(tokens[len(blocks) * size : min(limit, (len(blocks) + 1) * size)])
        source, num_slots = self._closest(parent, rest, salt)
        return PrefixMatch(tuple(blocks), source, num_slots)

    def _find(self, parent: Block | None, tokens: TokenIds, salt: str) -> Block | None:
        for block in self._index.get(self._hash_of(parent, tokens, salt), ()):
            if block.parent is parent and block.tokens == tokens and block.salt == salt:
                return block
        return None

    def _closest(self, parent: Block | None, tokens: TokenIds, salt: str) -> tuple[int | None, int]:
        best, best_slots = None, 0
        for block in self._siblings(parent, salt).values():
            slots = common_prefix(block.tokens or (), tokens)
            if slots > best_slots:
                best, best_slots = block.block_id, slots
        return best, best_slots

    def _siblings(self, parent: Block | None, salt: str) -> dict[int, Block]:
        return self._roots.get(salt, {}) if parent is None else parent.children

    def _hash_of(self, parent: Block | None, tokens: TokenIds, salt: str) -> int:
        root = hash(("salt", salt))
        return self._hash(root if parent is None else parent.hash, tokens)

    # Holding

    def hold(self, block_ids: Sequence[int]) -> None:
        """One more holder for each block."""
        for i in block_ids:
            block = self._blocks[i]
            block.num_holders += 1
            if self._free.pop(i, None) is not None and block.tokens is not None:
                self._num_cached -= 1

    def allocate(self, count: int) -> list[int]:
        """Take blocks with no content, each with one holder; evicts the oldest leaves.

        Raises EngineError when fewer are free (callers look at `num_free` first).
        """
        if count > len(self._free):
            raise EngineError(f"{count} blocks wanted, {len(self._free)} free")
        taken = []
        for _ in range(count):
            i, block = self._free.popitem(last=False)
            if block.tokens is not None:
                self._unpublish(block)
                self._num_cached -= 1
                self.num_evictions += 1
            block.num_holders = 1
            taken.append(i)
        return taken

    def release(self, block_ids: Sequence[int]) -> None:
        """One holder less for each block of a chain, given from its head; freed tail first."""
        for i in reversed(block_ids):
            block = self._blocks[i]
            if block.num_holders < 1:
                raise EngineError(f"block {i} is released but nobody holds it")
            block.num_holders -= 1
            if block.num_holders == 0:
                self._free[i] = block
                if block.tokens is None:
                    self._free.move_to_end(i, last=False)
                else:
                    self._num_cached += 1

    # Publishing

    def publish(self, block_id: int, parent_id: int | None, tokens: TokenIds, salt: str) -> int:
        """Let a computed, held block be found. Returns the block to hold in its place.

        Where the same tokens are cached under the same parent already, the hold moves to that
        block. Nothing happens where the parent can't be found, or for a part of a block that a
        cached block covers.
        """
        parent = None if parent_id is None else self._blocks[parent_id]
        if not self.enable_prefix_caching or (parent is not None and parent.tokens is None):
            return block_id
        if len(tokens) < self.block_size:
            if self._closest(parent, tokens, salt)[1] == len(tokens):
                return block_id
        elif (twin := self._find(parent, tokens, salt)) is not None:
            if twin.block_id != block_id:
                self.hold([twin.block_id])
                self.release([block_id])
            return twin.block_id
        block = self._blocks[block_id]
        block.tokens, block.salt, block.parent = tokens, salt, parent
        block.hash = self._hash_of(parent, tokens, salt)
        self._index.setdefault(block.hash, []).append(block)
        self._siblings_for_writing(block)[block_id] = block
        return block_id

    def forget(self, block_ids: Sequence[int]) -> None:
        """Make blocks and all that follow them unfindable (their content is not to be trusted)."""
        stack, family = [self._blocks[i] for i in block_ids], []
        while stack:
            block = stack.pop()
            family.append(block)
            stack.extend(block.children.values())
        for block in reversed(family):  # children before parents
            if block.tokens is not None:
                self._unpublish(block)
                if block.num_holders == 0:
                    self._num_cached -= 1
                    self._free.move_to_end(block.block_id, last=False)

    def _siblings_for_writing(self, block: Block) -> dict[int, Block]:
        if block.parent is None:
            return self._roots.setdefault(block.salt, {})
        return block.parent.children

    def _unpublish(self, block: Block) -> None:
        bucket = self._index[block.hash]
        bucket.remove(block)
        if not bucket:
            del self._index[block.hash]
        siblings = self._siblings_for_writing(block)
        del siblings[block.block_id]
        if block.parent is None and not siblings:
            del self._roots[block.salt]
        block.tokens, block.salt, block.hash, block.parent = None, "", 0, None

    # Checking

    def usage(self) -> BlockUsage:
        free = len(self._free)
        return BlockUsage(free - self._num_cached, self._num_cached, self.num_blocks - free)

    def check_integrity(self) -> BlockUsage:
        """Raises EngineError naming the first broken invariant of this module's docstring."""
        order = {i: place for place, i in enumerate(self._free)}
        for block in self._blocks:
            _require((block.num_holders == 0) == (block.block_id in order), block, "free list")
            if block.tokens is None:
                _require(not block.children and block.parent is None, block, "uncached links")
                continue
            siblings = self._siblings(block.parent, block.salt)
            _require(siblings.get(block.block_id) is block, block, "missing from its parent")
            _require(block in self._index.get(block.hash, ()), block, "missing from the index")
            if block.parent is not None:
                parent = block.parent
                _require(parent.tokens is not None, block, "parent not cached")
                _require(len(parent.tokens or ()) == self.block_size, block, "parent not full")
                _require(parent.num_holders >= block.num_holders, block, "parent held less")
                if parent.block_id in order:
                    _require(
                        order[block.block_id] < order[parent.block_id], block, "parent goes first"
                    )
        indexed = sum(len(bucket) for bucket in self._index.values())
        findable = sum(block.tokens is not None for block in self._blocks)
        if indexed != findable:
            raise EngineError(f"{indexed} blocks indexed, {findable} findable")
        if self._num_cached != sum(block.tokens is not None for block in self._free.values()):
            raise EngineError("the count of cached blocks is off")
        return self.usage()


def _require(condition: bool, block: Block, what: str) -> None:
    if not condition:
        raise EngineError(f"block {block.block_id} breaks an invariant: {what}")
