"""A third game, to show that the protocol asks for nothing that only chess or janggi has."""

from collections.abc import Mapping
from dataclasses import dataclass

from games.base import Fact, IllegalMove, InvalidMove, InvalidPosition, Move, Outcome, Side

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
NAMES = tuple(f"{file}{rank}" for rank in "123" for file in "abc")


@dataclass(frozen=True)
class TicTacToeState:
    game: "TicTacToe"
    cells: str
    start_fen: str
    moves: tuple[Move, ...] = ()
    rules: str = "plain"

    @property
    def turn(self) -> Side:
        return 0 if self.cells.count("x") == self.cells.count("o") else 1

    def legal_moves(self) -> tuple[Move, ...]:
        if any(self._has(line) for line in LINES):
            return ()
        free = [name for name, cell in zip(NAMES, self.cells, strict=True) if cell == "-"]
        return tuple(Move(name) for name in sorted(free))

    def _has(self, line: tuple[int, int, int]) -> bool:
        return self.cells[line[0]] != "-" and len({self.cells[at] for at in line}) == 1

    def apply(self, move: Move) -> "TicTacToeState":
        if move not in self.legal_moves():
            raise IllegalMove(f"{move} is not legal here", text=move.uci, position=self.fen())
        at = NAMES.index(move.uci)
        cells = self.cells[:at] + "xo"[self.turn] + self.cells[at + 1 :]
        return TicTacToeState(self.game, cells, self.start_fen, (*self.moves, move))

    def outcome(self) -> Outcome | None:
        if any(self._has(line) for line in LINES):
            return Outcome(1 if self.turn == 0 else 0, "three_in_a_row")
        return None if "-" in self.cells else Outcome(None, "full_board")

    def fen(self) -> str:
        return self.cells

    def is_check(self) -> bool:
        return False

    def parse_move(self, text: str, notation: str = "uci") -> Move:
        if notation != "uci":
            raise ValueError(f"unknown notation {notation!r}")
        if text not in NAMES:
            raise InvalidMove(f"{text!r} is no cell", text=text, position=self.fen())
        if Move(text) not in self.legal_moves():
            raise IllegalMove(f"{text} is not legal here", text=text, position=self.fen())
        return Move(text)

    def format_move(self, move: Move, notation: str = "uci") -> str:
        return self.parse_move(move.uci, notation).uci

    def material(self) -> tuple[float, float]:
        return (0.0, 0.0)

    def facts(self) -> Mapping[str, Fact]:
        return {"check": False, "repetitions": 1, "points_first": 0.0, "points_second": 0.0}

    def board_text(self, style: str = "letters") -> str:
        if style != "letters":
            raise ValueError(f"unknown board style {style!r}")
        return "\n".join(self.cells[at : at + 3] for at in (6, 3, 0))


class TicTacToe:
    name = "tictactoe"
    sides = ("cross", "nought")
    notations = ("uci",)
    board_styles = ("letters",)
    rule_sets: Mapping[str, str] = {"plain": "Three in a row wins"}
    terminations: Mapping[str, str] = {
        "three_in_a_row": "{winner} has three in a row",
        "full_board": "Draw: the board is full",
    }
    setups = ()

    def start(
        self, *, rules: str | None = None, fen: str | None = None, setup: str | None = None
    ) -> TicTacToeState:
        if rules not in (None, "plain") or setup is not None:
            raise ValueError(f"unknown rules or set-up: {rules!r}, {setup!r}")
        cells = "-" * 9 if fen is None else fen
        if len(cells) != 9 or set(cells) - set("xo-"):
            raise InvalidPosition("not nine of x, o, -", text=cells, position=cells)
        return TicTacToeState(self, cells, cells)

    def uci_variant(self, rules: str) -> tuple[str, bool]:
        return ("3check", False)


TICTACTOE = TicTacToe()
