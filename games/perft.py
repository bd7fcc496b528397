"""Perft: how many legal move sequences of a given length lead on from a position.

A sequence that the rules end early counts at its length only if it has it: positions without
legal moves have no successors. Ends that leave moves legal (repetition, a cap) are not looked at.
"""

from .base import GameState


def perft(state: GameState, depth: int) -> int:
    """Legal sequences of `depth` plies; 1 for depth 0. Raises ValueError below 0."""
    if depth < 0:
        raise ValueError(f"depth is {depth}: give 0 or more")
    if depth == 0:
        return 1
    moves = state.legal_moves()
    if depth == 1:
        return len(moves)
    return sum(perft(state.apply(move), depth - 1) for move in moves)


def divide(state: GameState, depth: int) -> dict[str, int]:
    """`perft` of each first move by its UCI, sorted; empty for depth 0."""
    if depth <= 0:
        return {}
    return {move.uci: perft(state.apply(move), depth - 1) for move in state.legal_moves()}
