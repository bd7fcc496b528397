"""How the pieces go, check and the pass: small positions, by their number in the rules note."""

import pytest

from games.janggi.tables import DIAGONALS, LINES, NAMES, POINT
from tests.games.positions import janggi, uci

MOVES = [
    # id, board, side, origin, exactly these moves from it
    ("C1", "9/4k4/1p7/9/9/1c7/9/1C7/3K5/9 w", "b3", ""),
    ("C2", "9/4k4/1c7/9/9/1p7/9/1C7/3K5/9 w", "b3", "b3b6 b3b7"),
    ("C3", "9/4k4/1p7/9/1p7/9/1p7/1C7/3K5/9 w", "b3", "b3b5 b3b6"),
    ("C4", "9/4k4/9/9/9/9/9/1C7/3K5/9 w", "b3", ""),
    (
        "C5",
        "9/3k5/9/9/9/9/9/9/4A4/3C1K3 w",
        "d1",
        "d1d10 d1f3 d1g1 d1h1 d1i1",
    ),
    ("C6", "9/3k5/9/9/9/9/9/5p3/4A4/3C1K3 w", "d1f", "d1f3"),
    ("C7", "9/3k5/9/9/9/9/9/5p3/4c4/3C1K3 w", "d1f", ""),
    ("C8", "9/3k5/9/9/9/9/9/5c3/4A4/3C1K3 w", "d1f", ""),
    ("C9", "9/3k5/9/9/9/9/9/3P1P3/4C4/3P1K3 w", "e2", ""),
    ("R1", "9/5k3/3R5/9/9/9/9/9/4K4/9 w", "d8f", "d8f10 d8f8"),
    ("R2", "5k3/4a4/3R5/9/9/9/9/9/4K4/9 w", "d8f", "d8f8"),
    ("R2 takes", "5k3/4a4/3R5/9/9/9/9/9/4K4/9 w", "d8e", "d8e8 d8e9"),
    ("R3", "5k3/3R5/9/9/9/9/9/9/4K4/9 w", "d9e", "d9e9"),
    ("P1", "5k3/9/3P5/9/9/9/9/9/4K4/9 w", "d8", "d8c8 d8d9 d8e8 d8e9"),
    ("P2", "9/4P4/3k5/9/9/9/9/9/4K4/9 w", "e9", "e9d10 e9d9 e9e10 e9f10 e9f9"),
    ("P3", "5k3/3P5/9/9/9/9/9/9/4K4/9 w", "d9", "d9c9 d9d10 d9e9"),
    ("P4", "2P2k3/9/9/9/9/9/9/9/4K4/9 w", "c10", "c10b10 c10d10"),
    ("P6", "3k5/9/9/9/9/9/9/3p5/9/5K3 b", "d3", "d3c3 d3d2 d3e2 d3e3"),
    (
        "H1",
        "9/4k4/9/9/4p4/4N4/9/9/3K5/9 w",
        "e5",
        "e5c4 e5c6 e5d3 e5f3 e5g4 e5g6",
    ),
    ("E1", "9/4k4/9/9/4p4/4B4/9/9/3K5/9 w", "e5", "e5b3 e5b7 e5c2 e5g2 e5h3 e5h7"),
    ("E2", "9/4k4/9/3p5/9/4B4/9/9/3K5/9 w", "e5", "e5b3 e5b7 e5c2 e5g2 e5g8 e5h3 e5h7"),
    ("K1", "3k5/9/9/9/9/9/9/9/9/4K4 w", "e1", "e1d1 e1e1 e1e2 e1f1"),
    ("A1", "3k5/9/9/9/9/9/9/9/9/3A1K3 w", "d1", "d1d2 d1e1 d1e2"),
    ("Z2", "3k5/9/3R5/9/9/9/9/9/9/5K3 b", "", "d10e10"),
    ("X2", "3k5/9/9/9/3p5/9/9/9/3C5/4K4 b", "", "d10e10 d10e9 d6c6 d6e6"),
    ("X3", "4k4/9/9/9/4P4/4p4/9/9/4C4/3K5 b", "e5", "e5e4"),
    (
        "X4",
        "4k4/9/9/9/4P4/2ppc4/9/9/4C4/3K5 b",
        "",
        "c5b5 c5c4 d5d4 e10d10 e10e10 e10e9 e10f10 e5e7 e5e8 e5e9",
    ),
    ("B5", "4k4/9/9/9/9/9/9/9/r3K4/9 w", "", "e2d1 e2d3 e2e2 e2f1 e2f3"),
]


