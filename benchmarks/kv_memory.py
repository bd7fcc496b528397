"""Paged blocks beside reserving the maximum context: slots, bytes, how many sequences fit.

    python -m benchmarks.kv_memory [--plies 120] [--pool-mib 1024] [--json FILE]

The prompts of a chess and a janggi game by the default template, ply by ply. Slots are counted
from the real scheduler's plans with the prefix cache off, so that sharing is not mistaken for
paging: each request alone through `--answer` tokens (waste a sequence), and as many requests as the
scheduler admits at once into one pool (how many fit; with the cache on as well: what sharing adds).
No model runs for that. Then the paging's own cost: decode steps of 16 sequences on the real model,
their blocks in order and scattered over the pool, interleaved.
"""

import random
import time
from dataclasses import replace

from benchmarks.kit import (
    GAMES,
    Model,
    Row,
    arguments,
    clock_of,
    machine,
    played,
    progress,
    prompt_tokens,
    table,
    write_json,
)
from engine.config import EngineConfig
from engine.layers.kv_cache import bytes_per_token
from engine.limits import Limits
from engine.scheduler import Scheduler
from engine.types import (
    Request,
    SampleSpec,
    SamplingParams,
    SequenceOutput,
    SequenceStep,
    StepOutput,
    StepPlan,
    TokenIds,
)

STREAMS, CONTEXT, STEPS = 16, 512, 8


def waste(config: EngineConfig, limits: Limits, prompt: TokenIds, answer: int) -> list[int]:
    """Slots held and not used, at every step of one request alone."""
    params = SamplingParams(max_tokens=answer, ignore_eos=True)
    steps = run_alone(Scheduler(config, limits), Request("r", prompt, params))
    return [
        len(step.block_table) * limits.block_size - step.start - len(step.tokens) for step in steps
    ]


def run_alone(scheduler: Scheduler, request: Request) -> list[SequenceStep]:
    """Its steps, each answered with token 1: what is drawn does not change what is held."""
    scheduler.add(scheduler.prepare(request, 0.0), 0.0)
    steps = []
    while (plan := scheduler.plan(0.0)) is not None:
        (step,) = plan.sequences
        steps.append(step)
        token = 1 if step.sample is not None else None
        scheduler.commit(plan, StepOutput((SequenceOutput(token=token),), 0.0), 0.0)
        scheduler.check_integrity()
    return steps


def fitting(config: EngineConfig, limits: Limits, prompts: list[TokenIds], answer: int) -> int:
    """How many requests one pool takes at once before the first has to wait.

    The prompts are drawn by lot, again and again. With the prefix cache on, each was there before.
    """
    scheduler = Scheduler(config, limits)
    if config.enable_prefix_caching:
        for prompt in prompts:
            run_alone(scheduler, Request("before", prompt, SamplingParams(max_tokens=1)))
    rng = random.Random(0)
    params = SamplingParams(max_tokens=answer, ignore_eos=True)
    for i in range(config.max_num_seqs):
        request = Request(f"r{i}", rng.choice(prompts), params)
        scheduler.add(scheduler.prepare(request, 0.0), 0.0)
    scheduler.plan(0.0)
    return scheduler.num_running


