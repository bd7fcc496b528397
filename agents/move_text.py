"""One move as people and models write it → the legal moves it can mean.

Chess: UCI, LAN, SAN with or without `x`, `=`, `+`; castling with any letter or digit; promotions
`e8=Q e8Q e8(Q) e8/Q`. Janggi: UCI with rank 10, a piece letter before it, Fairy-Stockfish's short
form, Korean and Latin KJA coordinates, passes. Case decides: `bxc3` is the pawn, `Bxc3` the bishop;
only a token in capitals throughout may be either, and is then refused if both are legal.
Nothing is guessed: two legal moves that fit are two candidates.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from games.base import GameState

_CJK = "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af"
BEFORE = rf"(?<![^\W{_CJK}])"  # a word may end in Hangul or Hanzi without a space
AFTER = rf"(?![^\W{_CJK}])"

_PROMOTION = r"(?:\s?=\s?(?P<p1>[A-Za-z])|\(=?(?P<p2>[A-Za-z])\)|/?(?P<p3>[QRBNKqrbnk]))?"
_MARKS = r"(?:\s?(?:e\.\s?p\.|ep\b|e\.p\b))?[+#!?†‡]*"
_PIECES_KOREAN = {
    **dict.fromkeys("차車俥", "R"),
    **dict.fromkeys("포包砲炮", "C"),
    **dict.fromkeys("마馬傌", "N"),
    **dict.fromkeys("상象像", "B"),
    **dict.fromkeys("사士仕", "A"),
    **dict.fromkeys("졸卒병兵", "P"),
    **dict.fromkeys("장왕궁將帥", "K"),
}
_PASS = re.compile(
    r"(?i)(?:한 ?수 ?쉼(?:니다|입니다|합니다|하겠습니다)?|(?:i (?:will )?)?pass|pas(?:o|ar)|@@@@)"
    r"(?!\w)"
)
_NULL = re.compile(r"(?:(?<!-)--(?!-)|0000|Z0|@@@@)(?!\w)")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a token says of a move; None where it says nothing."""

    to: str
    piece: str | None = None  # FEN letter, upper case
    origin: str | None = None  # square
    file: str | None = None
    rank: str | None = None
    promotion: str | None = None  # lower case
    takes: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """A move text found at `start` … `end`; `candidates` are the legal moves (UCI) that fit it."""

    start: int
    end: int
    text: str
    candidates: tuple[str, ...]
    uci: str | None = None  # the move where it is written out, legal or not


@dataclass(frozen=True, slots=True)
class Grammar:
    """How one game's moves are written."""

    game: str
    move: re.Pattern[str]  # finds a token, any case
    long: re.Pattern[str]
    short: re.Pattern[str]
    pieces: Mapping[str, str]  # letter as written → FEN letter
    spaced: re.Pattern[str]  # two squares with a gap
    off_board: re.Pattern[str]


def _grammar(game: str, square: str, files: str, ranks: str, pieces: str, lower: str) -> Grammar:
    letter = f"[{pieces}{lower}]"
    optional = "?" if game == "chess" else ""  # in janggi a short form always names its piece
    long = (
        rf"(?P<piece>{letter})?(?P<origin>{square})(?P<sep>[-x:>]{{0,2}})(?P<to>{square})"
        + _PROMOTION
    )
    short = (
        rf"(?P<piece>{letter}){optional}(?P<file>[{files}])?(?P<rank>{ranks})?"
        rf"(?P<sep>[-x:])?(?P<to>{square})" + _PROMOTION
    )
    strip = re.compile(r"\?P<\w+>")
    either = f"(?:{strip.sub('?:', long)}|{strip.sub('?:', short)})"
    letters = {c: c for c in pieces} | {c: c.upper() for c in lower} | {"H": "N", "E": "B"}
    return Grammar(
        game,
        re.compile(rf"{BEFORE}(?i:{either}){_MARKS}{AFTER}"),
        re.compile(long + _MARKS),
        re.compile(short + _MARKS),
        {k: v for k, v in letters.items() if k in pieces + lower},
        re.compile(rf"{BEFORE}(?i:({square})\s(?:to\s|-\s)?({square})){_PROMOTION}{AFTER}"),
        re.compile(rf"{BEFORE}(?i:[a-z]\d{{1,2}}[- x]?[a-z]\d{{1,2}})(?![\d])"),
    )


