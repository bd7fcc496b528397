"""The contract every game keeps: positions, moves, ends, and what a player must be told.

A game is pure: no I/O, no clock, no randomness of its own. `arena` and `agents` know games only
through this file and `games.registry`; a third game is one folder and one registry line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Side = Literal[0, 1]
"""0 moves first (White, Cho), 1 second (Black, Han)."""

Fact = bool | int | float | str | None


@dataclass(frozen=True, slots=True, order=True)
class Move:
    """A move by its canonical text (UCI); equal iff the same move."""

    uci: str

    def __str__(self) -> str:
        return self.uci


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a game ended on the board.

    `termination` is one of the game's own `terminations`; `winner` None is a draw.
    """

    winner: Side | None
    termination: str

    @property
    def result(self) -> str:
        """`1-0`, `0-1` or `1/2-1/2`, from the first mover's point of view."""
        return {0: "1-0", 1: "0-1", None: "1/2-1/2"}[self.winner]


class GameError(ValueError):
    """A text that cannot be used; carries the text and the position (FEN) it was read against."""

    def __init__(self, message: str, *, text: str, position: str = "") -> None:
        super().__init__(message)
        self.text = text
        self.position = position


class InvalidMove(GameError):
    """Not the text of a move in this notation."""


class IllegalMove(GameError):
    """The text of a move, but of none that is legal here."""


class AmbiguousMove(GameError):
    """Fits several legal moves; `candidates` holds them in UCI, sorted."""

    def __init__(
        self, message: str, *, text: str, position: str = "", candidates: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, text=text, position=position)
        self.candidates = candidates


class InvalidPosition(GameError):
    """A FEN that is no position of this game; the message names the reason."""


class GameState(Protocol):
    """One position with the history that its rules need. Immutable: `apply` returns a new one."""

    @property
    def game(self) -> "Game": ...

    @property
    def rules(self) -> str:
        """Name of the rule set, a key of `game.rule_sets`."""

    @property
    def turn(self) -> Side: ...

    @property
    def start_fen(self) -> str: ...

    @property
    def moves(self) -> tuple[Move, ...]:
        """Every move since `start_fen`; its length is the ply count."""

    def legal_moves(self) -> tuple[Move, ...]:
        """Every legal move, sorted by UCI; empty once the rules end the game by having none.

        Raises nothing. Whether the game has ended is `outcome`'s to say.
        """

    def apply(self, move: Move) -> "GameState":
        """The position after a legal move. Raises IllegalMove for any other."""

    def outcome(self) -> Outcome | None:
        """The first end that holds in the game's documented order of checks; None: play on."""

    def fen(self) -> str: ...

    def is_check(self) -> bool: ...

    def parse_move(self, text: str, notation: str = "uci") -> Move:
        """Strict reading of one move text.

        Raises InvalidMove, IllegalMove or AmbiguousMove.
        """

    def format_move(self, move: Move, notation: str = "uci") -> str:
        """The text of a legal move; `parse_move` of it gives the move back."""

    def material(self) -> tuple[float, float]:
        """Points on the board of side 0 and side 1 (chess 1 3 3 5 9; janggi with its 1.5)."""

    def facts(self) -> Mapping[str, Fact]:
        """What a player must be told beyond the board, by name (each game documents its keys).

        Always present: `check` (bool), `repetitions` (times this position has stood, ≥ 1),
        `points_first` and `points_second` (as `material`).
        """

    def board_text(self, style: str = "letters") -> str:
        """The board for a terminal or a prompt; `style` is one of `game.board_styles`."""


class Game(Protocol):
    """What is true of a game before any move."""

    @property
    def name(self) -> str:
        """`chess`, `janggi`: the key of the registry and of every record."""

    @property
    def sides(self) -> tuple[str, str]:
        """What the two sides are called, the first mover first: (`white`, `black`)."""

    @property
    def notations(self) -> tuple[str, ...]:
        """Notations that `parse_move` and `format_move` know; `uci` is always the first."""

    @property
    def board_styles(self) -> tuple[str, ...]: ...

    @property
    def rule_sets(self) -> Mapping[str, str]:
        """Rule set name → its one-sentence description; the first key is the default."""

    @property
    def terminations(self) -> Mapping[str, str]:
        """Every end on the board by name → its sentence; `describe` fills `{winner}`, `{loser}`."""

    @property
    def setups(self) -> tuple[str, ...]:
        """Named starts a pair may use (janggi: `nbbn/nbbn`, Cho/Han); empty if none."""

    def start(
        self, *, rules: str | None = None, fen: str | None = None, setup: str | None = None
    ) -> GameState:
        """The first position. Raises InvalidPosition for a bad FEN, ValueError for other names."""

    def uci_variant(self, rules: str) -> tuple[str, bool]:
        """(`UCI_Variant` value an engine plays, whether its rules equal `rules` exactly)."""


def describe(game: Game, outcome: Outcome) -> str:
    """The sentence of an end on the board, sides put in: `White mates`."""
    names = [side.capitalize() for side in game.sides]
    winner = 0 if outcome.winner is None else outcome.winner
    sentence = game.terminations[outcome.termination]
    return sentence.format(winner=names[winner], loser=names[1 - winner])
