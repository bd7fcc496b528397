"""Two engines that take turns beside two that step whenever they like, on the same cores.

    python -m benchmarks.pool [--streams 16] [--turns 3] [--threads N] [--json FILE]

Two engines on the same model, each with its own weights and pool, answer the same load at the same
time: random prompts of 64 tokens, 16 tokens of output, the prefix cache off. Once their seats are
in one pool (turns), once each has a pool of its own (no turns); in alternation, the median turn is
shown. Context switches and CPU seconds are the process's, from getrusage: what waiting at OpenMP's
barriers costs, which wall time alone does not tell from other work on the machine.
"""

import random
import resource
import time
from dataclasses import dataclass

from benchmarks.kit import Row, arguments, machine, progress, table, write_json
from engine.config import EngineConfig
from engine.engine import Engine
from engine.pool import Pool
from engine.types import Completion, Request, SamplingParams

PROMPT, OUTPUT = 64, 16


@dataclass(frozen=True, slots=True)
class Turn:
    wall: float
    cpu: float
    given_up: int  # voluntary context switches: waits
    taken: int  # involuntary ones
    tokens: int


def load(seed: int, streams: int) -> list[Request]:
    rng = random.Random(seed)
    params = SamplingParams(max_tokens=OUTPUT, ignore_eos=True)
    return [
        Request(f"r{i}", tuple(rng.randrange(1000, 40_000) for _ in range(PROMPT)), params)
        for i in range(streams)
    ]


def measure(engines: tuple[Engine, Engine], streams: int) -> Turn:
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    futures = [engines[i].submit(r) for r in load(1, streams) for i in (0, 1)]
    tokens = 0
    for future in futures:
        done = future.result()
        assert isinstance(done, Completion)
        tokens += len(done.tokens)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    return Turn(
        wall,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        after.ru_nvcsw - before.ru_nvcsw,
        after.ru_nivcsw - before.ru_nivcsw,
        tokens,
    )


def row(name: str, turns: list[Turn]) -> Row:
    turn = sorted(turns, key=lambda t: t.wall)[len(turns) // 2]
    return {
        "engines": name,
        "s": turn.wall,
        "CPU s": turn.cpu,
        "tokens/s": turn.tokens / turn.wall,
        "waits": turn.given_up,
        "taken off": turn.taken,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--streams", type=int, default=16, help="of each engine")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    if args.threads:
        import torch

        torch.set_num_threads(args.threads)
    config = EngineConfig(
        model=args.model, num_gpu_blocks_override=args.streams * 8, enable_prefix_caching=False
    )
    shared = Pool()
    taking_turns = (Engine.load(config, shared), Engine.load(config, shared))
    free = (Engine.load(config), Engine.load(config))
    found: dict[str, list[Turn]] = {"in turns": [], "at the same time": []}
    measure(taking_turns, args.streams)
    for number in range(args.turns):
        for name, engines in (("in turns", taking_turns), ("at the same time", free)):
            found[name].append(measure(engines, args.streams))
            progress(f"turn {number + 1}, {name}: {found[name][-1].wall:.1f} s")
    for engine in (*taking_turns, *free):
        engine.close()
    about = machine(args.model, "wall")
    rows = [row(name, turns) for name, turns in found.items()]
    print(about)
    print(f"\n2 × {args.streams} streams, {PROMPT} + {OUTPUT} tokens\n{table(rows)}")
    write_json(args.json, about, {"pool": rows})


if __name__ == "__main__":
    main()