_CHESS = _grammar("chess", "[a-h][1-8](?!\\d)", "a-h", "[1-8]", "KQRBNP", "kqrn")
_JANGGI = _grammar("janggi", "[a-i](?:10|[1-9])(?!\\d)", "a-i", "(?:10|[1-9])", "KRHNEBACP", "")
GRAMMARS: Mapping[str, Grammar] = {"chess": _CHESS, "janggi": _JANGGI}

_CASTLE = re.compile(rf"{BEFORE}(?:([O0o])-\1(-\1)?){_MARKS}(?![\w-])")
_KOREAN = re.compile(
    rf"(?<!\d)(\d\d)\s?[초한楚漢]?\s?([{''.join(_PIECES_KOREAN)}])\s?(\d\d)(?!\d)"
    rf"(?:타?[{''.join(_PIECES_KOREAN)}](?!군))?(?:\s?(?:장군|멍군|외통))*"
)
_KJA_LATIN = re.compile(rf"{BEFORE}([KRHNEBACP])(\d\d)[-x](\d\d)(?:[A-Z])?{_MARKS}{AFTER}")


class Reader:
    """Reads move texts against one position. Cheap to make; looks at the board when first asked."""

    def __init__(self, state: GameState) -> None:
        self.grammar = GRAMMARS.get(state.game.name, _CHESS)
        self.legal = tuple(move.uci for move in state.legal_moves())
        self._legal = frozenset(self.legal)
        self._state = state
        self._pieces: dict[str, str] | None = None

    def at(self, text: str, start: int = 0) -> Token | None:
        """The move text that begins exactly at `start`; None where none does."""
        if self.grammar.game == "chess" and (found := _CASTLE.match(text, start)):
            return self._castle(found)
        if (found := self.grammar.move.match(text, start)) and (token := self._token(found)):
            return token
        if self.grammar.game == "janggi":
            return self._korean(text, start)
        return None

    def tokens(self, text: str, start: int, end: int) -> Iterator[Token]:
        """Move texts anywhere between `start` and `end`."""
        for found in self.grammar.move.finditer(text, start, end):
            if token := self._token(found):
                yield token

    def spaced(self, text: str, start: int = 0) -> Token | None:
        """Two squares with a gap (`g1 f3`), which only one legal move or none can be."""
        found = self.grammar.spaced.match(text, start)
        if found is None:
            return None
        uci = (found[1] + found[2] + (found["p1"] or found["p2"] or found["p3"] or "")).lower()
        candidates = (uci,) if uci in self._legal else ()
        return Token(found.start(), found.end(), found[0], candidates, uci)

    def passes(self) -> tuple[str, ...]:
        """The legal pass (the general stays where it is); empty in chess and where forbidden."""
        return tuple(uci for uci in self.legal if _halves(uci)[0] == _halves(uci)[1])

    def resolve(self, shapes: Iterable[Shape]) -> tuple[str, ...]:
        """The legal moves that fit any of the shapes, sorted."""
        fitting = {uci for shape in shapes for uci in self.legal if self._fits(uci, shape)}
        return tuple(sorted(fitting))

    def named(self, piece: str, square: str) -> tuple[str, ...]:
        """Legal moves of that piece (FEN letter) to that square."""
        return self.resolve([Shape(square, piece=piece, takes=True)])

    def _castle(self, found: re.Match[str]) -> Token:
        rank = "1" if self._state.turn == 0 else "8"
        uci = f"e{rank}{'c' if found[2] else 'g'}{rank}"
        legal = uci in self._legal and self._piece(f"e{rank}") == "K"
        return Token(found.start(), found.end(), found[0], (uci,) if legal else (), uci)

    def _token(self, found: re.Match[str]) -> Token | None:
        shapes = self._shapes(found[0])
        if not shapes:
            return None
        first = shapes[0]
        written = first.origin + first.to + (first.promotion or "") if first.origin else None
        return Token(found.start(), found.end(), found[0], self.resolve(shapes), written)

    def _korean(self, text: str, start: int) -> Token | None:
        if found := _KOREAN.match(text, start):
            piece = _PIECES_KOREAN[found[2]]
            squares = (found[1], found[3])
        elif found := _KJA_LATIN.match(text, start):
            piece, squares = _JANGGI.pieces[found[1]], (found[2], found[3])
        else:
            return None
        origin, to = (_kja_square(digits) for digits in squares)
        if origin is None or to is None:
            return Token(found.start(), found.end(), found[0], ())
        candidates = self.resolve([Shape(to, piece=piece, origin=origin)])
        return Token(found.start(), found.end(), found[0], candidates, origin + to)

    def _shapes(self, token: str) -> list[Shape]:
        """What the token can say: one reading as written, else those its capitals hide."""
        if shape := self._shape(token):
            return [shape]
        lowered = token.lower()
        spellings = [lowered] if token[0].isupper() else []
        if token.isupper():
            spellings.append(lowered[0].upper() + lowered[1:])
        elif not token[1:].islower():
            return []
        return [shape for spelling in spellings if (shape := self._shape(spelling))]

    def _shape(self, token: str) -> Shape | None:
        grammar = self.grammar
        found = grammar.long.fullmatch(token)
        if found is None and (found := grammar.short.fullmatch(token)) is None:
            return None
        parts = found.groupdict()
        promotion = parts["p1"] or parts["p2"] or parts["p3"]
        letter = parts["piece"]
        piece = grammar.pieces[letter] if letter else None
        if "origin" not in parts and piece is None:
            piece = "P"
        return Shape(
            parts["to"],
            piece,
            parts.get("origin"),
            parts.get("file"),
            parts.get("rank"),
            promotion.lower() if promotion else None,
            "x" in parts["sep"] or ":" in parts["sep"] if parts["sep"] else False,
        )

    def _fits(self, uci: str, shape: Shape) -> bool:
        origin, to, promotion = _halves(uci)
        if to != shape.to or (shape.origin and origin != shape.origin):
            return False
        if (shape.file and origin[0] != shape.file) or (shape.rank and origin[1:] != shape.rank):
            return False
        if shape.promotion != (promotion or None) and (shape.promotion or not promotion):
            return False
        if shape.piece is None:
            return True
        if self._piece(origin) != shape.piece:
            return False
        straight = shape.piece != "P" or self.grammar.game != "chess" or origin[0] == to[0]
        return straight or bool(shape.file or shape.origin or shape.takes)

    def _piece(self, square: str) -> str:
        if self._pieces is None:
            self._pieces = board(self._state.fen())
        return self._pieces.get(square, "")


