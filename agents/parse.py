"""Reads one answer: which move it gives, or how it fails to. Pure; never guesses.

The order of attempts (the first that applies decides, and nothing after it is looked at):

1. Thinking (`<think>` and the like, also without its opening tag) is no answer. A block that never
   closes is `truncated`; nothing beside thinking is `empty`, or `truncated` where the answer was
   cut by its token limit.
2. The whole answer is the text of one legal move in the template's own notation.
3. The last structured final answer: a JSON object with a move, `<move>`, `\\boxed{}`,
   `Final Answer:` (English, Korean, Spanish, Chinese). It is final: where it cannot be read, the
   answer fails, and prose is never searched for another.
4. The last line that begins with `Move:` or the like; equally final.
5. The whole answer is one move in a tolerant form, a line of moves (its first), two moves joined by
   `or` (`ambiguous`), a pass, a resignation, a draw offer, or simple words (`knight to f3`).
6. A first or last line that is nothing but a move (not one numbered as another move of the game),
   and sentences that name the move played (`I play …`); all of them must agree, else `ambiguous`.
   Not where the answer was cut.
7. A resignation in so many words, a refusal to play (`refused`); else `unparsable`, or `truncated`
   where the answer was cut.

Where the answer was cut and the text read reaches its very end, it counts only if nothing legal
goes on from it (`exd8` may want `=Q`, `a1a1` may be `a1a10`); else it is `truncated`. A move that
fits several legal moves is `ambiguous` and lists them; one that fits none is `illegal`. Mentioned
squares (`the pawn on e4`) are no move.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from games.base import GameError, GameState

from .answer_forms import Place, cues, last_final, last_label, lines
from .answer_text import Plain, plain
from .base import FailureKind
from .move_text import Reader, Token, null_move, pass_word

PARSER_VERSION = 1

Kind = Literal["move", "resign", "draw_offer"] | FailureKind

_DECORATION = re.compile(
    r"(?:[\s*_~`'\"$#>•·()\[\]{}|,.:=!]|\\(?:text|mathrm|mathbf|textbf)?|</?\w{1,12}\s?/?>|-\s"
    r"|\d{1,3}\s?\.|\d{1,2}\)\s)*"
)
_TAIL = re.compile(r"(?:[\s*_~`'\"$#>()\[\]{}|,.;:!?\\-]|</?\w{1,12}\s?/?>|e\.p\.)*")
_OR = re.compile(r"[*_`'\")]{0,4}\s?(?:/|\b(?:or|and|o|u|y|oder|ou)\b|또는|혹은|아니면|或者?)\s?")
_GAP = re.compile(r"[*_`'\",;)]{0,4}\s(?:\d{1,3}\s?\.+\s?)?[*_`'\"(]{0,4}")
_RESIGN = re.compile(
    r"(?i)(?:i (?:will |must |have to )?|i'll )?resign(?:s|ation)?|i (?:give up|surrender|concede)"
    r"|기권(?:합니다|하겠습니다|할게요|한다|함)?|항복(?:합니다|하겠습니다)?|(?:me )?rindo|abandono"
    r"|认输|投了"
)
_DRAW = re.compile(
    r"(?i)(?:i )?(?:would like to |want to )?(?:offer|propose|accept|agree to|claim)"
    r"(?: you)?(?: an?| the| your)? draw(?: offer)?|draw(?: offer)?"
    r"|무승부(?:를)? ?(?:제안|제의|신청|수락)?(?:합니다|하겠습니다|해요)?"
    r"|(?:ofrezco |acepto )?tablas"
)
_REFUSED = re.compile(
    r"(?i)\s*(?:i'?m sorry|i am sorry|sorry|i apologi[sz]e|as an ai|i'm unable|i am unable"
    r"|i (?:can't|cannot|can not|won't|will not|am not able)\b.{0,40}"
    r"(?:help|assist|play|continue|comply|provide|answer|move)|죄송|미안|lo siento|no puedo)"
)
_PIECES = {
    "chess": {"pawn": "P", "knight": "N", "bishop": "B", "rook": "R", "queen": "Q", "king": "K"},
    "janggi": {
        "soldier": "P",
        "pawn": "P",
        "horse": "N",
        "knight": "N",
        "elephant": "B",
        "chariot": "R",
        "rook": "R",
        "cannon": "C",
        "guard": "A",
        "general": "K",
        "king": "K",
    },
}
_WORDS = re.compile(
    r"(?i)(?:i(?:'ll| will)? )?(?:play |move |moves )?(?:my |the |a )?"
    r"(?:(?P<castle>castles?) ?(?P<wing>king|queen|short|long)[- ]?(?:side)?"
    r"|(?P<piece>[a-z]{4,9})?(?: from)? ?(?P<origin>[a-i](?:10|[1-9]))? ?"
    r"(?:to|takes|captures)(?: on)? (?P<to>[a-i](?:10|[1-9])))"
)
_DENIED = re.compile(
    r"[*_`'\")]{0,4}\s(?:is|was|would be|can|could|does|will)(?: ?not\b|n't\b| illegal| impossible)"
)
_NOTE = re.compile(r"[*_`'\"]{0,4}\s?(?:\(|- |: |, )")
_NUMBER = re.compile(r"(\d{1,3})\s?(\.+)")
_SENTENCE_END = re.compile(r"[.!\n]")
_EN_PASSANT = re.compile(r"\(?en passant\)?|e\.?p\.?")
MOST_TOKENS = 40  # of a line of moves that are looked at
MAX_EXACT = 20  # characters of a text that is tried as a move as it stands


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says. `uci` is set for `move`, and for `illegal` where it was written out;
    `span` are the characters of the answer that were read; `detail` says what was wrong."""

    kind: Kind
    uci: str | None = None
    span: tuple[int, int] | None = None
    detail: str = ""


