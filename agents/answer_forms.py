"""Where an answer says what its move is: final forms, labels, cues. Finds places, reads no moves.

Works on plain text (`answer_text`). Every search is linear in the text.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

MOST_CUES = 32  # looked at in one answer
MOST_OBJECTS = 32
_KEYS = (
    "move|final_move|best_move|bestmove|chosen_move|next_move|answer|final_answer|final answer|"
    "action|uci|san|수|착수|정답|jugada|movimiento|respuesta"
)
_TAGS = "move|final_move|best_move|answer|final_answer|final|uci|san|action|result|output"
_JSON_KEY = re.compile(rf"""(?i)["'](?:{_KEYS})["']\s*:\s*(?:["']([^"'\n]{{0,200}})|(\w+))""")
_TAG = re.compile(rf"(?i)<({_TAGS})>(?:\s|<\w{{1,10}}>){{0,9}}([^<]{{0,200}}?)\s{{0,9}}(?=</|\Z)")
_BOXED = re.compile(r"\\?boxed\s?\{\s?(?:\\?(?:text|mathrm|mathbf|textbf)\s?\{)?([^{}]{0,100})")
_END = r"[ *_`\"')\]]{0,6}(?:\b(?:is|es)\b|은|는|是)?[ *_]{0,4}(?:[:=]|->?[ ]|\n|\b(?=[*_`]))"
_IS = r"[ *_]{0,4}\b(?:is|es)\b\s?:?"
_FINAL = re.compile(
    r"(?i)(?:\b(?:final|chosen|selected)[ _](?:answer|move|decision|choice|response)"
    r"|최종 ?(?:답변?|수|결정|선택|착수|정답)|정답"
    r"|\b(?:respuesta|jugada|movimiento|decisión) final|最[终終](?:答案|着法|回答)|答案)"
    rf"(?:{_END}|{_IS})"
)
_LABEL = re.compile(
    r"(?im)^[\s*_#>\-]{0,12}(?:(?:my|the|best|mi|mejor|next|내|제|다음) )*"
    r"(?:move|answer|action|jugada|movimiento|respuesta|착수|수|답변?)[ *_]{0,4}[:=]"
)
_START = r"(?:^|(?<=[.!?:;\n])\s{0,3}|\b(?:so|therefore|thus|hence|por tanto|entonces|따라서),?\s)"
_CUE = re.compile(
    rf"(?im){_START}(?:"
    r"i(?:'ll| will| am going to)?(?: now)? (?:play|choose|move|pick|select|go with|go for|answer)"
    r"|(?:my|the) (?:(?:final|best|chosen|strongest|correct) )?(?:move|answer|choice|reply)"
    r"(?: here)? (?:is|will be)"
    r"|(?:yo )?(?:juego|jugar[eé]|elijo|muevo)"
    r"|(?:mi|la)(?: mejor)? (?:jugada|respuesta|movimiento)(?: final)? es"
    r"|(?:제|내|나의|저의|다음|최선의)(?: 다음)? 수는"
    r"|let(?:'s| me) play"
    r"):?\s"
)
_KOREAN_VERB = re.compile(
    r"\s?(?:을|를|으로|로)?\s?(?:두겠|둡니다|둔다|두자|두었|선택|갑니다|가겠)"
)
_KOREAN_SUBJECT = re.compile(r"(?m)(?:^|[.!?\n]\s{0,3})(?:저는|나는|제가|내가|그래서|따라서) ")


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the text that is said to be the answer."""

    start: int
    end: int
    form: str  # json, tag, box, final, label


def last_final(text: str) -> Place | None:
    """The last structured final answer: JSON, a tag, a box, a `Final Answer:` label.

    An empty one counts only where there is no other.
    """
    objects = list(_objects(text))
    places = [place for _, place in objects if place is not None]
    if not objects:
        places += _broken_json(text)
    inside = [span for span, place in objects if place is not None]
    for place in (*_tags(text), *_labels(_FINAL, text, "final")):
        if not any(start <= place.start < end for start, end in inside):
            places.append(place)
    return _last(text, places)


def last_label(text: str) -> Place | None:
    """The last line that begins with `Move:` or the like."""
    return _last(text, list(_labels(_LABEL, text, "label")))


def cues(text: str, start: int = 0) -> Iterator[tuple[int, re.Pattern[str] | None]]:
    """Where a move should begin because the sentence says it is the one (`I play …`), and what
    must follow the move where the sentence says so only after it (`…로 두겠습니다`)."""
    for found in islice(_CUE.finditer(text, start), MOST_CUES):
        yield found.end(), None
    for found in islice(_KOREAN_SUBJECT.finditer(text, start), MOST_CUES):
        yield found.end(), _KOREAN_VERB


def lines(text: str) -> list[tuple[int, int]]:
    """Start and end of every line that holds a letter or digit and is no code fence."""
    found = []
    start = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if any(char.isalnum() for char in bare) and not bare.startswith("```"):
            found.append((start, start + len(line.rstrip())))
        start += len(line)
    return found


def _last(text: str, places: list[Place]) -> Place | None:
    filled = [place for place in places if text[place.start : place.end].strip(" *_`\"'\n{}<>")]
    return max(filled or places, key=lambda place: place.start, default=None)


def _objects(text: str) -> Iterator[tuple[tuple[int, int], Place | None]]:
    """JSON objects at the top level, with the place of their move if they have one."""
    decoder = json.JSONDecoder()
    at, tries = text.find("{"), 0
    while at >= 0 and tries < MOST_OBJECTS:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(value, dict):
            yield (at, end), _move_in(text, value, at, end)
        at = text.find("{", end)


def _move_in(text: str, value: dict[str, Any], start: int, end: int) -> Place | None:
    known = _KEYS.split("|")
    keys = [key for key in value if key.lower() in known]
    if not keys:
        return None
    key = max(keys, key=lambda k: -known.index(k.lower()))
    answer = value[key]
    written = answer if isinstance(answer, str) else ""
    if isinstance(answer, dict) and isinstance(answer.get("move"), str):
        written = answer["move"]
    found = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:\s*").search(
        text, start, end
    )
    at = text.find(written, found.end() if found else start, end) if written else -1
    return Place(at, at + len(written), "json") if at >= 0 else Place(start, start, "json")


def _broken_json(text: str) -> Iterator[Place]:
    """`"move": "…"` outside any object that parses."""
    for found in _JSON_KEY.finditer(text):
        group = 1 if found[1] is not None else 2
        yield Place(found.start(group), found.end(group), "json")


def _tags(text: str) -> Iterator[Place]:
    for found in _TAG.finditer(text):
        yield Place(found.start(2), found.end(2), "tag")
    for found in _BOXED.finditer(text):
        yield Place(found.start(1), found.end(1), "box")


def _labels(pattern: re.Pattern[str], text: str, form: str) -> Iterator[Place]:
    """From a label to the end of its line, or of the next line that says anything."""
    for found in pattern.finditer(text):
        start = found.end()
        end = _line_end(text, start)
        for _ in range(4):
            said = text[start:end].strip()
            if end >= len(text) or (
                any(c.isalnum() or c in "-@" for c in said) and not said.startswith("```")
            ):
                break
            start, end = end + 1, _line_end(text, end + 1)
        yield Place(start, max(start, end), form)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
