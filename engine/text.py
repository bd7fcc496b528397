"""The text of one answer as it grows: stop strings, and what may be sent already.

The answer ends at the first stop string to be complete, reading one character after another (of two
that end together the longer counts), wherever token borders fall; nothing of it is in the text.
Text that may yet turn out to begin a stop string is held back.
"""

from collections.abc import Sequence

from engine.types import TextStream


class OutputText:
    """`stream` is a fresh detokenizer; `stops` are not empty strings."""

    def __init__(self, stream: TextStream, stops: Sequence[str] = ()) -> None:
        self._stream = stream
        self._stops = tuple(stops)
        self._sent = 0
        self.text = ""
        self.stopped = False

    def push(self, token: int) -> None:
        """Add a token's text; sets `stopped` when a stop string is complete."""
        self._add(self._stream.push(token))

    def finish(self) -> None:
        """No more tokens: bytes that make no character come out now."""
        if not self.stopped:
            self._add(self._stream.finish())

    def take(self, *, everything: bool = False) -> str:
        """Text not yet taken that can't become part of a stop string (or all of it)."""
        end = len(self.text)
        if not (everything or self.stopped):
            end -= self._num_held()
        piece = self.text[self._sent : end]
        self._sent = max(self._sent, end)
        return piece

    def _add(self, piece: str) -> None:
        if self.stopped or not piece:
            return
        longest = max((len(stop) for stop in self._stops), default=0)
        start = max(0, len(self.text) - longest + 1)
        self.text += piece
        ends = []
        for stop in self._stops:
            at = self.text.find(stop, start)
            if at >= 0:
                ends.append((at + len(stop), at))
        if ends:
            self.text = self.text[: min(ends)[1]]
            self.stopped = True

    def _num_held(self) -> int:
        """Length of the longest end of the text that begins a stop string."""
        longest = max((len(stop) - 1 for stop in self._stops), default=0)
        for length in range(min(longest, len(self.text)), 0, -1):
            tail = self.text[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0
