"""Tells from the prompt tokens a server reports whether it has cut the prompt. Pure.

It knows no tokenizer, only how many tokens a byte of plain prose has (`floor`). Two facts make that
enough: moves have more tokens a byte than prose, and a prompt grows by moves. So

1. a prompt has at least as many tokens a byte as the shortest whole one of its kind (system message
   and notation), and any prompt as many as prose;
2. what a player's prompts have grown in one game has as many tokens a byte as that growth had at
   the most, and at least as many as prose.

Below three quarters of either it was cut. The model's own answers in a conversation may have any
density (four hundred spaces are a few tokens) and are left out.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from .prompt import Message

CLEARLY = 0.75
ASKED = 2  # messages that are ours: what follows them are answers and what was said to them
GROWN = 150  # bytes; less growth tells nothing, as the end of a prompt changes every ply
MOST_COURSES = 4096  # remembered
_Seen = tuple[int, int]  # bytes, tokens


@dataclass(slots=True)
class _Course:
    """The prompts of one player in one game."""

    size: int  # of the shortest, bytes
    tokens: int  # of the shortest
    rate: float  # tokens a byte of growth, the most seen


class PromptGauge:
    """What whole prompts of one model have cost so far."""

    def __init__(self, floor: float) -> None:
        self._floor = floor
        self._kinds: dict[str, _Seen] = {}
        self._courses: OrderedDict[str, _Course] = OrderedDict()

    def expected(self, messages: Sequence[Message], course: str, tokens: int) -> float | None:
        """The tokens that a prompt must have where it clearly has fewer; None: it is whole.

        `tokens` are those reported; 0 is no report. `course`: a game of one player, whose prompts
        grow; "" is none.
        """
        size = sum(len(message.content.encode()) for message in messages[:ASKED])
        if not tokens or not size:
            return None
        kind = "\n".join(message.content.split("\n", 1)[0] for message in messages[:ASKED])
        least = max(self._by_kind(kind, size), self._by_growth(course, size))
        if tokens < CLEARLY * least:
            return least
        if len(messages) <= ASKED:
            if kind not in self._kinds or size < self._kinds[kind][0]:
                self._kinds[kind] = (size, tokens)
            if course:
                self._follow(course, size, tokens)
        return None

    def _by_kind(self, kind: str, size: int) -> float:
        shortest = self._kinds.get(kind)
        if shortest is None or size < shortest[0]:
            return self._floor * size
        return max(self._floor, shortest[1] / shortest[0]) * size

    def _by_growth(self, course: str, size: int) -> float:
        """Tokens of a course's shortest prompt and of what has come since."""
        known = self._courses.get(course)
        if known is None or size < known.size + GROWN:
            return 0.0
        return known.tokens + known.rate * (size - known.size)

    def _follow(self, course: str, size: int, tokens: int) -> None:
        known = self._courses.get(course)
        if known is None or size < known.size:
            self._courses[course] = _Course(size, tokens, self._floor)
            while len(self._courses) > MOST_COURSES:
                self._courses.popitem(last=False)
        elif size >= known.size + GROWN:
            known.rate = max(known.rate, (tokens - known.tokens) / (size - known.size))
