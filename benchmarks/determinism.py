"""What the same bits every time cost, whether they are the same, and what an int8 KV cache changes.

    python -m benchmarks.determinism [--repeats 40] [--positions 10] [--json FILE]

Cost: the engine has one way of computing, so `deterministic=False` only skips the start-up check;
both are timed in turns, beside a plain torch forward (benchmarks.forward) that promises nothing.
Bits: one scored request, `--repeats` times among random neighbours, in chunks, from a
small pool, counted as distinct lists of log-probability bits (1,000 and more on a small model:
`pytest -m drill tests/engine/test_engine_bits.py`). int8: the same scored positions on the same
weights with both caches, cold, and the bytes of a token.
"""

import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from benchmarks.forward import CACHED, FRESH, Plain, plain_walk, prompts, walk
from benchmarks.kit import (
    GAMES,
    Bench,
    Clock,
    Model,
    Row,
    arguments,
    choice_tokens,
    clock_of,
    machine,
    played,
    progress,
    prompt_tokens,
    table,
    write_json,
)
from engine.layers.kv_cache import bytes_per_token
from engine.model_config import read_config
from engine.selfcheck import is_bit_stable
from engine.types import ChoiceScores, Request, SamplingParams
from games.base import GameState


def cost(model: Model, repeats: int, clock: Clock) -> list[Row]:
    """Seconds of 16 masked-walk moves (87 fresh rows on 380 cached, 4 decode steps) in turns."""
    loose, _ = model.runner_with(deterministic=False)
    runners = {"deterministic": model.runner, "not": loose}
    seconds: dict[str, list[float]] = {name: [] for name in (*runners, "plain torch")}
    with torch.inference_mode():
        plain = Plain(str(model.folder), read_config(model.folder))
        plain.step([t[:CACHED] for t in prompts()])  # the runners' own context is zeros: same work
        for turn in range(repeats):
            for name, runner in runners.items():
                seconds[name].append(sum(walk(runner, clock)))
            seconds["plain torch"].append(sum(plain_walk(plain, clock)))
            progress(f"cost, turn {turn + 1} of {repeats}")
        began = clock()
        is_stable = is_bit_stable(model.runner)
        check = clock() - began
    best = {name: min(values) for name, values in seconds.items()}
    return [
        {
            "way": name,
            "s": best[name],
            "of plain torch": best[name] / best["plain torch"],
            "start-up check s": check if name == "deterministic" else None,
            "label": {"deterministic": str(is_stable and model.runner.deterministic)}.get(name),
        }
        for name in best
    ]


def scored(model: Model, state: GameState, name: str) -> Request:
    prompt = prompt_tokens(model.tokenizer, state)
    return Request(name, prompt, choices=choice_tokens(model.tokenizer, state), score=True)


def neighbour(rng: random.Random, request: Request, i: int) -> Request:
    """A free decode, a masked walk or a scoring; some begin as the request does."""
    head = request.prompt[: rng.choice([0, 16, 60])]
    prompt = head + tuple(rng.randrange(1000, 40_000) for _ in range(rng.randint(4, 40)))
    params = SamplingParams(rng.choice([0.0, 1.0]), max_tokens=rng.randint(1, 4), seed=i)
    kind = rng.randrange(3)
    choices = request.choices if kind else None
    return Request(f"n{i}", prompt, params, choices, score=kind == 2)


