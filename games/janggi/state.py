"""A janggi position with the history its rules need, immutable to callers.

Ends are looked for in this order: a pass that accepts bikjang, then two passes in a row (both end
the game at once, so no move is legal after them); checkmate; repetition (perpetual check, then
shuffling, then the count); no capture for too long; the cap on plies. As in Fairy-Stockfish,
bikjang outranks mate: a mated side that stands in bikjang may pass. Fairy-Stockfish looks at the
no-capture count before repetition; ours after.

Facts, beside those every game has: `generals_facing`, `bikjang` (facing, and the rules count it),
`pass_effect` (`illegal`, `continues`, or how passing now would end the game for the side to move:
`wins`, `loses`, `draws`) with `pass_ends_by` (the termination or None), `last_was_pass`,
`passes_first`, `passes_second`, `plies`, `plies_since_capture`, `plies_to_cap` and
`plies_to_no_capture_end` (None where the rules have no such end).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from games.base import Fact, IllegalMove, Move, Outcome, Side

from . import movement, notations
from .fen import Position, format_fen, parse_fen
from .repetition import Cause, is_forbidden, repetition_end, times
from .rules import JanggiRules
from .tables import CODES, GENERAL, HAN, KINDS, MOVES, ORDER, POINTS, VALUES
from .text import board_text

if TYPE_CHECKING:
    from .game import JanggiGame


class JanggiState:
    """One position; `JanggiGame.start` makes the first, `apply` every other."""

    __slots__ = (
        "_bikjang",
        "_codes",
        "_game",
        "_general_captured",
        "_history",
        "_moves",
        "_passed",
        "_position",
        "_rule_set",
        "_rules",
        "_start_fen",
        "_stopped",
    )

    def __init__(self, game: JanggiGame, rules: str, fen: str) -> None:
        """The position of a FEN under a named rule set, with no past. Raises InvalidPosition."""
        self._game = game
        self._rules = rules
        self._rule_set = game.presets[rules]
        self._position = parse_fen(fen, any_material=self._rule_set.any_material)
        self._start_fen = format_fen(self._position)
        self._moves: tuple[Move, ...] = ()
        self._history: tuple[bytes, ...] = (self._position.board,)
        self._passed = self._general_captured = False
        self._stopped: str | None = None
        self._bikjang = self._counts_bikjang()
        self._codes: list[int] | None = None

    def _after(self, code: int) -> JanggiState:
        origin, target = divmod(code, POINTS)
        here = self._position
        board = bytearray(here.board)
        piece, taken = board[origin], board[target] if origin != target else 0
        board[origin] = 0
        board[target] = piece
        new = object.__new__(JanggiState)
        new._game, new._rules, new._rule_set = self._game, self._rules, self._rule_set
        new._start_fen = self._start_fen
        clock = 0 if taken else here.clock + 1
        turn: Side = 1 if here.turn == 0 else 0
        new._position = Position(bytes(board), turn, clock, here.number + here.turn)
        new._moves = (*self._moves, MOVES[code])
        past = () if taken else self._history
        new._history = (*past, new._position.board)
        new._passed = origin == target
        new._general_captured = bool(taken) and piece & 7 == GENERAL
        new._stopped = None
        if new._passed:
            new._stopped = self._stopped_by_pass()
        new._bikjang = new._counts_bikjang()
        new._codes = None
        return new

    def _stopped_by_pass(self) -> str | None:
        if self._bikjang:
            return "bikjang"
        twice = self._passed and self._rule_set.double_pass != "off"
        return "double_pass" if twice else None

    @property
    def game(self) -> JanggiGame:
        return self._game

    @property
    def rules(self) -> str:
        return self._rules

    @property
    def rule_set(self) -> JanggiRules:
        return self._rule_set

    @property
    def turn(self) -> Side:
        return self._position.turn

    @property
    def board(self) -> bytes:
        """The 90 pieces (`tables`)."""
        return self._position.board

    @property
    def start_fen(self) -> str:
        return self._start_fen

    @property
    def moves(self) -> tuple[Move, ...]:
        return self._moves

    def _counts_bikjang(self) -> bool:
        rules = self._rule_set
        if rules.bikjang == "off" or not movement.facing(self.board):
            return False
        if rules.bikjang_below is None:
            return True
        if rules.bikjang_general_capture and self._general_captured:
            return True
        return max(self.material()) < rules.bikjang_below

    def _legal(self) -> list[int]:
        if self._codes is None:
            self._codes = [] if self._stopped else self._find_legal()
        return self._codes

    def _find_legal(self) -> list[int]:
        codes = movement.legal(self.board, self.turn, self._bikjang)
        rules = self._rule_set
        if rules.repetition == "forbid" and len(self._history) >= 4 and not self.is_check():
            least = rules.repetition_below
            if least is None or min(self.material()) >= least:
                count = rules.repetition_count
                codes = [c for c in codes if not is_forbidden(self._history, c, count)]
        codes.sort(key=ORDER.__getitem__)
        return codes

    def legal_moves(self) -> tuple[Move, ...]:
        return tuple([MOVES[code] for code in self._legal()])

    def apply(self, move: Move) -> JanggiState:
        code = CODES.get(move.uci)
        if code is None or code not in self._legal():
            raise IllegalMove(f"{move.uci} is not legal here", text=move.uci, position=self.fen())
        return self._after(code)

    def outcome(self) -> Outcome | None:
        rules = self._rule_set
        if self._stopped == "bikjang":
            return self._end("bikjang", rules.bikjang)
        if self._stopped:
            return self._end("double_pass", rules.double_pass)
        if self.is_check() and not self._legal():
            return Outcome(self._other(), "checkmate")
        repeated = repetition_end(self._history, self._moves, self.turn, rules)
        if repeated is not None:
            return self._repetition(*repeated)
        if rules.no_capture_plies is not None and self._position.clock >= rules.no_capture_plies:
            return self._end("no_capture", rules.no_capture_result)
        if rules.max_plies is not None and len(self._moves) >= rules.max_plies:
            return self._end("max_plies", rules.max_plies_result)
        return None

    def _other(self) -> Side:
        return 1 if self.turn == 0 else 0

    def _repetition(self, cause: Cause, loser: Side | None) -> Outcome:
        if loser is None:
            return self._end("repetition", self._rule_set.repetition)
        name = "perpetual_check_loss" if cause == "perpetual_check" else "repetition_loss"
        return Outcome(1 if loser == 0 else 0, name)

    def _end(self, cause: str, by: str) -> Outcome:
        cho, han = self.material()
        if by != "points" or cho == han:
            return Outcome(None, f"{cause}_draw")
        return Outcome(0 if cho > han else 1, f"{cause}_points")

    def fen(self) -> str:
        return format_fen(self._position)

    def is_check(self) -> bool:
        return movement.in_check(self.board, self.turn)

    def parse_move(self, text: str, notation: str = "uci") -> Move:
        return notations.parse_move(self, text, notation)

    def format_move(self, move: Move, notation: str = "uci") -> str:
        return notations.format_move(self, move, notation)

    def material(self) -> tuple[float, float]:
        board = self.board
        cho = sum(VALUES[kind] * board.count(kind) for kind in KINDS)
        han = sum(VALUES[kind] * board.count(kind | HAN) for kind in KINDS)
        return float(cho), han + self._rule_set.deom

    def facts(self) -> Mapping[str, Fact]:
        rules, clock, plies = self._rule_set, self._position.clock, len(self._moves)
        cho, han = self.material()
        effect, ends_by = self._pass_effect()
        passed = [move.uci[: len(move.uci) // 2] * 2 == move.uci for move in self._moves]
        first = 0 if self.turn == plies % 2 else 1
        cap, quiet = rules.max_plies, rules.no_capture_plies
        return {
            "check": self.is_check(),
            "repetitions": times(self._history),
            "points_first": cho,
            "points_second": han,
            "generals_facing": movement.facing(self.board),
            "bikjang": self._bikjang,
            "pass_effect": effect,
            "pass_ends_by": ends_by,
            "last_was_pass": self._passed,
            "passes_first": sum(passed[first::2]),
            "passes_second": sum(passed[1 - first :: 2]),
            "plies": plies,
            "plies_since_capture": clock,
            "plies_to_cap": None if cap is None else max(0, cap - plies),
            "plies_to_no_capture_end": None if quiet is None else max(0, quiet - clock),
        }

    def _pass_effect(self) -> tuple[str, str | None]:
        general = self.board.index(GENERAL | self.turn << 3)
        code = general * POINTS + general
        if code not in self._legal():
            return "illegal", None
        end = self._after(code).outcome()
        if end is None:
            return "continues", None
        if end.winner is None:
            return "draws", end.termination
        return ("wins" if end.winner == self.turn else "loses"), end.termination

    def board_text(self, style: str = "letters") -> str:
        return board_text(self.board, style)