def paged_rows(model: Model, plies: int, pool_mib: int, answer: int) -> list[Row]:
    per_token = bytes_per_token(model.runner.model.config, model.runner.cache.entries.dtype)
    size = model.config.block_size
    longest = model.runner.max_model_len
    num_blocks = (pool_mib << 20) // (per_token * size)
    limits = replace(Limits.of(model.runner, model.config), num_blocks=num_blocks)
    config = replace(
        model.config,
        max_num_seqs=20_000,
        max_num_batched_tokens=10**9,
        max_num_queued_reqs=20_000,
        enable_prefix_caching=False,
    )
    rows: list[Row] = []
    for game in GAMES:
        progress(f"counting {game}")
        prompts = [prompt_tokens(model.tokenizer, state) for state in played(game, 0, plies)]
        unused = [waste(config, limits, prompt, answer) for prompt in prompts]
        worst = max(max(slots) for slots in unused)
        if worst > size - 1:
            raise SystemExit(f"{worst} slots wasted by one sequence, more than block_size - 1")
        mean = sum(sum(s) for s in unused) / sum(len(s) for s in unused)
        fit = fitting(config, limits, prompts, answer)
        shared = fitting(replace(config, enable_prefix_caching=True), limits, prompts, answer)
        slots = num_blocks * size
        needed = max(map(len, prompts)) + answer
        tight = 1 << (needed - 1).bit_length()  # what one who knew the load would reserve
        rows.append(
            {
                "game": game,
                "prompts": len(prompts),
                "tokens": f"{min(map(len, prompts))}–{max(map(len, prompts))}",
                "wasted slots, worst": worst,
                "mean": mean,
                "mean wasted KiB": mean * per_token / 1024,
                "by reservation KiB": (longest - sum(map(len, prompts)) / len(prompts))
                * per_token
                / 1024,
                "fit, paged": fit,
                f"{longest:,} reserved": slots // longest,
                "times more": fit / (slots // longest),
                f"{tight:,} reserved": slots // tight,
                "fit, paged and shared": shared,
            }
        )
    return rows


def step_of(tables: list[tuple[int, ...]], low: int, high: int, tokens: list[TokenIds]) -> StepPlan:
    return StepPlan(
        0,
        tuple(
            SequenceStep(
                f"s{i}", mine[low:high], low, blocks, SampleSpec(SamplingParams(), position=high)
            )
            for i, (mine, blocks) in enumerate(zip(tokens, tables, strict=True))
        ),
    )


def paging_cost(model: Model, repeats: int, clock: str) -> list[Row]:
    """Seconds of the same decode steps over the two layouts, interleaved; the best of each.

    The context is the pool's zeros: what is in it does not change the work.
    """
    runner, size = model.runner, model.config.block_size
    rng = random.Random(1)
    each = -(-(CONTEXT + STEPS) // size)
    half = STREAMS * each
    order, mixed = list(range(half)), list(range(half, 2 * half))
    rng.shuffle(mixed)
    tables = {
        name: [tuple(blocks[i * each : (i + 1) * each]) for i in range(STREAMS)]
        for name, blocks in (("in order", order), ("scattered", mixed))
    }
    tokens: list[TokenIds] = [
        tuple(rng.randrange(1000, 40_000) for _ in range(CONTEXT + STEPS)) for _ in range(STREAMS)
    ]
    now = clock_of(clock)
    best = dict.fromkeys(tables, float("inf"))
    for turn in range(repeats):
        progress(f"paging, turn {turn + 1} of {repeats}")
        for name, blocks in tables.items():
            began = now()
            for i in range(CONTEXT, CONTEXT + STEPS):
                runner.step(step_of(blocks, i, i + 1, tokens))
            best[name] = min(best[name], now() - began)
    return [
        {
            "blocks": name,
            "streams": STREAMS,
            "context": CONTEXT,
            "tokens/s": STREAMS * STEPS / seconds,
            "of in order": best["in order"] / seconds,
        }
        for name, seconds in best.items()
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--plies", type=int, default=120)
    parser.add_argument("--answer", type=int, default=16, help="tokens decoded after each prompt")
    parser.add_argument("--pool-mib", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    began = time.perf_counter()
    blocks = 2 * STREAMS * -(-(CONTEXT + STEPS) // 16)  # room for both layouts
    model = Model.load(args.model, threads=args.threads, num_gpu_blocks_override=blocks)
    about = machine(args.model, args.clock)
    print(about)
    memory = paged_rows(model, args.plies, args.pool_mib, args.answer)
    print(
        f"\nblock_size {model.config.block_size}, pool {args.pool_mib} MiB, reservation "
        f"{model.runner.max_model_len} tokens, {args.answer} tokens of answer\n{table(memory)}"
    )
    paging = paging_cost(model, args.repeats, args.clock)
    print(f"\n{table(paging)}")
    write_json(args.json, about, {"memory": memory, "paging": paging})
    progress(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