def repeats_under_load(model: Model, state: GameState, repeats: int) -> Row:
    """Distinct bits of one request's log-probabilities."""
    request, rng = scored(model, state, "mine"), random.Random(0)
    needed = -(-len(request.prompt) // model.config.block_size)
    runner, config = model.runner_with(num_gpu_blocks_override=needed + 8)
    loads: list[int] = []
    cached: list[int] = []
    bits: set[tuple[str, ...]] = set()
    preemptions = 0
    while len(loads) < repeats:
        rows = rng.choice([96, 160, 2048])
        bench = Bench(runner, replace(config, max_num_batched_tokens=rows))
        for _ in range(min(8, repeats - len(loads))):
            load = [neighbour(rng, request, i) for i in range(rng.randrange(6))]
            mixed = [*load, request]
            rng.shuffle(mixed)
            scores = bench.run(*mixed).scores("mine")
            bits.add(tuple(value.hex() for value in scores.logprobs))
            loads.append(len(load))
            cached.append(scores.stats.cached_tokens)
            progress(f"repeat {len(loads)} of {repeats}: {len(bits)} distinct")
        preemptions += bench.scheduler.metrics.num_preemptions
    return {
        "repeats": repeats,
        "choices": len(request.choices or ()),
        "prompt": len(request.prompt),
        "its blocks, of the pool's": f"{needed} of {needed + 8}",
        "neighbours": f"{min(loads)}–{max(loads)}",
        "cached tokens": f"{min(cached)}–{max(cached)}",
        "preemptions": preemptions,
        "distinct lists of bits": len(bits),
    }


def divergence(exact: ChoiceScores, other: ChoiceScores) -> float:
    """KL of the distributions over the legal moves, in nats."""
    pairs = zip(exact.probabilities, other.probabilities, strict=True)
    return sum(p * math.log(p / q) for p, q in pairs if p > 0)


def compared(game: str, exact: Sequence[ChoiceScores], other: Sequence[ChoiceScores]) -> Row:
    pairs = list(zip(exact, other, strict=True))
    widest = [
        max(abs(p - q) for p, q in zip(a.probabilities, b.probabilities, strict=True))
        for a, b in pairs
    ]
    divergences = [divergence(a, b) for a, b in pairs]
    return {
        "game": game,
        "positions": len(pairs),
        "best move kept": sum(a.argmax == b.argmax for a, b in pairs),
        "KL p50 nats": statistics.median(divergences),
        "most": max(divergences),
        "probability off by, p50": statistics.median(widest),
        "at most": max(widest),
        "legal mass off by, at most": max(abs(a.legal_mass - b.legal_mass) for a, b in pairs),
    }


def int8(model: Model, count: int) -> list[Row]:
    runner, config = model.runner_with(kv_cache_dtype="int8", num_gpu_blocks_override=80)
    exact, small = model.bench(enable_prefix_caching=False), Bench(runner, config)
    rows = []
    for game in GAMES:
        states = [s for s in played(game, 5, 80) if len(s.legal_moves()) > 1]
        found: tuple[list[ChoiceScores], list[ChoiceScores]] = ([], [])
        for state in states[1 :: max(1, len(states) // count)][:count]:
            request = scored(model, state, "r")
            for bench, scores in zip((exact, small), found, strict=True):
                scores.append(bench.run(request).scores("r"))
            progress(f"int8, {game} {len(found[0])} of {count}")
        rows.append(compared(game, *found))
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--positions", type=int, default=10, help="of each game, for int8")
    parser.add_argument("--turns", type=int, default=2)
    args = parser.parse_args()
    began = time.perf_counter()
    model = Model.load(
        args.model, threads=args.threads, max_model_len=1024, num_gpu_blocks_override=640
    )
    about = machine(args.model, args.clock)
    print(about)
    cost_rows = cost(model, args.turns, clock_of(args.clock))
    print(f"\n16 sequences, {FRESH} fresh rows on {CACHED}, 4 decode steps\n{table(cost_rows)}")
    bits = repeats_under_load(model, played("chess", 0, 6)[-1], args.repeats)
    print(f"\n{table([bits])}")
    sizes = [bytes_per_token(model.runner.model.config, t) for t in (torch.float32, torch.int8)]
    quantised = int8(model, args.positions)
    print(
        f"\nint8 v float32 KV: {sizes[1]:,} v {sizes[0]:,} bytes a token "
        f"({sizes[0] / sizes[1]:.2f} times as many tokens)\n{table(quantised)}"
    )
    write_json(args.json, about, {"cost": cost_rows, "bits": [bits], "int8": quantised})
    progress(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
