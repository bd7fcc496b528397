"""What a prompt costs and what it brings: fresh tokens a move, and what the moves lose.

    python -m benchmarks.templates [--games 5] [--templates history position fen] [--nodes 20000]

Positions are midgames of seeded games, every sixth ply. Fresh tokens of a prompt are those after
the last token that it shares with the prompt of the same player's move before. For every position
and template the model plays by masked walk and by exact scores; Stockfish or Fairy-Stockfish says
what the move lost against its best (centipawns, capped at 1,000). Losses of two templates are
compared position by position, with a 95 % bootstrap interval of the mean difference.
"""

import argparse
import asyncio
import random
import statistics
from collections.abc import Sequence

from agents.prompt import DEFAULT_TEMPLATE, render_prompt, report
from agents.uci_client import UciClient, find_binary
from benchmarks.kit import (
    GAMES,
    Bench,
    Model,
    Row,
    arguments,
    machine,
    played,
    progress,
    table,
    write_json,
)
from engine.tokenizer import Tokenizer
from engine.types import Request, TokenIds
from games.base import GameState

ENGINES = {"chess": ("stockfish", {}), "janggi": ("fairy-stockfish", {"UCI_Variant": "janggi"})}
FIRST, LAST, EVERY = 12, 48, 6  # plies
CAP = 1000


def tokens_of(tokenizer: Tokenizer, template: str, state: GameState) -> TokenIds:
    messages = render_prompt(template, state).messages
    return tokenizer.encode_prompt([{"role": m.role, "content": m.content} for m in messages])


def fresh_tokens(tokenizer: Tokenizer, template: str, games: Sequence[list[GameState]]) -> float:
    """The mean over midgame plies."""
    counts = []
    for states in games:
        prompts = [tokens_of(tokenizer, template, state) for state in states]
        counts += [report(prompts[i - 2], prompts[i]).fresh for i in range(FIRST, len(states))]
    return statistics.mean(counts)


def moves_by(bench: Bench, tokenizer: Tokenizer, template: str, state: GameState) -> dict[str, str]:
    """What the model plays, by mode."""
    legal = [move.uci for move in state.legal_moves()]
    messages = [
        {"role": m.role, "content": m.content} for m in render_prompt(template, state).messages
    ]
    ids = tokenizer.encode_prompt(messages)
    choices = tokenizer.encode_choices(tokenizer.render(messages), legal)
    done = bench.run(
        Request("walk", ids, choices=choices), Request("score", ids, choices=choices, score=True)
    )
    walked = done.completion("walk").choice
    assert walked is not None
    return {"walk": legal[walked], "score": legal[done.scores("score").argmax]}


async def losses(
    client: UciClient, state: GameState, moves: Sequence[str], nodes: int
) -> list[int]:
    """Centipawns each move gives away against the engine's best, by searches from the position."""
    position = f"fen {state.fen()}"
    best = await client.search(position, f"nodes {nodes}", 60)
    found: dict[str, int] = {}
    for move in moves:
        if move not in found:
            one = await client.search(position, f"nodes {nodes} searchmoves {move}", 60)
            found[move] = max(0, (best.score_cp or 0) - (one.score_cp or 0))
    return [min(CAP, found[move]) for move in moves]


def interval(differences: Sequence[int]) -> tuple[float, float]:
    rng = random.Random(1)
    means = sorted(
        statistics.mean(rng.choices(differences, k=len(differences))) for _ in range(2000)
    )
    return means[50], means[1950]


async def measure(model: Model, game: str, args: argparse.Namespace) -> list[Row]:
    games = [played(game, 500 + seed, LAST) for seed in range(args.games)]
    states = [state for states in games for state in states[FIRST::EVERY]]
    binary, options = ENGINES[game]
    path = find_binary(binary)
    if path is None:
        raise SystemExit(f"{binary} is not installed; on Debian: apt-get install {binary}")
    client = await UciClient.start([path], 10)
    await client.set_options(options, 10)
    lost: dict[tuple[str, str], list[int]] = {}
    for i, state in enumerate(states):
        progress(f"{game} {i + 1} of {len(states)}")
        keys, moves = [], []
        for template in args.templates:
            for mode, move in moves_by(model.bench(), model.tokenizer, template, state).items():
                keys.append((template, mode))
                moves.append(move)
        for key, loss in zip(keys, await losses(client, state, moves, args.nodes), strict=True):
            lost.setdefault(key, []).append(loss)
    await client.close()
    return [_row(game, model.tokenizer, games, key, lost, args.templates[-1]) for key in lost]


def _row(
    game: str,
    tokenizer: Tokenizer,
    games: Sequence[list[GameState]],
    key: tuple[str, str],
    lost: dict[tuple[str, str], list[int]],
    common: str,
) -> Row:
    """`less` and `more`: the interval of the mean loss over that of the common prompt."""
    template, mode = key
    differences = [a - b for a, b in zip(lost[key], lost[common, mode], strict=True)]
    low, high = interval(differences)
    return {
        "game": game,
        "template": template,
        "mode": mode,
        "fresh tokens": fresh_tokens(tokenizer, template, games),
        "positions": len(lost[key]),
        "mean loss cp": statistics.mean(lost[key]),
        f"over {common}": statistics.mean(differences),
        "from": low,
        "to": high,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--games", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument(
        "--templates", nargs="+", default=[DEFAULT_TEMPLATE, "position", "fen"],
        help="the last is what the others are compared with",
    )  # fmt: skip
    args = parser.parse_args()
    model = Model.load(args.model, threads=args.threads, kv_cache_memory_bytes=256 << 20)
    rows = [row for game in GAMES for row in asyncio.run(measure(model, game, args))]
    print(machine(args.model), end="\n\n")
    print(table(rows))
    write_json(args.json, machine(args.model), {"templates": rows})


if __name__ == "__main__":
    main()
