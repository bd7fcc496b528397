"""Whose turn it is and whose weights are in memory, with a clock that the test moves."""

import random
import threading
from dataclasses import dataclass, field

import pytest

from engine.pool import Pool, PoolError, Seat, WeightsLost
from engine.turns import SWAP_SHARE
from engine.types import RequestAborted


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeWeights:
    """Ten bytes each; loading takes time of the clock."""

    clock: Clock
    load_s: float = 1.0
    fails: bool = False
    is_here: bool = False
    num_loads: int = 0

    def offload(self) -> None:
        assert self.is_here, "it was away already"
        self.is_here = False

    def reload(self) -> None:
        assert not self.is_here, "it was here already"
        if self.fails:
            raise OSError("the file is gone")
        self.clock.now += self.load_s
        self.is_here = True
        self.num_loads += 1

    def load(self) -> "FakeWeights":
        self.reload()
        return self


@dataclass
class World:
    """Fake models of 10 bytes in one pool, driven by hand."""

    limit: int | None = None
    max_wave_s: float = 60.0
    load_s: float = 1.0
    clock: Clock = field(default_factory=Clock)
    seats: dict[str, Seat] = field(default_factory=dict)
    weights: dict[str, FakeWeights] = field(default_factory=dict)
    woken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pool = Pool(self.limit, max_wave_s=self.max_wave_s, clock=self.clock)

    def add(self, *names: str) -> "World":
        for name in names:
            seat = self.pool.join(name, 10)
            weights = FakeWeights(self.clock, self.load_s)
            self.seats[name], self.weights[name] = seat, weights
            self.clock.now += 1
            seat.enter(weights.load)
            seat.wake = lambda name=name: self.woken.append(name)  # type: ignore[misc]
            self.check()
        return self

    def step(self, name: str, seconds: float = 1.0, *, served: int = 1, more: bool = True) -> bool:
        """Ask; compute for so long and give back if it is this model's turn."""
        seat = self.seats[name]
        if seat.ask():
            return False
        seat.settle()
        assert self.weights[name].is_here
        self.check()
        self.clock.now += seconds
        seat.give(served, more=more)
        return True

    def check(self) -> None:
        here = {name for name, weights in self.weights.items() if weights.is_here}
        assert here == set(self.pool.resident)
        assert self.limit is None or 10 * len(here) <= self.limit


def test_one_computes_at_a_time_and_the_next_is_woken() -> None:
    world = World().add("a", "b")
    assert world.seats["a"].ask() == 0.0
    assert world.seats["b"].ask() > 0
    assert world.woken == []
    world.clock.now += 1
    world.seats["a"].give(more=True)
    assert world.woken == ["b"]
    assert world.seats["a"].ask() > 0, "b has computed less"
    assert world.seats["b"].ask() == 0.0


def test_models_in_memory_get_equal_seconds_not_equal_steps() -> None:
    world = World().add("slow", "quick")
    used = {"slow": 0.0, "quick": 0.0}
    for _ in range(3000):
        for name, seconds in (("slow", 1.0), ("quick", 0.1)):
            used[name] += seconds * world.step(name, seconds)
            assert abs(used["slow"] - used["quick"]) <= 1.1
    assert min(used.values()) > 250


def test_idle_time_is_no_credit() -> None:
    world = World().add("a", "b")
    for _ in range(100):
        assert world.step("a")
    world.seats["b"].ask()  # idle until now
    turns = [name for _ in range(20) for name in ("a", "b") if world.step(name)]
    assert abs(turns.count("a") - turns.count("b")) <= 1


def test_who_gives_up_waiting_holds_nobody_up() -> None:
    world = World().add("a", "b")
    assert world.seats["a"].ask() == 0.0
    assert world.seats["b"].ask() > 0
    world.clock.now += 1
    world.seats["a"].give(more=True)
    world.seats["b"].withdraw()
    assert world.woken == ["b", "a"]
    assert world.step("a")


def test_everybody_is_served_before_a_swap() -> None:
    world = World(limit=10).add("a", "b")
    assert world.pool.resident == ("b",)
    assert world.seats["a"].ask() > 0, "an answer of b may bring work for b within moments"
    for _ in range(31):
        assert world.step("b")
        assert not world.step("a")
    assert world.step("b", more=False)
    assert world.woken[-1] == "a"
    assert not world.step("a")
    world.clock.now += 0.3
    assert world.step("a")
    assert world.pool.resident == ("a",)
    (swap,) = world.pool.swaps
    assert (swap.out, swap.into, swap.served) == (("b",), "a", 32)
    assert swap.seconds == pytest.approx(1.0)


def test_a_swap_that_is_quick_is_not_waited_for_long() -> None:
    world = World(limit=10, load_s=0.001).add("a", "b")
    world.step("b", more=False)
    assert 0 < world.seats["a"].ask() <= 0.02


@pytest.mark.parametrize(("load_s", "waves"), [(1.0, 60.0), (10.0, SWAP_SHARE * 10.0)])
def test_endless_work_is_cut_after_a_fair_time(load_s: float, waves: float) -> None:
    world = World(limit=10, load_s=load_s).add("a", "b")
    turns: list[tuple[str, float]] = []
    while len(world.pool.swaps) < 4:
        for name in ("a", "b"):
            if world.step(name):
                turns.append((name, world.clock.now))
    (first, second, third, _) = world.pool.swaps
    assert [s.into for s in (first, second, third)] == ["a", "b", "a"]
    assert [s.served for s in (second, third)] == [waves, waves], "steps of one second"


