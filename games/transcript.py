"""A whole game as text holds it, whatever the file format; and what reading a file gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .base import Game, GameState, Move

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")


@dataclass(frozen=True, slots=True)
class Transcript:
    """One game: where it began, its moves, how it ended, and what was noted beside it.

    `tags` carry PGN's names (Event, White, Black, …). A ply is the number of moves made: a comment
    at ply 0 stands before the first move. `clocks`: ply -> seconds left of its mover.
    `line`: where it began in its file, from 1; 0 if it was not read from one.
    """

    game: str
    start_fen: str
    moves: tuple[Move, ...] = ()
    result: str = "*"
    tags: Mapping[str, str] = field(default_factory=dict)
    comments: tuple[tuple[int, str], ...] = ()
    clocks: Mapping[int, float] = field(default_factory=dict)
    line: int = 0

    def replay(self, game: Game, rules: str | None = None) -> GameState:
        """The last position under a rule set. Raises InvalidPosition or IllegalMove."""
        state = game.start(rules=rules, fen=self.start_fen)
        for move in self.moves:
            state = state.apply(move)
        return state


@dataclass(frozen=True, slots=True)
class Fault:
    """A game that could not be read: the line in its file (from 1) and the reason."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file gave: the games that were read, and a fault for each that was not."""

    games: tuple[Transcript, ...]
    faults: tuple[Fault, ...]


def decode(data: bytes | str, fallback: str) -> str:
    """Text of a file: UTF-8 if it is that (a BOM is dropped), else `fallback`, never failing.

    0xFF and 0x1A, which old programs leave behind, are dropped; lines end in LF.
    """
    if isinstance(data, str):
        text = data
    else:
        clean = data.replace(b"\xff", b"").replace(b"\x1a", b"")
        try:
            text = clean.decode("utf-8")
        except UnicodeDecodeError:
            text = clean.decode(fallback, errors="replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
