"""The prefix cache on and off over games by the default template, replayed ply by ply.

    python -m benchmarks.prefix_cache [--games 3] [--plies 80] [--timed 6] [--json FILE]

Each ply is one scored request over the legal moves; `--games` games of each kind go side by side, a
ply each a round, as in a tournament of one model. Rows are counted on the real scheduler with no
model behind it (what is computed depends on tokens alone); then `--timed` plies of one game of each
kind run on the model, cache on and then off, for seconds.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

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
from engine.limits import Limits
from engine.scheduler import Scheduler
from engine.tokenizer import Tokenizer
from engine.types import ChoiceScores, Request, SequenceOutput, StepOutput
from games.base import GameState

BANDS = ((0, 1), (1, 2), (2, 10), (10, 20), (20, 40), (40, 60), (60, 1000))


def requests_of(tokenizer: Tokenizer, name: str, states: Sequence[GameState]) -> list[Request]:
    return [
        Request(
            f"{name}.{ply}",
            prompt_tokens(tokenizer, state),
            choices=choice_tokens(tokenizer, state),
            score=True,
        )
        for ply, state in enumerate(states)
    ]


def count(scheduler: Scheduler, request: Request) -> ChoiceScores:
    """Its statistics, with no model: every edge is given the same probability."""
    scheduler.add(scheduler.prepare(request, 0.0), 0.0)
    while (plan := scheduler.plan(0.0)) is not None:
        (step,) = plan.sequences
        edges = None if step.trie is None else (-1.0,) * len(step.trie.edges)
        output = StepOutput((SequenceOutput(edge_logprobs=edges),), 0.0)
        for update in scheduler.commit(plan, output, 0.0):
            if isinstance(update.result, ChoiceScores):
                return update.result
    raise SystemExit(f"{request.request_id} did not end")


def counted(model: Model, games: Sequence[list[Request]], *, cache: bool) -> list[list[Row]]:
    """Prompt, cached and computed tokens of each ply of each game, games going side by side."""
    limits = replace(Limits.of(model.runner, model.config), num_blocks=8192)
    config = replace(model.config, enable_prefix_caching=cache)
    scheduler = Scheduler(config, limits)
    found: list[list[Row]] = [[] for _ in games]
    for ply in range(max(map(len, games))):
        for rows, requests in zip(found, games, strict=True):
            if ply < len(requests):
                stats = count(scheduler, requests[ply]).stats
                trie = stats.computed_tokens + stats.cached_tokens - stats.prompt_tokens
                rows.append(
                    {
                        "prompt": stats.prompt_tokens,
                        "cached": stats.cached_tokens,
                        "computed": stats.computed_tokens,
                        "trie": trie,
                    }
                )
    scheduler.check_integrity()
    return found


def by_ply(game: str, on: Sequence[Sequence[Row]], off: Sequence[Sequence[Row]]) -> list[Row]:
    """Means of each band of plies, and of whole games."""
    table_rows: list[Row] = []
    for low, high in (*BANDS, (0, 1000)):
        sums: dict[str, float] = defaultdict(float)
        for cached, plain in zip(on, off, strict=True):
            for row, other in zip(cached[low:high], plain[low:high], strict=True):
                for key, value in row.items():
                    sums[key] += float(str(value))
                sums["off"] += float(str(other["computed"]))
                sums["moves"] += 1
        if sums["moves"]:
            moves = sums["moves"]
            plies = "all" if (low, high) == (0, 1000) else str(low)
            if high - low > 1 and plies != "all":
                plies = f"{low}–{high - 1}" if high < 1000 else f"{low} on"
            table_rows.append(
                {
                    "game": game,
                    "plies": plies,
                    "moves": int(moves),
                    "prompt": sums["prompt"] / moves,
                    "hit rate": sums["cached"] / sums["prompt"],
                    "trie rows": sums["trie"] / moves,
                    "computed, on": sums["computed"] / moves,
                    "computed, off": sums["off"] / moves,
                    "times less": sums["off"] / sums["computed"],
                }
            )
    return table_rows


def timed(model: Model, games: dict[str, list[Request]], clock: Clock) -> list[Row]:
    """Seconds a move of the same plies with the cache on, then off; the first ply is not counted.

    Not in turns: both pools lie in the same memory, and cached blocks must stay as they are.
    """
    rows: list[Row] = []
    for game, requests in games.items():
        benches: dict[str, Bench] = {
            "on": model.bench(clock),
            "off": model.bench(clock, enable_prefix_caching=False),
        }
        seconds = dict.fromkeys(benches, 0.0)
        computed = dict.fromkeys(benches, 0)
        for name, bench in benches.items():
            bench.run(requests[0])
            for i, request in enumerate(requests[1:]):
                work = bench.run(request)
                seconds[name] += work.seconds
                computed[name] += work.rows
                progress(f"{game} {name} {i + 1} of {len(requests) - 1}: {work.seconds:.2f} s")
        moves = len(requests) - 1
        rows += [
            {
                "game": game,
                "cache": name,
                "moves": moves,
                "rows a move": computed[name] / moves,
                "s a move": seconds[name] / moves,
                "times faster": seconds["off"] / seconds[name],
            }
            for name in benches
        ]
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--games", type=int, default=3, help="games of each kind")
    parser.add_argument("--plies", type=int, default=80)
    parser.add_argument("--timed", type=int, default=6, help="plies run on the model, from ply 20")
    args = parser.parse_args()
    began = time.perf_counter()
    model = Model.load(args.model, threads=args.threads, num_gpu_blocks_override=256)
    about = machine(args.model, args.clock)
    print(about)
    rows: list[Row] = []
    samples = {}
    for game in GAMES:
        progress(f"counting {game}")
        games = [
            requests_of(model.tokenizer, f"{game}{seed}", played(game, seed, args.plies))
            for seed in range(args.games)
        ]
        on, off = (counted(model, games, cache=cache) for cache in (True, False))
        rows += by_ply(game, on, off)
        samples[game] = max(games, key=len)[20 : 21 + args.timed]
    print(f"\n{args.games} games of each kind side by side, tokens a move\n{table(rows)}")
    seconds = timed(model, samples, clock_of(args.clock))
    print(f"\none game, plies 21 … {20 + args.timed}, on the model\n{table(seconds)}")
    write_json(args.json, about, {"tokens": rows, "seconds": seconds})
    progress(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
