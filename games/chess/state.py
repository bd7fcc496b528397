"""A chess position on python-chess, immutable to callers.

Ends are looked for in this order: checkmate, stalemate, insufficient material, 75 moves, fivefold
repetition, and under the `standard` rules 50 moves and threefold repetition, which there end the
game by themselves (nobody has to claim). A position repeats when pieces, side to move, castling
rights and a legal en-passant capture are the same. FENs name the en-passant square only where
such a capture is legal.

Facts, beside those every game has: `castling` (as in FEN, `-` for none), `en_passant` (square or
None), `halfmove_clock` (plies since a capture or pawn move), `plies_to_move_rule` (until the
50- or 75-move end), `plies`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import chess

from games.base import AmbiguousMove, Fact, IllegalMove, InvalidMove, Move, Outcome, Side

from .fen import parse_fen

if TYPE_CHECKING:
    from .game import ChessGame

VALUES = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
NULL_MOVES = ("--", "Z0", "0000", "@@@@")
Key = tuple[int | bool | None, ...]


def position_key(board: chess.Board) -> Key:
    """Equal for two positions iff one repeats the other."""
    return (
        board.pawns,
        board.knights,
        board.bishops,
        board.rooks,
        board.queens,
        board.kings,
        board.occupied_co[chess.WHITE],
        board.turn,
        board.clean_castling_rights(),
        board.ep_square if board.has_legal_en_passant() else None,
    )


class ChessState:
    """One position; `ChessGame.start` makes the first, `apply` every other."""

    __slots__ = ("_board", "_game", "_keys", "_legal", "_moves", "_rules", "_start_fen")

    def __init__(self, game: ChessGame, rules: str, fen: str) -> None:
        """The position of a FEN, with no past. Raises InvalidPosition."""
        self._game, self._rules = game, rules
        self._board = parse_fen(fen)
        self._start_fen = self._board.fen()
        self._moves: tuple[Move, ...] = ()
        # Every position since the last capture or pawn move, this one last.
        self._keys: tuple[Key, ...] = (position_key(self._board),)
        self._legal: dict[str, chess.Move] | None = None

    @property
    def game(self) -> ChessGame:
        return self._game

    @property
    def rules(self) -> str:
        return self._rules

    @property
    def turn(self) -> Side:
        return 0 if self._board.turn else 1

    @property
    def board(self) -> chess.Board:
        """A copy of the python-chess board, without its history."""
        return self._board.copy(stack=False)

    @property
    def start_fen(self) -> str:
        return self._start_fen

    @property
    def moves(self) -> tuple[Move, ...]:
        return self._moves

    def _by_uci(self) -> dict[str, chess.Move]:
        if self._legal is None:
            self._legal = dict(sorted((m.uci(), m) for m in self._board.legal_moves))
        return self._legal

    def legal_moves(self) -> tuple[Move, ...]:
        return tuple(Move(uci) for uci in self._by_uci())

    def apply(self, move: Move) -> ChessState:
        made = self._by_uci().get(move.uci)
        if made is None:
            raise IllegalMove(f"{move.uci} is not legal here", text=move.uci, position=self.fen())
        new = object.__new__(ChessState)
        new._game, new._rules, new._start_fen = self._game, self._rules, self._start_fen
        new._board = self._board.copy(stack=False)
        new._board.push(made)
        new._board.clear_stack()
        new._moves = (*self._moves, Move(move.uci))
        past = self._keys if new._board.halfmove_clock else ()
        new._keys = (*past, position_key(new._board))
        new._legal = None
        return new

    def _repetitions(self) -> int:
        return self._keys.count(self._keys[-1])

    def outcome(self) -> Outcome | None:
        if not self._by_uci():
            if self.is_check():
                return Outcome(1 if self.turn == 0 else 0, "checkmate")
            return Outcome(None, "stalemate")
        termination = self._draw()
        return None if termination is None else Outcome(None, termination)

    def _draw(self) -> str | None:
        if self._board.is_insufficient_material():
            return "insufficient_material"
        clock, times = self._board.halfmove_clock, self._repetitions()
        if clock >= 150:
            return "seventyfive_moves"
        if times >= 5:
            return "fivefold_repetition"
        if self._rules == "standard":
            if clock >= 100:
                return "fifty_moves"
            if times >= 3:
                return "threefold_repetition"
        return None

    def fen(self) -> str:
        return self._board.fen()

    def is_check(self) -> bool:
        return self._board.is_check()

    def parse_move(self, text: str, notation: str = "uci") -> Move:
        if notation not in self._game.notations:
            raise self._unknown(notation)
        if len(text) > 20 or not text.isascii() or text in NULL_MOVES:
            raise self._invalid(text, notation)
        try:
            if notation == "san":
                return Move(self._board.parse_san(text).uci())
            return Move(self._board.parse_uci(text).uci())
        except chess.AmbiguousMoveError:
            fits = self._fitting(text)
            message = f"{text} fits {', '.join(fits)}"
            raise AmbiguousMove(message, text=text, position=self.fen(), candidates=fits) from None
        except chess.IllegalMoveError:
            message = f"{text} is not legal here"
            raise IllegalMove(message, text=text, position=self.fen()) from None
        except chess.InvalidMoveError:
            raise self._invalid(text, notation) from None

    def _fitting(self, san: str) -> tuple[str, ...]:
        """Legal moves of the piece and to the square that an ambiguous SAN names."""
        bare = san.rstrip("+#")
        found = []
        for uci, move in self._by_uci().items():
            piece = chess.piece_symbol(self._board.piece_type_at(move.from_square) or 1).upper()
            full = (piece if piece != "P" else "") + uci[:2]
            hint = bare[:-2].replace("x", "")
            if uci[2:4] == bare[-2:] and all(part in full for part in hint):
                found.append(uci)
        return tuple(found)

    def _invalid(self, text: str, notation: str) -> InvalidMove:
        example = "e2e4" if notation == "uci" else "Nf3"
        return InvalidMove(
            f"{text[:40]!r} is no move: write it such as {example}",
            text=text,
            position=self.fen(),
        )

    def _unknown(self, notation: str) -> ValueError:
        names = ", ".join(self._game.notations)
        return ValueError(f"unknown chess notation {notation!r}: there are {names}")

    def format_move(self, move: Move, notation: str = "uci") -> str:
        if notation not in self._game.notations:
            raise self._unknown(notation)
        made = self._by_uci().get(move.uci)
        if made is None:
            raise IllegalMove(f"{move.uci} is not legal here", text=move.uci, position=self.fen())
        return self._board.san(made) if notation == "san" else move.uci

    def material(self) -> tuple[float, float]:
        white, black = (
            sum(value * len(self._board.pieces(kind, side)) for kind, value in VALUES.items())
            for side in chess.COLORS
        )
        return float(white), float(black)

    def facts(self) -> Mapping[str, Fact]:
        board = self._board
        white, black = self.material()
        square = board.ep_square if board.has_legal_en_passant() else None
        last = 100 if self._rules == "standard" else 150
        return {
            "check": board.is_check(),
            "repetitions": self._repetitions(),
            "points_first": white,
            "points_second": black,
            "castling": board.castling_xfen(),
            "en_passant": None if square is None else chess.square_name(square),
            "halfmove_clock": board.halfmove_clock,
            "plies_to_move_rule": max(0, last - board.halfmove_clock),
            "plies": len(self._moves),
        }

    def board_text(self, style: str = "letters") -> str:
        if style not in self._game.board_styles:
            styles = ", ".join(self._game.board_styles)
            raise ValueError(f"unknown board style {style!r}: there are {styles}")
        lines = []
        for rank in range(7, -1, -1):
            pieces = [self._board.piece_at(chess.square(file, rank)) for file in range(8)]
            signs = [
                "." if p is None else p.symbol() if style == "letters" else p.unicode_symbol()
                for p in pieces
            ]
            lines.append(f"{rank + 1} " + " ".join(signs))
        return "\n".join([*lines, "  a b c d e f g h"])
