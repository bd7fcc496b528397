"""The block pool: holders, free list, publication, eviction, matching."""

import random

import pytest

from engine.blocks import BlockPool, BlockUsage, PrefixMatch
from engine.types import EngineError, TokenIds


def pool(num_blocks: int = 8, block_size: int = 4) -> BlockPool:
    return BlockPool(num_blocks, block_size)


def chain(pool: BlockPool, tokens: TokenIds, salt: str = "") -> list[int]:
    """Blocks that hold `tokens`, published, the last perhaps in part; still held."""
    size = pool.block_size
    table: list[int] = []
    for start in range(0, len(tokens), size):
        (block,) = pool.allocate(1)
        parent = table[-1] if table else None
        table.append(pool.publish(block, parent, tokens[start : start + size], salt))
    return table


def cached_chain(pool: BlockPool, tokens: TokenIds, salt: str = "") -> list[int]:
    table = chain(pool, tokens, salt)
    pool.release(table)
    pool.check_integrity()
    return table


def test_blocks_go_round() -> None:
    p = pool(3)
    assert p.usage() == BlockUsage(free=3, cached=0, used=0)
    taken = p.allocate(3)
    assert sorted(taken) == [0, 1, 2]
    with pytest.raises(EngineError, match="1 blocks wanted, 0 free"):
        p.allocate(1)
    p.hold(taken[:1])
    p.release(taken)
    assert p.num_free == 2
    p.release(taken[:1])
    assert p.check_integrity() == BlockUsage(free=3, cached=0, used=0)
    with pytest.raises(EngineError, match="nobody holds"):
        p.release(taken[:1])


def test_whole_blocks_are_shared_and_a_part_is_copied() -> None:
    p = pool()
    table = cached_chain(p, (1, 2, 3, 4, 5, 6, 7, 8, 9))
    assert p.match((1, 2, 3, 4, 5, 6, 7, 8, 9, 10), "", 9) == PrefixMatch(
        (table[0], table[1]), table[2], 1
    )
    assert p.match((1, 2, 3, 4, 5, 6, 0, 0), "", 7) == PrefixMatch((table[0],), table[1], 2)
    assert p.match((1, 2, 9, 9), "", 3) == PrefixMatch((), table[0], 2)
    assert p.match((9, 9, 9, 9, 9), "", 4) == PrefixMatch()


def test_the_limit_keeps_the_last_row_to_compute() -> None:
    """EF04: a full hit is n − 1 long, its last block a copy."""
    p = pool()
    table = cached_chain(p, (1, 2, 3, 4, 5, 6, 7, 8))
    assert p.match((1, 2, 3, 4, 5, 6, 7, 8), "", 7) == PrefixMatch((table[0],), table[1], 3)


def test_an_unpublished_block_is_never_found() -> None:
    """EF03, at the pool."""
    p = pool()
    p.allocate(1)
    assert p.match((1, 2, 3, 4, 5), "", 4) == PrefixMatch()


def test_salts_are_apart() -> None:
    """EF01: one value under another kind of key is another key."""
    p = pool()
    cached_chain(p, (1, 2, 3, 4, 5, 6), "red")
    for other in ("", "blue", "('salt', 'red')"):
        assert p.match((1, 2, 3, 4, 5, 6), other, 5) == PrefixMatch()
    assert len(p.match((1, 2, 3, 4, 5, 6), "red", 5).blocks) == 1


def test_a_constant_hash_still_finds_only_equal_chains() -> None:
    """EF02, at the pool: the hash only finds candidates."""
    p = BlockPool(16, 2, hash_function=lambda parent, tokens: 42)
    one = cached_chain(p, (1, 2, 3, 4))
    two = cached_chain(p, (5, 6, 3, 4))
    salted = cached_chain(p, (1, 2, 3, 4), "salt")
    assert len({*one, *two, *salted}) == 6
    assert p.match((1, 2, 3, 4, 9), "", 4).blocks == tuple(one)
    assert p.match((5, 6, 3, 4, 9), "", 4).blocks == tuple(two)
    assert p.match((1, 2, 3, 4, 9), "salt", 4).blocks == tuple(salted)
    assert p.match((3, 4, 1, 2, 9), "", 4) == PrefixMatch()


def test_a_twin_gives_way_to_the_block_that_is_cached() -> None:
    p = pool()
    first = chain(p, (1, 2, 3, 4))
    (second,) = p.allocate(1)
    assert p.publish(second, None, (1, 2, 3, 4), "") == first[0]
    assert p.num_holders(first[0]) == 2
    assert p.num_holders(second) == 0
    p.check_integrity()