def test_three_models_that_never_rest_take_turns() -> None:
    world = World(limit=20, max_wave_s=5.0).add("a", "b", "c")
    served = dict.fromkeys("abc", 0)
    last = dict.fromkeys("abc", world.clock.now)
    for _ in range(5000):
        for name in "abc":
            if world.step(name):
                served[name] += 1
                assert world.clock.now - last[name] < 2 * (SWAP_SHARE + 3)
                last[name] = world.clock.now
    spent = sum(swap.seconds for swap in world.pool.swaps)
    assert spent / (spent + sum(served.values())) <= 1 / (SWAP_SHARE + 1) + 0.01
    assert min(served.values()) > 0.8 * max(served.values())


def test_the_idle_leave_before_the_busy_and_the_longest_idle_first() -> None:
    world = World(limit=30).add("a", "b", "c")
    world.step("a", more=False)
    world.step("c", more=False)
    world.step("b", more=False)
    world.add("d")
    assert world.pool.resident == ("b", "c", "d")
    assert world.seats["d"].ask() == 0.0
    assert world.seats["c"].ask() > 0
    assert world.seats["a"].ask() > 0
    world.clock.now += 61
    world.seats["d"].give()
    assert world.step("a")
    assert world.pool.resident == ("a", "c", "d"), "c was used before b, but has work"


def test_a_model_that_never_fits_is_refused_at_once() -> None:
    pool = Pool(9)
    with pytest.raises(PoolError, match="weights_bytes: 9 is less than the weights of big alone"):
        pool.join("big", 10)


def test_a_failed_load_takes_no_room_and_stops_nobody() -> None:
    world = World(limit=10).add("a", "b")
    world.weights["a"].fails = True
    world.clock.now += 1
    with pytest.raises(WeightsLost, match="a could not be loaded again: the file is gone"):
        world.step("a")
    world.seats["a"].give()
    world.check()
    assert not world.pool.resident
    world.clock.now += 1
    assert world.step("b")
    assert world.pool.resident == ("b",)
    assert world.weights["b"].num_loads == 2


def test_a_first_load_that_fails_leaves_the_turn_to_others() -> None:
    world = World(limit=10).add("a")
    broken = FakeWeights(world.clock, fails=True)
    seat = world.pool.join("broken", 10)
    with pytest.raises(OSError, match="gone"):
        seat.enter(broken.load)
    seat.leave()
    world.clock.now += 1
    assert world.step("a")


def test_the_turn_given_back_without_coming_in_moves_nobody() -> None:
    world = World(limit=10).add("a", "b")
    world.clock.now += 1
    assert world.seats["a"].ask() == 0.0
    world.seats["a"].give()
    world.check()
    assert world.pool.resident == ("b",)
    assert world.step("b")


def test_who_leaves_makes_room() -> None:
    world = World(limit=10).add("a", "b")
    world.weights.pop("b").offload()
    world.seats["b"].leave()
    world.seats["b"].leave()
    world.clock.now += 1
    assert world.step("a")
    assert world.pool.swaps[0].out == ()


def test_nobody_waits_for_room_in_a_closed_pool() -> None:
    world = World(limit=10).add("a")
    assert world.seats["a"].ask() == 0.0
    ended: list[str] = []

    def late() -> None:
        seat = world.pool.join("b", 10)
        try:
            seat.enter(FakeWeights(world.clock).load)
        except RequestAborted:
            ended.append("b")

    thread = threading.Thread(target=late)
    thread.start()
    world.pool.close()
    thread.join(10)
    assert ended == ["b"]
    world.seats["a"].give()


@pytest.mark.parametrize("seed", range(40))
def test_any_load_is_served_to_its_end(seed: int) -> None:
    """Work comes at random, ends at random, loads fail never: nothing is lost and nothing stuck."""
    rng = random.Random(seed)
    names = "abcdef"[: rng.randint(1, 6)]
    limit = 10 * rng.randint(1, len(names))
    world = World(limit, max_wave_s=rng.choice([0.5, 5.0]), load_s=rng.choice([0.0, 0.2, 2.0]))
    world.add(*names)
    work = dict.fromkeys(names, 0)
    num_asked = num_served = num_rounds = 0
    while num_asked < 300 or any(work.values()):
        num_rounds += 1
        assert num_rounds < 20_000, "stuck"
        name = rng.choice(names)
        if num_asked < 300:
            more = rng.randint(0, 3)
            work[name] += more
            num_asked += more
        if not work[name]:
            world.seats[name].withdraw()
        elif world.step(name, rng.random(), more=work[name] > 1):
            work[name] -= 1
            num_served += 1
        world.clock.now += rng.random() / 20
    assert num_served == num_asked
    assert sum(swap.served for swap in world.pool.swaps) <= num_served
    assert sum(weights.num_loads for weights in world.weights.values()) == len(
        world.pool.swaps
    ) + len(names)


def test_threads_never_compute_two_at_once_and_all_end() -> None:
    pool = Pool(20, max_wave_s=0.01)
    clock, inside, most = Clock(), [0], [0]

    def work(name: str, num_steps: int) -> None:
        came = threading.Event()
        seat = pool.join(name, 10)
        seat.enter(FakeWeights(clock, 0.0).load)
        seat.wake = came.set
        for i in range(num_steps):
            while pause := seat.ask():
                came.wait(pause)
                came.clear()
            seat.settle()
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            inside[0] -= 1
            seat.give(1, more=i + 1 < num_steps)

    threads = [threading.Thread(target=work, args=(name, 200)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert most == [1]