def parse_answer(
    state: GameState,
    text: str,
    *,
    notation: str = "uci",
    truncated: bool = False,
    reasoning: bool = False,
) -> Reading:
    """Read one answer against a position. Raises nothing, whatever the text.

    `truncated`: the answer ended at its token limit. `reasoning`: the prompt opened a thinking
    block, so the answer begins inside it.
    """
    body = plain(text, thinking=reasoning)
    if body.open_thinking:
        return Reading("truncated", detail="the thinking never ended")
    if not body.text.strip():
        return Reading("truncated" if truncated else "empty")
    return _Answer(state, body, notation, truncated).read()


@dataclass(frozen=True, slots=True)
class _Found:
    """A reading by positions of the plain text."""

    kind: Kind
    start: int
    end: int
    uci: str | None = None
    detail: str = ""


class _Answer:
    """One answer against one position."""

    def __init__(self, state: GameState, body: Plain, notation: str, truncated: bool) -> None:
        self._state, self._body, self._text = state, body, body.text
        self._notation, self._truncated = notation, truncated
        self._reader = Reader(state)

    def read(self) -> Reading:
        found = self._exact() or self._final() or self._whole()
        if found is None and not self._truncated:
            found = self._agreed() or self._in_words()
        if found is None:
            failure: Kind = "truncated" if self._truncated else "unparsable"
            return Reading(failure, detail="no move was given in a form that can be read")
        found = self._unless_cut(found)
        span = self._body.span(found.start, found.end)
        return Reading(found.kind, found.uci, span, found.detail)

    def _exact(self) -> _Found | None:
        text = self._text.strip()
        if len(text) > MAX_EXACT or null_move(text):
            return None
        start = self._text.index(text)
        try:
            move = self._state.parse_move(text, self._notation)
        except GameError:
            return None
        return _Found("move", start, start + len(text), move.uci)

    def _final(self) -> _Found | None:
        place = last_final(self._text) or last_label(self._text)
        return self._place(place) if place is not None else None

    def _place(self, place: Place) -> _Found:
        found = self._at_start(place.start, place.end)
        if found is None:
            said = list(self._cued(place.start, place.end))
            found = said[0] if len(said) == 1 else None
        if found is None:
            detail = "the final answer is no move" if self._text[place.start : place.end] else ""
            found = _Found("unparsable", place.start, place.end, detail=detail)
        return found

    def _cued(self, start: int, end: int) -> Iterator[_Found]:
        """Moves that a sentence between `start` and `end` says are played."""
        for at, verb in cues(self._text[:end], start):
            token = self._token(self._begin(at, end), end)
            if (
                token
                and not self._denied(token)
                and (not verb or verb.match(self._text, token.end))
            ):
                yield self._judge(token)

    def _denied(self, token: Token) -> bool:
        """`e4 is not …`"""
        return _DENIED.match(self._text, token.end) is not None

    def _whole(self) -> _Found | None:
        """The answer as one move, one line of moves, or a phrase."""
        said = lines(self._text)
        if len(said) > 1 or (not said and len(self._text.strip()) > MAX_EXACT):
            return None
        start, end = said[0] if said else (0, len(self._text))
        found = self._at_start(start, end)
        if found is None:
            return None
        alone = self._only_moves(found.end, end) or self._explained(found, end)
        return found if alone else None

    def _agreed(self) -> _Found | None:
        """First and last lines that are a move alone, and cues: one move, or ambiguous."""
        said = lines(self._text)
        found: list[_Found] = []
        for start, end in dict.fromkeys((*said[:1], *said[-1:])):
            one = self._at_start(start, end)
            if one and self._ends(one.end, end) and not self._later(start, one.start):
                found.append(one)
        found.extend(self._cued(0, len(self._text)))
        if len({(one.kind, one.uci) for one in found}) <= 1:
            return found[-1] if found else None
        names = ", ".join(dict.fromkeys(self._text[one.start : one.end] for one in found))
        return replace(found[-1], kind="ambiguous", uci=None, detail=f"several answers: {names}")

    def _later(self, start: int, end: int) -> bool:
        """Whether the number before a move says that it is another move of the game."""
        number = _NUMBER.search(self._text, start, end)
        if number is None:
            return False
        now = self._state.fen().rsplit(" ", 1)[-1]
        others = len(number[2]) > 1 and self._state.turn == 0  # `24...` is Black's
        return others or number[1] not in ("1", now)

    def _ends(self, start: int, end: int) -> bool:
        """Whether only decoration follows."""
        tail = _TAIL.match(self._text, start, end)
        return tail is not None and tail.end() == end

    def _explained(self, found: _Found, end: int) -> bool:
        """Whether only a note follows (`Nf3 (developing)`) that holds no other legal move."""
        if found.kind != "move" or not _NOTE.match(self._text, found.end, end):
            return False
        for other in islice(self._reader.tokens(self._text, found.end, end), MOST_TOKENS + 1):
            if other.candidates and other.candidates != (found.uci,):
                return False
        return True

    def _in_words(self) -> _Found | None:
        """A first sentence that resigns, or a refusal."""
        start = self._begin(0)
        stop = _SENTENCE_END.search(self._text, start)
        end = stop.start() if stop else len(self._text)
        if _RESIGN.fullmatch(self._text[start:end].strip()):
            return _Found("resign", start, end)
        if _REFUSED.match(self._text):
            return _Found("refused", 0, min(len(self._text), 200))
        return None

    def _begin(self, start: int, end: int | None = None) -> int:
        """Past markdown, quotes, tags and move numbers."""
        found = _DECORATION.match(self._text, start, len(self._text) if end is None else end)
        return found.end() if found else start

    def _at_start(self, start: int, end: int) -> _Found | None:
        """What stands at the start of a stretch, decoration aside; None: nothing that is known."""
        text = self._text[start:end]
        bare = start + len(text) - len(text.lstrip())
        at = self._begin(start, end)
        if found := self._null_or_pass(bare, end) or self._null_or_pass(at, end):
            return found
        token = self._token(at, end)
        if token is not None and not self._denied(token):
            return self._with_next(token, end)
        if found := self._phrase(at, end):
            return found
        if self._reader.grammar.off_board.match(self._text, at, end):
            return _Found("unparsable", at, end, detail="not squares of this board")
        return None

    def _null_or_pass(self, at: int, end: int) -> _Found | None:
        passes = self._reader.passes()
        if (stop := pass_word(self._text, at)) is not None and stop <= end:
            rest = self._text[stop:end]
            if self._reader.grammar.game == "janggi" and not re.search(r"\w{3}", rest):
                if passes:
                    return _Found("move", at, stop, passes[0])
                return _Found("illegal", at, stop, detail="passing is not legal here")
        if found := null_move(self._text, at):
            if self._reader.grammar.game == "janggi":
                return _Found("unparsable", at, found.end(), detail="a pass is written `pass`")
            return _Found("illegal", at, found.end(), detail="there is no null move in chess")
        return None

    def _token(self, at: int, end: int) -> Token | None:
        token = self._reader.at(self._text, at)
        if token is None or not token.candidates:
            spaced = self._reader.spaced(self._text, at)
            if spaced is not None and (spaced.candidates or token is None):
                token = spaced
        return token if token is not None and token.start < end else None

    def _judge(self, token: Token) -> _Found:
        found = token.candidates
        if len(found) == 1:
            return _Found("move", token.start, token.end, found[0])
        if found:
            return _Found("ambiguous", token.start, token.end, detail=", ".join(found))
        detail = f"{token.text.strip()} is not legal here"
        return _Found("illegal", token.start, token.end, token.uci, detail)

    def _with_next(self, token: Token, end: int) -> _Found:
        """A token, unless a second one beside it would be as good an answer."""
        joined = _OR.match(self._text, token.end, end)
        gap = joined or _GAP.match(self._text, token.end, end)
        second = self._token(gap.end(), end) if gap else None
        if (
            second is not None
            and second.candidates != token.candidates
            and (joined or (second.candidates and token.candidates))
        ):
            both = f"{token.text.strip()}, {second.text.strip()}"
            return _Found("ambiguous", token.start, second.end, detail=f"several moves: {both}")
        return self._judge(token)

    def _phrase(self, at: int, end: int) -> _Found | None:
        """Resignation, draw offer or simple words, and nothing else."""
        text = self._text[at:end].rstrip(" .!?*_`'\"")
        stop = at + len(text)
        if _RESIGN.fullmatch(text):
            return _Found("resign", at, stop)
        if _DRAW.fullmatch(text):
            return _Found("draw_offer", at, stop)
        if (words := _WORDS.fullmatch(text)) is None:
            return None
        candidates = self._candidates_in_words(words)
        if candidates is None:
            return None
        return self._judge(Token(at, stop, text, candidates))

    def _candidates_in_words(self, words: re.Match[str]) -> tuple[str, ...] | None:
        game = self._reader.grammar.game
        if words["castle"]:
            short = words["wing"].lower() in ("king", "short")
            token = self._reader.at("O-O" if short else "O-O-O") if game == "chess" else None
            return token.candidates if token else None
        name, origin, to = words["piece"], words["origin"], words["to"].lower()
        piece = _PIECES.get(game, {}).get(name.lower()) if name else None
        if (name and piece is None) or not (name or origin):
            return None
        moves = self._reader.named(piece, to) if piece else self._reader.legal
        return tuple(uci for uci in moves if not origin or uci.startswith(origin.lower() + to))

    def _only_moves(self, start: int, end: int) -> bool:
        """Whether nothing but moves, numbers and decoration follows up to `end`."""
        at = start
        for _ in range(MOST_TOKENS):
            after = _TAIL.match(self._text, at, end)
            at = self._begin(after.end() if after else at, end)
            if at >= end:
                return True
            token = self._reader.at(self._text, at) or self._reader.spaced(self._text, at)
            word = _EN_PASSANT.match(self._text, at, end)
            if (token is None or token.end > end) and word is None:
                return False
            at = word.end() if word else token.end if token else end
        return False

    def _unless_cut(self, found: _Found) -> _Found:
        """The reading, unless the answer was cut just where it ends and might have gone on."""
        if not self._truncated or found.end < len(self._text):
            return found
        if found.kind in ("resign", "draw_offer"):
            return found
        if found.kind == "move" and found.uci and not self._goes_on(found.uci):
            return found
        return replace(found, kind="truncated", uci=None, detail="cut off inside the move")

    def _goes_on(self, uci: str) -> bool:
        legal = self._reader.legal
        if any(other != uci and other.startswith(uci) for other in legal):
            return True
        castles = {"e1g1": "e1c1", "e8g8": "e8c8"}
        return castles.get(uci) in legal
