"""Continuous, static and serial batching of one mixed-length load, and 1 stream beside 16.

    python -m benchmarks.batching [--requests 32] [--longest 96] [--json FILE]

The load is decode-heavy: random prompts of 20 … 60 tokens, outputs of 8 … `--longest`, all there
at the start, 16 places, end tokens ignored. The three ways run in turns on the same weights and
pool, the prefix cache off. TTFT counts from the start, so it contains the queue. Then decode alone:
tokens/s of 1, 4 and 16 streams whose prompts are computed already. Times are of the scheduler and
the steps, without the engine's thread.
"""

import random
import time

from benchmarks.kit import (
    Clock,
    Model,
    Row,
    Work,
    arguments,
    clock_of,
    machine,
    progress,
    quantile,
    table,
    write_json,
)
from engine.types import Request, SamplingParams, StepPlan, TokenIds

WAYS = ("continuous", "static", "serial")
PLACES, SIZE = 16, 16


def tokens(rng: random.Random, count: int) -> TokenIds:
    return tuple(rng.randrange(1000, 40_000) for _ in range(count))


def load(count: int, longest: int, seed: int) -> list[Request]:
    rng = random.Random(seed)
    return [
        Request(
            f"r{i}",
            tokens(rng, rng.randint(20, 60)),
            SamplingParams(max_tokens=rng.randint(8, longest), ignore_eos=True),
        )
        for i in range(count)
    ]


def run(model: Model, way: str, requests: list[Request], clock: Clock) -> Work:
    bench = model.bench(clock, batching=way, max_num_seqs=PLACES, enable_prefix_caching=False)
    return bench.run(*requests)


def three_ways(model: Model, requests: list[Request], repeats: int, clock: Clock) -> list[Row]:
    """The run with the median time of each way."""
    found: dict[str, list[Work]] = {way: [] for way in WAYS}
    for turn in range(repeats):
        for way in WAYS:
            found[way].append(run(model, way, requests, clock))
            progress(f"turn {turn + 1}, {way}: {found[way][-1].seconds:.1f} s")
    middle = {
        way: sorted(works, key=lambda w: w.seconds)[len(works) // 2] for way, works in found.items()
    }
    rows: list[Row] = []
    for way, work in middle.items():
        stats = [work.completion(r.request_id).stats for r in requests]
        ttft = [s.times.ttft for s in stats]
        generated = sum(s.completion_tokens for s in stats)
        rows.append(
            {
                "batching": way,
                "output tokens": generated,
                "passes": work.passes,
                "rows a pass": work.rows / work.passes,
                "s": work.seconds,
                "tokens/s": generated / work.seconds,
                "of serial": middle["serial"].seconds / work.seconds,
                "TTFT p50 s": quantile(ttft, 0.5),
                "p95 s": quantile(ttft, 0.95),
            }
        )
    return rows


def decode_only(model: Model, steps: int, repeats: int, clock: Clock) -> list[Row]:
    """Steps in which every stream has one row; the best of the turns, interleaved."""
    best: dict[int, float] = {1: float("inf"), 4: float("inf"), 16: float("inf")}
    rng = random.Random(1)
    for turn in range(repeats):
        for streams in best:
            params = SamplingParams(max_tokens=steps + 1, ignore_eos=True)
            requests = [Request(f"r{i}", tokens(rng, 40), params) for i in range(streams)]
            ends: list[float] = []

            def watch(plan: StepPlan, ended: float, ends: list[float] = ends) -> None:
                ends.append(ended)

            bench = model.bench(clock, max_num_seqs=PLACES, enable_prefix_caching=False)
            bench.run(*requests, watch=watch)
            best[streams] = min(best[streams], (ends[-1] - ends[0]) / (len(ends) - 1))
            progress(f"decode, turn {turn + 1}, {streams} streams: {best[streams]:.3f} s a step")
    return [
        {
            "streams": streams,
            "ms a step": 1000 * seconds,
            "tokens/s": streams / seconds,
            "of one stream": streams * best[1] / seconds,
        }
        for streams, seconds in best.items()
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--longest", type=int, default=96, help="tokens of the longest output")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12, help="decode steps of each turn")
    args = parser.parse_args()
    began = time.perf_counter()
    clock = clock_of(args.clock)
    blocks = PLACES * -(-(60 + args.longest) // SIZE)
    model = Model.load(args.model, threads=args.threads, num_gpu_blocks_override=blocks)
    about = machine(args.model, args.clock)
    print(about)
    decode = decode_only(model, args.steps, max(3, args.repeats), clock)
    print(f"\ndecode alone, contexts of 40 … {40 + args.steps} tokens\n{table(decode)}")
    ways = three_ways(model, load(args.requests, args.longest, 0), args.repeats, clock)
    print(
        f"\n{args.requests} requests at once, prompts 20 … 60, outputs 8 … {args.longest}, "
        f"{PLACES} places\n{table(ways)}"
    )
    write_json(args.json, about, {"decode": decode, "batching": ways})
    progress(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
