"""Memory or places are short: who gives way to whom."""

import pytest

from engine.scheduler import MAX_CHEAP_PREEMPTIONS

from .drive import Drive
from .fake_runner import FakeRunner
from .requests import config, expected, free, prompt, rows


@pytest.mark.parametrize(
    ("num", "length", "size", "share"), [(16, 25, 4, 4), (24, 60, 4, 10), (24, 60, 2, 10)]
)
def test_a_quarter_of_the_memory_is_enough_with_few_preemptions(
    num: int, length: int, size: int, share: int
) -> None:
    """EF18: or a tenth; all finish, preemptions are bounded, the recomputed share is known."""
    requests = [free(f"r{i}", prompt(i, 4 + (i * 5) % 9), length) for i in range(num)]
    slots = sum(len(request.prompt) + length - 1 for request in requests)
    runner = FakeRunner(num_blocks=slots // size // share, block_size=size)
    drive = Drive(runner, config(max_num_seqs=num))
    drive.run(*requests)
    stats = [drive.completion(r.request_id).stats for r in requests]
    assert sum(s.num_preemptions for s in stats) == drive.scheduler.metrics.num_preemptions > 0
    assert max(s.num_preemptions for s in stats) <= MAX_CHEAP_PREEMPTIONS
    computed = sum(s.computed_tokens for s in stats)
    assert computed == drive.scheduler.metrics.computed_tokens
    assert computed / slots < 1.6
    for request in requests:
        assert drive.completion(request.request_id).tokens == expected(drive, request)


def test_the_first_to_come_is_never_preempted() -> None:
    drive = Drive(FakeRunner(num_blocks=9), config(max_num_seqs=6))
    requests = [free(f"r{i}", prompt(i, 5), 24) for i in range(6)]
    drive.run(*requests)
    assert drive.completion("r0").stats.num_preemptions == 0
    ends = [drive.completion(r.request_id).stats.times.e2e for r in requests]
    assert ends == sorted(ends)


def test_the_victim_is_the_one_with_least_work_to_lose() -> None:
    drive = Drive(FakeRunner(num_blocks=13), config(max_num_seqs=3, enable_prefix_caching=False))
    drive.add(free("old", prompt(1, 16), 20), free("small", prompt(3, 5), 20))
    drive.add(free("big", prompt(2, 17), 20))
    while drive.scheduler.metrics.num_preemptions == 0:
        drive.step()
    assert [s.request_id for s in drive.scheduler._waiting] == ["small"]


def test_a_higher_priority_starts_first_and_ahead_of_running_ones() -> None:
    """EF20: the batch is full; the policy promises both."""
    drive = Drive(config=config(max_num_seqs=2, scheduling_policy="priority"))
    drive.add(
        free("low0", prompt(1, 6), 20, priority=5), free("low1", prompt(2, 6), 20, priority=4)
    )
    drive.step()
    drive.add(free("low2", prompt(3, 6), 20, priority=5))
    drive.add(free("high", prompt(4, 6), 3, priority=0), free("mid", prompt(5, 6), 3, priority=4))
    drive.step()
    assert set(rows(drive.runner.plans[-1])) == {"high", "low1"}, "the lowest class gave way"
    drive.run()
    times = {name: drive.completion(name).stats.times for name in ("high", "mid", "low0", "low1")}
    assert times["high"].queue == 0
    assert drive.completion("low1").stats.num_preemptions == 0, "same class as mid: not preempted"
    assert drive.completion("low0").stats.num_preemptions == 1
    assert times["mid"].e2e < times["low0"].e2e


def test_a_higher_priority_takes_blocks_from_lower_ones() -> None:
    """EF20: memory, not places, is short."""
    drive = Drive(FakeRunner(num_blocks=10), config(scheduling_policy="priority"))
    drive.add(
        free("low0", prompt(1, 16), 8, priority=1), free("low1", prompt(2, 16), 4, priority=1)
    )
    drive.step()
    drive.add(free("high", prompt(3, 20), 4))
    drive.step()
    assert "high" in rows(drive.runner.plans[-1])
    drive.run()
    assert drive.completion("high").stats.times.queue == 0


def test_no_one_is_preempted_for_nothing_or_by_a_lower_class() -> None:
    drive = Drive(FakeRunner(num_blocks=10), config(scheduling_policy="priority"))
    drive.add(free("high", prompt(1, 24), 12), free("low", prompt(2, 6), 2, priority=9))
    drive.step()
    drive.add(free("mid", prompt(3, 24), 4, priority=5))
    drive.step()
    assert drive.scheduler.metrics.num_preemptions == 0, "preempting low would not let mid in"
    drive.run()
    assert drive.completion("high").stats.num_preemptions == 0


def test_fcfs_ignores_priorities() -> None:
    drive = Drive(config=config(max_num_seqs=1))
    drive.run(free("a", prompt(1, 4), priority=9), free("b", prompt(2, 4), priority=0))
    assert drive.completion("a").stats.times.e2e < drive.completion("b").stats.times.e2e
