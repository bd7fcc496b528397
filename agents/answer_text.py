"""An answer as typed → the same answer in plain ASCII where that loses nothing, outside thinking.

Knows no game. Every position in the plain text leads back to the characters it came from.
"""

import html
import re
from dataclasses import dataclass, field

MAX_CHARS = 50_000  # of an answer that are looked at: its end

_DASHES = "‐‑‒–—―−﹣ー" + "→➔➜⟶⇒"
_SPACES = "\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000"
_TABLE = (
    {0xFF01 + i: chr(0x21 + i) for i in range(94)}  # full-width forms
    | {ord(c): "-" for c in _DASHES}
    | {ord(c): " " for c in _SPACES}
    | {ord(c): '"' for c in "“”„«»「」『』"}
    | {ord(c): "'" for c in "‘’‚´"}
    | {ord(c): p for s in ("♔♕♖♗♘♙", "♚♛♜♝♞♟") for c, p in zip(s, "KQRBNP", strict=True)}
    | {ord("×"): "x", ord("…"): ".", ord("。"): ".", ord("．"): ".", ord("、"): ","}
)
_GONE = re.compile("&#?[0-9a-zA-Z]{1,8};|[\u200b-\u200f\u2060\ufeff\ufe0e\ufe0f\u00ad]")
_THINK = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Plain:
    """`text` is read; `span` gives the characters of the answer that a part of it came from."""

    text: str
    offset: int = 0
    _starts: tuple[int, ...] = field(default=())  # answer index of each character; () = identity
    open_thinking: bool = False

    def span(self, start: int, end: int) -> tuple[int, int]:
        if self._starts:
            last = self._starts[end - 1] + 1 if end > start else self._starts[start]
            return self.offset + self._starts[start], self.offset + last
        return self.offset + start, self.offset + end


def plain(answer: str, *, thinking: bool = False) -> Plain:
    """The answer outside its thinking blocks, in plain characters.

    `thinking`: the prompt already opened a thinking block. Thinking is blanked, so that positions
    stay; a block that never closes sets `open_thinking`. Spans are by the whole answer.
    """
    text, still_open = _blank_thinking(answer, thinking)
    offset = max(0, len(text) - MAX_CHARS)
    text = text[offset:]
    if text.isascii() and "&" not in text:
        return Plain(text, offset, (), still_open)
    text = text.translate(_TABLE)
    if _GONE.search(text) is None:
        return Plain(text, offset, (), still_open)
    return _without_gone(text, offset, still_open)


def _without_gone(text: str, offset: int, still_open: bool) -> Plain:
    parts: list[str] = []
    starts: list[int] = []
    done = 0
    for found in _GONE.finditer(text):
        parts.append(text[done : found.start()])
        starts.extend(range(done, found.start()))
        code = found[0]
        shown = html.unescape(code).translate(_TABLE) if code[0] == "&" else ""
        parts.append(shown)
        starts.extend([found.start()] * len(shown))
        done = found.end()
    parts.append(text[done:])
    starts.extend(range(done, len(text) + 1))
    return Plain("".join(parts), offset, tuple(starts), still_open)


def _blank_thinking(answer: str, thinking: bool) -> tuple[str, bool]:
    if "<" not in answer:
        return ("", True) if thinking else (answer, False)
    kept: list[str] = []
    done, depth = 0, int(thinking)
    for tag in _THINK.finditer(answer):
        closes = tag[1] == "/"
        if closes and not depth:  # without an opening tag: everything before it was thinking
            kept = [" " * tag.end()]
        elif depth:
            kept.append(" " * (tag.end() - done))
        else:
            kept += [answer[done : tag.start()], " " * (tag.end() - tag.start())]
        depth = 0 if closes else 1
        done = tag.end()
    rest = answer[done:]
    kept.append(" " * len(rest) if depth else rest)
    return "".join(kept), bool(depth)
