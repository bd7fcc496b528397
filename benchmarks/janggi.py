"""Legal moves a second: our janggi beside pyffish's and python-chess's chess, in one run.

Each of the three lists the legal moves of the same number of midgame positions, met by seeded
random play; a position is built anew from its FEN outside the measured part, so nothing is kept
from an earlier call. pyffish is asked twice: from the FEN with no moves (its fastest use, which
hides passes and repetitions) and with the whole move list (the only correct one). Run:

    python -m benchmarks.janggi [--positions 2000] [--json]
"""

import argparse
import json
import platform
import random
import time
from collections.abc import Callable, Sequence

import chess
import pyffish

from games.base import GameState
from games.janggi import JANGGI
from games.perft import perft

RULES, VARIANT = "fsf-janggi", "janggi"
MIDGAME = range(20, 80)


def janggi_positions(count: int, seed: int) -> list[GameState]:
    """Midgame states of random play, their legal moves not yet asked for."""
    rng, found = random.Random(seed), list[GameState]()
    while len(found) < count:
        state: GameState = JANGGI.start(rules=RULES, setup=rng.choice(JANGGI.setups))
        for ply in range(MIDGAME.stop):
            moves = state.legal_moves()
            if state.outcome() is not None:
                break
            state = state.apply(rng.choice(moves))
            if ply in MIDGAME and state.outcome() is None:
                found.append(state)
    return found[:count]


def chess_positions(count: int, seed: int) -> list[str]:
    """FENs of random chess midgames."""
    rng, found = random.Random(seed), list[str]()
    while len(found) < count:
        board = chess.Board()
        for ply in range(MIDGAME.stop):
            if board.is_game_over():
                break
            board.push(rng.choice(list(board.legal_moves)))
            if ply in MIDGAME and not board.is_game_over():
                found.append(board.fen())
    return found[:count]


def rate(calls: Sequence[Callable[[], int]]) -> tuple[float, int]:
    """(calls a second, moves found)."""
    start = time.perf_counter()
    found = sum(call() for call in calls)
    return len(calls) / (time.perf_counter() - start), found


def _ours(state: GameState) -> Callable[[], int]:
    fresh = JANGGI.start(rules=RULES, fen=state.fen())
    return lambda: len(fresh.legal_moves())


def _pyffish(fen: str, moves: list[str]) -> Callable[[], int]:
    return lambda: len(pyffish.legal_moves(VARIANT, fen, moves))


def _chess(fen: str) -> Callable[[], int]:
    board = chess.Board(fen)
    return lambda: len(list(board.legal_moves))


def measure(positions: int, seed: int) -> dict[str, float | int | str]:
    """Every figure of one run."""
    states = janggi_positions(positions, seed)
    few = states[: max(1, positions // 10)]
    ours, found = rate([_ours(state) for state in states])
    by_fen, theirs = rate([_pyffish(state.fen(), []) for state in states])
    by_moves, _ = rate([_pyffish(s.start_fen, [m.uci for m in s.moves]) for s in few])
    chess_rate, _ = rate([_chess(fen) for fen in chess_positions(positions, seed)])
    start = time.perf_counter()
    nodes = perft(JANGGI.start(rules=RULES), 3)
    return {
        "machine": f"{platform.machine()}, Python {platform.python_version()}, one core",
        "positions": positions,
        "janggi_legal_per_s": round(ours),
        "pyffish_fen_per_s": round(by_fen),
        "pyffish_move_list_per_s": round(by_moves),
        "python_chess_legal_per_s": round(chess_rate),
        "janggi_over_pyffish_fen": round(ours / by_fen, 1),
        "janggi_over_pyffish_move_list": round(ours / by_moves, 1),
        "moves_found": found,
        "moves_found_by_pyffish_fen": theirs,
        "perft_3_nodes": nodes,
        "perft_3_s": round(time.perf_counter() - start, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Janggi legal moves a second")
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.positions, options.seed)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:>32}  {value}")


if __name__ == "__main__":
    main()
