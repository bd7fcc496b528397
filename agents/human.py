"""A person at the terminal, who may type a move in any form that the answer reader knows.

Standard input is read on a thread of its own, so other games go on meanwhile; of several games
that wait for the person one is shown after the other. `?` lists the legal moves, `resign` gives
up, `draw` offers one. What cannot be read is said and asked again. An input that has ended forfeits
as `crash`: nobody is there.
"""

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TextIO

from games.base import Game, Move, Side

from .base import AgentError, AgentInfo, Attempt, Decision, Timing, Turn
from .parse import parse_answer
from .policy import retry_text
from .prompt import legal_texts
from .spec import HumanSpec

MOST_CHARS = 4096  # of a typed line
KEPT = 20  # answers that a record keeps of one move


class HumanAgent:
    """One seat at this terminal. `typed` and `shown` are standard input and error."""

    def __init__(
        self, spec: HumanSpec, *, typed: TextIO | None = None, shown: TextIO | None = None
    ) -> None:
        self._spec = spec
        self._shown = shown
        self._lines = _lines_of(typed or sys.stdin)
        self._offers: dict[str, int] = {}  # game → the ply a draw was offered at
        name = spec.name or "human"
        self._info = AgentInfo(name, "human", spec.model_dump(mode="json"), deterministic=False)

    @property
    def info(self) -> AgentInfo:
        return self._info

    async def start(self) -> None: ...

    async def new_game(self, game_id: str, game: Game, side: Side) -> None:
        """Raises AgentError where the game lacks the notation."""
        if self._spec.notation not in game.notations:
            known = ", ".join(game.notations)
            raise AgentError(
                f"{self._info.name}: {game.name} has no notation {self._spec.notation!r}: "
                f"it has {known}"
            )

    async def choose(self, turn: Turn) -> Decision:
        asked = time.monotonic()
        async with self._lines.turn:
            shown = time.monotonic()
            self._show(self._position(turn))
            attempts: tuple[Attempt, ...] = ()
            while True:
                line = await self._lines.next()
                if line is None:
                    return Decision("forfeit", reason="crash", detail="the input has ended")
                if line.strip() in ("?", "？"):
                    legal = legal_texts(turn.state, self._spec.notation)
                    self._show(" ".join(text for text, _ in legal))
                    continue
                if not line.strip():
                    continue
                attempt = self._read(turn, line, len(attempts) + 1)
                attempts = (*attempts, attempt)[-KEPT:]
                if decision := self._accepted(turn, attempt, attempts):
                    return _timed(decision, asked, shown)
                self._show(f"{retry_text(attempts)} (? lists them)")

    def _read(self, turn: Turn, line: str, number: int) -> Attempt:
        read = parse_answer(turn.state, line, notation=self._spec.notation)
        return Attempt(
            number, read.kind, answer=line, uci=read.uci, span=read.span, detail=read.detail
        )

    def _accepted(
        self, turn: Turn, attempt: Attempt, attempts: tuple[Attempt, ...]
    ) -> Decision | None:
        if attempt.kind == "move" and attempt.uci is not None:
            return Decision("move", Move(attempt.uci), attempts=attempts)
        if attempt.kind == "resign":
            return Decision("resign", attempts=attempts)
        ply = len(turn.state.moves)
        if attempt.kind == "draw_offer" and self._offers.get(turn.game_id) != ply:
            self._offers[turn.game_id] = ply
            return Decision("draw_offer", attempts=attempts)
        return None

    def _position(self, turn: Turn) -> str:
        state = turn.state
        lines = ["", f"Game {turn.game_id}, {state.game.name}", state.board_text()]
        if state.moves:
            lines.append(f"last move: {state.moves[-1]}")
        if turn.draw_offered:
            lines.append("The opponent offers a draw: `draw` accepts it.")
        left = turn.clocks.remaining[turn.side]
        clock = "" if left is None else f", {left:.0f} s left"
        check = ", in check" if state.is_check() else ""
        lines.append(f"{state.game.sides[turn.side].capitalize()} to move{check}{clock}:")
        return "\n".join(lines)

    def _show(self, text: str) -> None:
        print(text, file=self._shown or sys.stderr, flush=True)

    async def end_game(self, game_id: str) -> None:
        self._offers.pop(game_id, None)

    async def close(self) -> None: ...


def _timed(decision: Decision, asked: float, shown: float) -> Decision:
    """With the time of the move; another game at this terminal is the queue."""
    *before, last = decision.attempts
    timing = Timing(time.monotonic() - asked, queue=shown - asked)
    return replace(decision, attempts=(*before, replace(last, timing=timing)))


class _Lines:
    """Lines of one stream for whoever waits, read on a daemon thread (a read cannot be ended).

    A line belongs to the waiter of its moment; one that was typed to nobody waits for the next.
    """

    def __init__(self, stream: TextIO) -> None:
        self.turn = asyncio.Lock()
        self._stream = stream
        self._typed: deque[str] = deque()
        self._ended = False
        self._lock = threading.Lock()
        self._wake: Callable[[], object] | None = None
        self._thread: threading.Thread | None = None

    async def next(self) -> str | None:
        """The next line; None: the input has ended. Cancelling it loses no line."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        if self._thread is None:
            self._thread = threading.Thread(target=self._read, name="stdin", daemon=True)
            self._thread.start()
        while True:
            came.clear()
            with self._lock:
                if self._typed:
                    return self._typed.popleft()
                if self._ended:
                    return None
                self._wake = lambda: loop.call_soon_threadsafe(came.set)
            try:
                await came.wait()
            finally:
                with self._lock:
                    self._wake = None

    def _read(self) -> None:
        while line := self._line():
            with self._lock:
                self._typed.append(line[:MOST_CHARS])
                if self._wake is not None:
                    self._wake()
        with self._lock:
            self._ended = True
            if self._wake is not None:
                self._wake()

    def _line(self) -> str:
        try:
            return self._stream.readline()
        except (OSError, ValueError):  # closed, or no text
            return ""


_SHARED: dict[int, _Lines] = {}


def _lines_of(stream: TextIO) -> _Lines:
    """Two seats at one terminal share its lines."""
    return _SHARED.setdefault(id(stream), _Lines(stream))