def board(fen: str) -> dict[str, str]:
    """Square → piece letter in upper case, from a FEN's placement."""
    rows = fen.split(" ", 1)[0].split("/")
    pieces: dict[str, str] = {}
    for row, text in enumerate(rows):
        file = 0
        for char in text:
            if char.isdigit():
                file += int(char)
            elif char.isalpha():
                pieces[f"{chr(97 + file)}{len(rows) - row}"] = char.upper()
                file += 1
    return pieces


def null_move(text: str, start: int = 0) -> re.Match[str] | None:
    """A null move (`--`, `0000`, `Z0`, `@@@@`) that begins at `start`."""
    return _NULL.match(text, start)


def pass_word(text: str, start: int = 0) -> int | None:
    """Where a word that means to pass ends, if one begins at `start`."""
    found = _PASS.match(text, start)
    return found.end() if found else None


@lru_cache(maxsize=20_000)
def _halves(uci: str) -> tuple[str, str, str]:
    """Origin, target and promotion of a UCI move with one- or two-digit ranks."""
    i = 3 if uci[2:3].isdigit() else 2
    j = i + 3 if uci[i + 2 : i + 3].isdigit() else i + 2
    return uci[:i], uci[i:j], uci[j:]


def _kja_square(digits: str) -> str | None:
    """UCI square of a Korean one: rank from Han's edge (0 = 10th), then file from Cho's left."""
    rank, file = int(digits[0]), int(digits[1])
    if file == 0:
        return None
    return f"{chr(96 + file)}{11 - rank if rank else 1}"