def test_a_part_that_is_cached_is_not_published_again() -> None:
    p = pool()
    whole = chain(p, (1, 2, 3, 4))
    (block,) = p.allocate(1)
    assert p.publish(block, None, (1, 2), "") == block
    assert not p.is_cached(block)
    p.release([block])
    p.release(whole)
    assert p.check_integrity() == BlockUsage(free=7, cached=1, used=0)


def test_the_oldest_tail_is_evicted_first() -> None:
    """EF05: eviction takes leaves, those of the oldest chain first."""
    p = pool(num_blocks=6, block_size=2)
    old = cached_chain(p, (1, 2, 3, 4, 5, 6))
    new = cached_chain(p, (7, 8, 9, 10, 11, 12))
    order = [*reversed(old), *reversed(new)]
    for i in range(6):
        (taken,) = p.allocate(1)
        assert taken == order[i]
        p.check_integrity()
    assert p.num_evictions == 6


def test_a_used_chain_outlives_an_older_one() -> None:
    p = pool(num_blocks=6, block_size=2)
    old = cached_chain(p, (1, 2, 3, 4, 5, 6))
    cached_chain(p, (7, 8, 9, 10, 11, 12))
    match = p.match((1, 2, 3, 4, 5, 6, 7), "", 6)
    p.hold(match.blocks)
    p.release(match.blocks)
    p.allocate(3)
    assert p.match((1, 2, 3, 4, 5, 6, 7), "", 6).blocks == tuple(old)


def test_any_order_of_evictions_keeps_parents() -> None:
    """EF05: every cached block's parent is cached, whatever the order (check_integrity says so)."""
    rng = random.Random(5)
    p = pool(num_blocks=24, block_size=2)
    held: list[list[int]] = []
    for _ in range(1500):
        if held and (rng.random() < 0.5 or p.num_free < 6):
            p.release(held.pop(rng.randrange(len(held))))
        else:
            tokens = tuple(rng.randrange(2) for _ in range(rng.randint(1, 9)))
            match = p.match(tokens, "", len(tokens))
            p.hold(match.blocks)
            table = list(match.blocks)
            for start in range(len(table) * 2, len(tokens), 2):
                (block,) = p.allocate(1)
                parent = table[-1] if table else None
                table.append(p.publish(block, parent, tokens[start : start + 2], ""))
            held.append(table)
        if rng.random() < 0.03 and held:
            p.forget(rng.choice(held)[:1])
        p.check_integrity()
    for table in held:
        p.release(table)
    assert p.check_integrity().used == 0
    assert p.num_evictions > 50


def test_forgotten_blocks_and_all_below_are_not_found() -> None:
    """EF27: what a corrupted request touched is out of the cache."""
    p = pool()
    table = chain(p, (1, 2, 3, 4, 5, 6, 7, 8, 9))
    p.forget(table[:1])
    assert p.match((1, 2, 3, 4, 5), "", 4) == PrefixMatch()
    assert not any(p.is_cached(i) for i in table)
    (block,) = p.allocate(1)
    assert p.publish(block, table[0], (5, 6, 7, 8), "") == block
    assert not p.is_cached(block), "published under a parent that can't be found"
    p.release([*table, block])
    assert p.check_integrity() == BlockUsage(free=8, cached=0, used=0)


def test_forgetting_free_blocks_keeps_the_counts() -> None:
    p = pool()
    table = cached_chain(p, (1, 2, 3, 4, 5, 6))
    p.forget(table)
    assert p.check_integrity() == BlockUsage(free=8, cached=0, used=0)


def test_without_prefix_caching_nothing_is_found() -> None:
    p = BlockPool(4, 2, enable_prefix_caching=False)
    cached_chain(p, (1, 2, 3, 4))
    assert p.match((1, 2, 3, 4, 5), "", 4) == PrefixMatch()
    assert p.usage() == BlockUsage(free=4, cached=0, used=0)


def test_integrity_names_what_is_broken() -> None:
    p = pool()
    table = chain(p, (1, 2, 3, 4, 5, 6, 7, 8))
    p._blocks[table[0]].num_holders = 0
    with pytest.raises(EngineError, match=rf"block {table[0]} breaks an invariant: free list"):
        p.check_integrity()
    p = pool()
    table = cached_chain(p, (1, 2, 3, 4, 5, 6, 7, 8))
    p._unpublish(p._blocks[table[0]])
    with pytest.raises(EngineError, match="breaks an invariant"):
        p.check_integrity()
    p = pool()
    table = cached_chain(p, (1, 2, 3, 4, 5, 6, 7, 8))
    p._free.move_to_end(table[0], last=False)
    with pytest.raises(EngineError, match="parent goes first"):
        p.check_integrity()
