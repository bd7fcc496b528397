"""Choice scoring, the masked walk, and each choice alone, on positions of both games.

    python -m benchmarks.choices [--positions 20] [--alone 2] [--json FILE]

Positions stand evenly over games of one ply of material; prompts are the default template's, moves
in UCI. Before each the prompt of the ply before is computed, untimed, as in a game, under a salt a
way so that no way feeds on another. One move at a time: `score` is one pass with the trie, `walk` a
pass a token that is not forced, `alone` a pass a legal move (only `--alone` positions a game, over
its own cached prompt). Then what the numbers say: legal mass, how often the best of the one pass is
not where the masked greedy walk ends, and both under the three terminator policies.
"""

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import get_args

from benchmarks.kit import (
    GAMES,
    Bench,
    Model,
    Row,
    Work,
    arguments,
    choice_tokens,
    clock_of,
    machine,
    played,
    progress,
    prompt_tokens,
    quantile,
    table,
    write_json,
)
from engine.tokenizer import Tokenizer
from engine.types import ChoiceScores, Request, SamplingParams, Terminator
from games.base import GameState

ONE = SamplingParams(max_tokens=1, ignore_eos=True)
TERMINATORS: tuple[Terminator, ...] = get_args(Terminator)
Pair = tuple[GameState, GameState]  # the ply before, the position


def positions(game: str, count: int) -> list[Pair]:
    """Plies spread over three games, at least two legal moves each."""
    pairs: list[Pair] = []
    for seed in range(3):
        states = played(game, seed, 80)
        pairs += [p for p in pairwise(states) if len(p[1].legal_moves()) > 1]
    return pairs[1 :: max(1, len(pairs) // count)][:count]


def primed(bench: Bench, tokenizer: Tokenizer, pair: Pair, salt: str) -> Request:
    """The position's request under this salt, after the ply before was computed."""
    bench.run(Request("before", prompt_tokens(tokenizer, pair[0]), ONE, cache_salt=salt))
    return Request(
        "r",
        prompt_tokens(tokenizer, pair[1]),
        choices=choice_tokens(tokenizer, pair[1]),
        score=salt == "score",
        cache_salt=salt,
    )


def alone(bench: Bench, request: Request) -> tuple[Work, tuple[float, ...]]:
    """A pass a choice over the cached prompt; the choices' own log-probabilities."""
    total = Work()
    logprobs: list[float] = []
    for choice in request.choices or ():
        work = bench.run(
            Request("r", request.prompt, choices=(choice,), score=True, cache_salt="alone")
        )
        logprobs += work.scores("r").logprobs
        total.rows += work.rows
        total.passes += work.passes
        total.seconds += work.seconds
    return total, tuple(logprobs)


def agree(scores: ChoiceScores, request: Request, plain: Sequence[float]) -> float:
    """Largest difference from the choices scored alone, of those that begin no other."""
    choices = request.choices or ()
    return max(
        abs(a - b)
        for choice, a, b in zip(choices, scores.logprobs, plain, strict=True)
        if not any(o != choice and o[: len(choice)] == choice for o in choices)
    )


def ways(
    bench: Bench, tokenizer: Tokenizer, game: str, pairs: list[Pair], few: int
) -> tuple[list[Row], float]:
    """Means a move of each way; and the largest difference between `score` and `alone`."""
    found: dict[str, list[Work]] = {"score": [], "walk": [], "alone": []}
    choices: dict[str, int] = dict.fromkeys(found, 0)
    differs, widest = 0, 0.0
    for i, pair in enumerate(pairs):
        request = primed(bench, tokenizer, pair, "score")
        found["score"].append(bench.run(request))
        scores = found["score"][-1].scores("r")
        found["walk"].append(bench.run(primed(bench, tokenizer, pair, "walk")))
        if found["walk"][-1].completion("r").choice != scores.greedy:
            raise SystemExit(f"{game}: the walk does not end where scoring says")
        for way in ("score", "walk"):
            choices[way] += len(scores.logprobs)
        differs += scores.argmax != scores.greedy
        if i % max(1, len(pairs) // few) == 0 and len(found["alone"]) < few:
            work, plain = alone(bench, primed(bench, tokenizer, pair, "alone"))
            found["alone"].append(work)
            choices["alone"] += len(plain)
            widest = max(widest, agree(scores, request, plain))
        progress(f"{game} {i + 1} of {len(pairs)}")
    rows: list[Row] = [
        {
            "game": game,
            "way": way,
            "moves": len(works),
            "choices": choices[way] / len(works),
            "rows": sum(w.rows for w in works) / len(works),
            "passes": sum(w.passes for w in works) / len(works),
            "moves/s": len(works) / sum(w.seconds for w in works),
            "not the walk's": f"{differs} of {len(pairs)}" if way == "score" else None,
        }
        for way, works in found.items()
        if works
    ]
    return rows, widest


def policies(bench: Bench, tokenizer: Tokenizer, game: str, pairs: list[Pair]) -> list[Row]:
    """The same positions under each terminator policy, prompts cached."""
    found: dict[Terminator, list[ChoiceScores]] = {t: [] for t in TERMINATORS}
    rows_of: dict[Terminator, int] = dict.fromkeys(TERMINATORS, 0)
    for i, (_, state) in enumerate(pairs):
        prompt = prompt_tokens(tokenizer, state)
        bench.run(Request("before", prompt, ONE))
        for terminator, scores in found.items():
            choices = choice_tokens(tokenizer, state, terminator)
            work = bench.run(
                Request("r", prompt, choices=choices, score=True, terminator=terminator)
            )
            scores.append(work.scores("r"))
            rows_of[terminator] += work.rows
        progress(f"{game} terminators {i + 1} of {len(pairs)}")
    plain = found["none"]
    return [
        {
            "game": game,
            "terminator": terminator,
            "rows": rows_of[terminator] / len(pairs),
            "legal mass p50": quantile([s.legal_mass for s in scores], 0.5),
            "least": min(s.legal_mass for s in scores),
            "most": max(s.legal_mass for s in scores),
            "best differs from none": sum(
                a.argmax != b.argmax for a, b in zip(scores, plain, strict=True)
            ),
            "best is not the walk's": sum(s.argmax != s.greedy for s in scores),
            "of": len(pairs),
        }
        for terminator, scores in found.items()
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--positions", type=int, default=20, help="positions of each game")
    parser.add_argument("--alone", type=int, default=2, help="of them scored choice by choice")
    args = parser.parse_args()
    began = time.perf_counter()
    model = Model.load(args.model, threads=args.threads, num_gpu_blocks_override=1024)
    about = machine(args.model, args.clock)
    print(about)
    clock = clock_of(args.clock)
    work: list[Row] = []
    meaning: list[Row] = []
    widest = 0.0
    for game in GAMES:
        pairs = positions(game, args.positions)
        rows, difference = ways(model.bench(clock), model.tokenizer, game, pairs, args.alone)
        work, widest = [*work, *rows], max(widest, difference)
        meaning += policies(model.bench(clock), model.tokenizer, game, pairs)
    print(f"\nmeans a move, the ply before cached\n{table(work)}")
    print(f"largest difference of a log-probability, one pass v alone: {widest:.1e}")
    print(f"\n{table(meaning)}")
    write_json(args.json, about, {"work": work, "terminators": meaning})
    progress(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