@pytest.mark.parametrize(("name", "fen", "origin", "moves"), MOVES, ids=[m[0] for m in MOVES])
def test_moves(name: str, fen: str, origin: str, moves: str) -> None:
    assert uci(janggi(fen), origin) == moves.split()


def test_no_cannon_can_move_at_the_start() -> None:
    assert uci(janggi(""), "b3") == []
    assert uci(janggi(""), "h3") == []
    assert len(uci(janggi(""))) == 32


def test_only_the_five_points_of_a_palace_have_diagonals() -> None:
    drawn = {NAMES[point] for point in range(90) if DIAGONALS[point]}
    assert drawn == {"d1", "f1", "e2", "d3", "f3", "d8", "f8", "e9", "d10", "f10"}
    assert all(len(LINES[POINT[name]]) == 4 for name in ("e4", "d2", "f9", "e8"))


def test_a_pass_is_no_stalemate_and_never_leaves_check() -> None:
    # Z1: nothing but a pass; three chariots, so only the engine's own rule sets take it.
    stuck = janggi("4k4/c7R/9/3R1R3/9/9/9/9/9/3K5 b")
    assert uci(stuck) == ["e10e10"]
    assert stuck.outcome() is None


def test_checkmate() -> None:
    state = janggi("3k5/R8/9/7R1/9/9/9/9/9/5K3 w", "h7h10")
    assert uci(state) == []
    assert state.is_check()
    outcome = state.outcome()
    assert outcome is not None
    assert (outcome.termination, outcome.winner) == ("checkmate", 0)


def test_a_check_along_the_palace_diagonal() -> None:
    state = janggi("4ka3/4a4/9/4R4/2B6/9/9/5K3/4p4/3r5 b", "e2f2")
    assert state.is_check()
    assert len(uci(state)) == 3


@pytest.mark.parametrize(
    ("rules", "moves"),
    [
        ("fsf-janggi", "e10d10 e10e10 e10f10"),
        ("fsf-janggitraditional", "e10d10 e10e10 e10f10"),
        ("fsf-janggimodern", "e10d10 e10e10 e10e9 e10f10"),
        ("fsf-janggicasual", "e10d10 e10e10 e10e9 e10f10"),
    ],
)
def test_bikjang_must_be_parted_or_passed_where_it_counts(rules: str, moves: str) -> None:
    assert uci(janggi("4k4/9/9/9/4P4/9/9/9/4K4/9 w", "e6d6", rules)) == moves.split()


def test_bikjang_outranks_mate_where_it_counts() -> None:
    fen, moves = "4ka3/8R/4N4/9/9/9/9/9/4K4/3R5 w", "e8c9"
    assert uci(janggi(fen, moves, "fsf-janggi")) == ["e10e10"]
    assert janggi(fen, moves, "fsf-janggi").outcome() is None
    mated = janggi(fen, moves, "fsf-janggimodern").outcome()
    assert mated is not None
    assert mated.termination == "checkmate"
    accepted = janggi(fen, moves + " e10e10", "fsf-janggi").outcome()
    assert accepted is not None
    assert (accepted.termination, accepted.winner) == ("bikjang_points", 0)


def test_a_blocking_move_parts_the_generals() -> None:
    state = janggi("4k4/9/9/9/3R5/9/9/9/4K4/9 w")
    assert "d6e6" in uci(state)
    assert "d6d7" not in uci(state)
