"""How long the answer reader takes for one answer: `python -m benchmarks.answers [--json]`.

Answers are the outside corpus, where MADANG_SHARED names it, and prose made here: reasoning that
mentions moves and squares, with a final answer, with a sentence that plays, and with neither. Each
answer is read on a fresh position, so legal moves are generated as in a game. The rival is
python-chess: `parse_san` of the bare move, which reads nothing else. CPU time of this process.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import chess

from agents.parse import parse_answer
from games.base import Move
from games.registry import get_game

FILES = ("chess_real", "chess_synthetic", "janggi_synthetic")
MIDGAME = ["e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5", "c2c3", "g8f6", "d2d3", "d7d6"]
JANGGI = ["a4b4", "i7h7", "b1c3", "h10g8"]
THOUGHT = (
    "White has a lead in development, and the knight on f3 looks at e5 and g5. I could castle with "
    "O-O, or play b4 and chase the bishop; after 6. b4 Bb6 7. a4 a6 it stands well. Nbd2 waits. "
)
ENDS = {
    "a final answer": "Final Answer: O-O",
    "a sentence": "I play O-O.",
    "no move": "Hard to say.",
}
SIZES = (500, 2_000, 8_000)


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of one answer."""

    answers: str
    count: int
    characters: int  # of the median answer
    p50: float
    p99: float
    most: float


Case = tuple[str, Callable[[], Callable[[], object]]]
"""An answer, and what sets up its position and gives the reading that is timed."""


def outside(name: str, folder: Path) -> Iterator[Case]:
    """The corpus; each case starts its position anew."""
    for text in (folder / f"{name}.jsonl").read_text("utf-8").splitlines():
        line = json.loads(text)
        rules = f"fsf-{line['variant']}" if line["game"] == "janggi" else None
        fen, moves = line.get("start_fen") or line["fen"], line.get("moves", ())
        answer, cut = str(line["answer"]), line["finish_reason"] == "length"

        def read(
            game: str = line["game"], rules: str | None = rules, fen: str = fen,
            moves: tuple[str, ...] = tuple(moves), answer: str = answer, cut: bool = cut,
        ) -> Callable[[], object]:  # fmt: skip
            state = get_game(game).start(rules=rules, fen=fen)
            for move in moves:
                state = state.apply(Move(move))
            return lambda: parse_answer(state, answer, truncated=cut)

        yield answer, read


def prose(size: int, end: str) -> Iterator[Case]:
    """The same thoughts again and again, on two games."""
    answer = (THOUGHT * (size // len(THOUGHT) + 1))[:size] + "\n\n" + end
    for game, moves in (("chess", MIDGAME), ("janggi", JANGGI)) * 50:

        def read(
            game: str = game, moves: list[str] = moves, answer: str = answer
        ) -> Callable[[], object]:
            state = get_game(game).start()
            for move in moves:
                state = state.apply(Move(move))
            return lambda: parse_answer(state, answer)

        yield answer, read


def rival() -> Iterator[Case]:
    for _ in range(200):

        def read() -> Callable[[], object]:
            board = chess.Board()
            for move in MIDGAME:
                board.push_uci(move)
            return lambda: board.parse_san("O-O")

        yield "O-O", read


def bare() -> Iterator[Case]:
    for _ in range(200):

        def read() -> Callable[[], object]:
            state = get_game("chess").start()
            for move in MIDGAME:
                state = state.apply(Move(move))
            return lambda: parse_answer(state, "O-O", notation="san")

        yield "O-O", read


def measure(label: str, cases: Iterator[Case], repeats: int) -> Row:
    """Every answer `repeats` times; its fastest counts, since neighbours only ever slow it."""
    sizes, times = [], []
    for answer, prepare in cases:
        best = float("inf")
        for _ in range(repeats):
            read = prepare()
            began = time.process_time_ns()
            read()
            best = min(best, (time.process_time_ns() - began) / 1e6)
        sizes.append(len(answer))
        times.append(best)
    times.sort()
    p99 = times[min(len(times) - 1, round(len(times) * 0.99))]
    p50, size = statistics.median(times), round(statistics.median(sizes))
    return Row(label, len(times), size, p50, p99, times[-1])


def rows(repeats: int) -> Iterator[Row]:
    folder = Path(os.environ.get("MADANG_SHARED", "../shared")) / "data" / "answers"
    if folder.is_dir():
        for name in FILES:
            yield measure(name, outside(name, folder), repeats)
    for size in SIZES:
        for label, end in ENDS.items():
            yield measure(f"prose with {label}", prose(size, end), repeats)
    yield measure("a bare move", bare(), repeats)
    yield measure("python-chess parse_san", rival(), repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = list(rows(given.repeats))
    if given.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
        return
    print("| answers | number | characters | p50 ms | p99 ms | most ms |")
    print("|---|--:|--:|--:|--:|--:|")
    for row in found:
        times = f"{row.p50:.3f} | {row.p99:.3f} | {row.most:.3f}"
        print(f"| {row.answers} | {row.count} | {row.characters} | {times} |")


if __name__ == "__main__":
    main()
