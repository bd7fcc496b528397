"""Random arrivals, lengths, aborts, priorities and tiny pools: nothing leaks, all is answered.

Every request ends with exactly the tokens (or scores) it gets alone, is refused, or was aborted;
integrity holds after every step. Concerns EF02, EF03, EF07, EF08, EF17, EF18, EF31 together.
"""

import random
from dataclasses import replace

import pytest

from engine.config import EngineConfig
from engine.scheduler import MAX_CHEAP_PREEMPTIONS
from engine.types import (
    Completion,
    EngineError,
    EngineOverloaded,
    Request,
    RequestAborted,
    RequestTooLarge,
    SamplingParams,
    TokenIds,
)

from .drive import Drive
from .fake_runner import FakeRunner, answer_alone, greedy_alone, scores_alone

VOCAB = 12


def tokens(rng: random.Random, low: int, high: int) -> TokenIds:
    return tuple(rng.randrange(1, VOCAB) for _ in range(rng.randint(low, high)))


def random_drive(rng: random.Random) -> Drive:
    """A small pool of small blocks under random settings."""
    places = rng.randint(1, 8)
    config = EngineConfig(
        model="fake",
        max_num_seqs=places,
        max_num_batched_tokens=rng.choice([places, places + 3, 24, 64]) + 1,
        max_num_trie_tokens=rng.choice([6, 40]),
        scheduling_policy=rng.choice(["fcfs", "priority"]),
        batching=rng.choice(["continuous", "continuous", "continuous", "static", "serial"]),
        enable_prefix_caching=rng.random() < 0.85,
        max_num_queued_reqs=rng.choice([3, 30]),
    )
    runner = FakeRunner(
        num_blocks=rng.randint(6, 40),
        block_size=rng.choice([1, 2, 4, 8]),
        max_model_len=rng.choice([24, 48]),
        vocab_size=VOCAB,
    )
    if rng.random() < 0.15:
        config = replace(config, enable_chunked_prefill=False, max_num_batched_tokens=64)
    drive = Drive(runner, config)
    if rng.random() < 0.3:
        drive = Drive(runner, config, hash_function=lambda parent, tokens: 7)
    return drive


def random_request(rng: random.Random, i: int, prefixes: list[TokenIds]) -> Request:
    prefix = rng.choice(prefixes)
    prompt = prefix[: rng.randint(0, len(prefix))] + tokens(rng, 1, 12)
    kind = rng.choice(["free", "free", "walk", "score"])
    choices = None
    if kind != "free":
        choices = tuple({tokens(rng, 1, 4) for _ in range(rng.randint(1, 9))})
    sampling = SamplingParams(
        max_tokens=rng.randint(1, 20),
        seed=rng.randrange(100),
        temperature=rng.choice([0.0, 1.0]) if kind == "free" else 0.0,
    )
    return Request(
        f"r{i}",
        prompt,
        sampling,
        choices,
        score=kind == "score",
        priority=rng.randint(0, 2),
        timeout_s=rng.choice([None, None, None, 15.0]),
        cache_salt=rng.choice(["", "", "x"]),
    )


def check_result(drive: Drive, request: Request, was_aborted: bool) -> None:
    result = drive.results[request.request_id]
    if isinstance(result, EngineError):
        assert isinstance(result, RequestAborted)
        assert was_aborted or request.timeout_s is not None
        return
    if drive.config.scheduling_policy == "fcfs":
        assert result.stats.num_preemptions <= MAX_CHEAP_PREEMPTIONS
    if isinstance(result, Completion):
        max_len = drive.scheduler.limits.max_model_len
        assert result.tokens == answer_alone(request, VOCAB, max_len)
        if request.choices is not None:
            assert result.choice is not None
            assert request.choices[result.choice] == result.tokens
    else:
        wanted = scores_alone(request, VOCAB)
        assert result.logprobs == pytest.approx(wanted, abs=1e-9)
        assert wanted[result.argmax] == pytest.approx(max(wanted), abs=1e-9)
        assert result.greedy == greedy_alone(request, VOCAB)


def play(seed: int, num_steps: int) -> int:
    """One random history of so many steps and its end; how many requests were answered."""
    rng = random.Random(seed)
    drive = random_drive(rng)
    prefixes = [tokens(rng, 8, 30) for _ in range(3)]
    requests: dict[str, Request] = {}
    aborted: set[str] = set()
    rate = rng.choice([0.2, 0.6, 1.5])
    for step in range(num_steps):
        while rng.random() < rate / (1 + rate):
            request = random_request(rng, len(requests), prefixes)
            requests[request.request_id] = request
            try:
                drive.add(request)
            except (RequestTooLarge, EngineOverloaded) as error:
                drive.results[request.request_id] = error
                del requests[request.request_id]
                requests[f"refused-{len(requests)}-{step}"] = request
        if rng.random() < 0.08 and drive.scheduler.request_ids:
            victim = rng.choice(drive.scheduler.request_ids)
            aborted.add(victim)
            drive.abort(victim)
        drive.take(drive.scheduler.expire(drive.now))
        if rng.random() < 0.05:
            abort_between(drive, rng, aborted)
        drive.step()
    drive.run()
    answered = {i: r for i, r in requests.items() if not i.startswith("refused")}
    for request_id, request in answered.items():
        check_result(drive, request, request_id in aborted)
    usage = drive.scheduler.check_integrity()
    assert usage.used == 0
    return len(answered)


def abort_between(drive: Drive, rng: random.Random, aborted: set[str]) -> None:
    """Abort one of the sequences of a plan while that step runs."""
    plan = drive.plan()
    if plan is None:
        return
    output = drive.runner.step(plan)
    victim = rng.choice(plan.sequences).request_id
    aborted.add(victim)
    drive.abort(victim)
    drive.now += 1
    drive.take(drive.scheduler.commit(plan, output, drive.now))
    drive.scheduler.check_integrity()
    drive.check_cached()


@pytest.mark.parametrize("seed", range(25))
def test_random_histories(seed: int) -> None:
    assert play(seed, 80) > 0


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(1000, 1250))
def test_random_histories_long(seed: int) -> None:
    assert play(seed, 400) > 0


def test_errors_are_one_family() -> None:
    assert issubclass(RequestTooLarge, EngineError)
    assert issubclass(EngineOverloaded, EngineError)
