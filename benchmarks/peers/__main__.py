"""Ours beside vLLM, llama.cpp and transformers on the arena's load, in one run.

    make bench-peers                                  # installs the rivals, then runs all of it
    python -m benchmarks.peers --games 16 --turns 1   # a part of it

Every peer gets the same prompts as the same token ids and must answer with a legal move: rivals by
structured choice, grammar or allowed tokens, ours by a masked walk (`walk`, what the rivals do) and
by exact scores of all legal moves (`score`, what no rival serves). A second table has the same
games as a user would run them: ours with its default template and mode, the rivals behind their
servers and the `openai` package with the common prompt. Peers take turns on the machine, the others
idle; the tables show the median turn. Rivals live in environments of their own under
`--venvs`; one that is missing or fails is listed as such and the rest goes on.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from agents.prompt import DEFAULT_TEMPLATE
from benchmarks.kit import GAMES, machine, progress, table
from engine.hub import ensure
from engine.tokenizer import Tokenizer

from .process import Peer, PeerFailed
from .report import Row, plot, row_of, with_ratios
from .workload import COMMON, build, mean_length

PLIES = {1: 6, 4: 4, 16: 3, 64: 1}  # asks a game, by games in flight
TABLES = {"same_tokens": 64, "as_run": 16}  # and the most games in flight of each
RESULTS = Path(__file__).parents[1] / "results"
SHOWN = ("engine", "mode", "precision", "game", "games_in_flight", "moves_per_s", "of_best_rival",
         "p50", "p95", "ttft", "computed_tokens_per_move", "peak_mb")  # fmt: skip


def peers(folder: Path, venvs: Path, files: Mapping[str, Path]) -> list[Peer]:
    """All of them, each in the best of the configurations tried (docs/log.md)."""

    def python(name: str) -> Path:
        return venvs / name / "bin" / "python"

    ours = Path(sys.executable)
    found = [
        Peer("madang", "walk", "fp32", ours, ("run_madang.py", str(folder), "walk")),
        Peer("madang", "score", "fp32", ours, ("run_madang.py", str(folder), "score")),
        Peer("vllm", "choice", "fp32", python("vllm"), ("run_vllm.py", str(folder), "32")),
        Peer("transformers", "allowed tokens", "fp32", python("transformers"),
             ("run_transformers.py", str(folder))),
    ]  # fmt: skip
    for precision, file in files.items():
        command = ("run_llama.py", str(file))
        found.append(Peer("llama.cpp", "grammar", precision, python("llama"), command))
    return found


def as_run(folder: Path, venvs: Path, files: Mapping[str, Path]) -> list[Peer]:
    """The second table: ours first, with its default template; then rivals behind their servers."""
    ours = Path(sys.executable)
    rivals: list[tuple[str, ...]] = [("vllm", "fp32", "vllm", str(folder), "32")]
    rivals += [("llama", precision, "llama.cpp", str(file)) for precision, file in files.items()]
    found = [Peer("madang", DEFAULT_TEMPLATE, "fp32", ours, ("run_madang.py", str(folder), "walk"))]
    for kind, precision, name, *rest in rivals:
        python = str(venvs / kind / "bin" / "python")
        command = ("run_client.py", kind, python, *rest)
        found.append(Peer(name, "openai client", precision, ours, command))
    return found


def started(candidates: Iterable[Peer]) -> tuple[list[Peer], list[Row]]:
    """Those that run, and a row of why for those that don't."""
    running, missing = [], []
    for peer in candidates:
        progress(f"starting {peer.name} {peer.mode} {peer.precision}")
        try:
            peer.start()
            running.append(peer)
        except PeerFailed as error:
            missing.append({"engine": peer.name, "precision": peer.precision, "why": str(error)})
    return running, missing


def measure(
    running: list[Peer], tokenizer: Tokenizer, games: str, in_flight: int, turns: int
) -> list[Row]:
    """Turns over all peers; a peer that breaks off is left out from there on."""
    found: dict[int, list[Row]] = {}
    for turn in range(turns):
        for i, peer in enumerate(running):
            template = peer.mode if peer.mode == DEFAULT_TEMPLATE else COMMON
            asks = build(tokenizer, games, 1000 * turn, in_flight, PLIES[in_flight], template)
            try:
                run = peer.run(asks)
            except PeerFailed as error:
                progress(f"{peer.name} {peer.mode}: {error}")
                continue
            found.setdefault(i, []).append(run)
            progress(
                f"{games}, {in_flight} in flight ({mean_length(asks):.0f} tokens), turn {turn + 1}:"
                f" {peer.name} {peer.mode} {peer.precision} {run['moves'] / run['seconds']:.2f}/s"
            )
    return [row_of(running[i], games, in_flight, runs) for i, runs in found.items()]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--venvs", type=Path, default=Path(".peers"))
    parser.add_argument("--games", type=int, nargs="+", choices=sorted(PLIES), default=list(PLIES))
    parser.add_argument("--kinds", nargs="+", choices=GAMES, default=list(GAMES))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--json", type=Path, default=RESULTS / "peers.json")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    folder = ensure(args.model)
    venvs = args.venvs.resolve()
    files = {
        "fp32": venvs / f"{args.model}-F32.gguf",
        "Q8_0": venvs / f"{args.model}-Q8_0.gguf",
    }
    tables: dict[str, list[Row]] = {}
    missing: list[Row] = []
    lists = {"same_tokens": peers(folder, venvs, files), "as_run": as_run(folder, venvs, files)}
    for name in args.tables:
        rows, absent = bench(args, Tokenizer.load(folder), lists[name], TABLES[name])
        tables[name] = with_ratios(rows)
        missing += absent
    finish(args, tables, missing)


def bench(
    args: argparse.Namespace, tokenizer: Tokenizer, candidates: list[Peer], most: int
) -> tuple[list[Row], list[Row]]:
    """One table: its rows, and who is missing. `most` games in flight."""
    running, missing = started(candidates)
    rows: list[Row] = []
    try:
        for peer in running:
            peer.run(build(tokenizer, "chess", 999, 1, 1))  # the first call builds what it needs
        for in_flight in (n for n in args.games if n <= most):
            for game in args.kinds:
                rows += measure(running, tokenizer, game, in_flight, args.turns)
    finally:
        for peer in running:
            peer.stop()
    return rows, missing


def finish(args: argparse.Namespace, tables: dict[str, list[Row]], missing: list[Row]) -> None:
    caption = f"{date.today()}: {machine(args.model)}; {args.turns} turns, the median"
    print(caption)
    for name, rows in tables.items():
        print(f"\n{name}\n")
        if rows:
            print(table([{key: row[key] for key in SHOWN} for row in rows]))
    for row in missing:
        print(f"{row['engine']} {row['precision']}: {row['why']}")
    args.json.parent.mkdir(exist_ok=True)
    values: dict[str, Any] = {"about": caption, **tables, "missing": missing}
    args.json.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    rows = tables.get("same_tokens", [])
    if rows and not plot(rows, args.json.with_suffix(".svg"), caption):
        print("no plot: matplotlib is not installed")


if __name__ == "__main__":
    main()
