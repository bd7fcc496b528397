"""One engine process that speaks UCI: start, set options, search, end. Knows no game and no arena.

Every wait has a deadline, every line a length limit, and standard error is kept. A process that
died, stalled or spoke nonsense is of no further use: the caller closes it and starts another.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

LINE_LIMIT = 1 << 16  # bytes; a longer line is a broken engine
STDERR_LINES = 40
PLACES = ("/usr/games", "/usr/local/games", "/usr/local/bin")  # not always on PATH

_OPTION = re.compile(r"option name (?P<name>.+?) type (?P<type>\w+)(?P<rest>.*)$")
_BOUND = re.compile(r"\b(min|max) (-?\d+)")
_SCORE = re.compile(r"\bscore (cp|mate) (-?\d+)")


class UciError(Exception):
    """The engine failed; the message says how."""


class UciCrash(UciError):
    """It ended, closed its pipe or sent a line without end."""


class UciStall(UciError):
    """It did not answer in time."""


@dataclass(frozen=True, slots=True)
class UciOption:
    """One option as the engine announces it."""

    name: str
    type: str  # check, spin, combo, button, string
    values: tuple[str, ...] = ()  # of a combo
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`move` as the engine wrote it; `score_cp` from its own point of view, mates as ±32000∓n."""

    move: str
    line: str
    score_cp: int | None


def find_binary(path: str) -> str | None:
    """The executable of that name or path; None where there is none."""
    found = shutil.which(path)
    if found is None and os.sep not in path:
        found = shutil.which(path, path=os.pathsep.join(PLACES))
    return found


class UciClient:
    """A running engine. Not for two searches at once."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._stderr_task = asyncio.create_task(self._keep_stderr())
        self.options: dict[str, UciOption] = {}
        self.settings: dict[str, object] = {}  # as last set

    @classmethod
    async def start(cls, command: Sequence[str], within: float) -> "UciClient":
        """Start it and read what options it has. Raises UciError after `within` seconds."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_LIMIT,
                start_new_session=True,  # Ctrl-C is the arena's to handle
            )
        except OSError as error:
            raise UciCrash(f"cannot be run: {error.strerror or error}") from error
        client = cls(process)
        try:
            async with deadline(within, "uciok"):
                await client._send("uci")
                await client._read_options()
        except BaseException:
            await client.close()
            raise
        return client

    async def set_options(self, options: Mapping[str, object], within: float) -> None:
        """Set those that change and wait until the engine is ready. Names must be announced."""
        changed = {name: value for name, value in options.items() if self._changes(name, value)}
        if not changed:
            return
        async with deadline(within, "readyok"):
            for name, value in changed.items():
                text = str(value).lower() if isinstance(value, bool) else str(value)
                await self._send(f"setoption name {name} value {text}")
            await self.ready()
        self.settings |= changed

    def _changes(self, name: str, value: object) -> bool:
        return name not in self.settings or self.settings[name] != value

    async def ready(self) -> None:
        await self._send("isready")
        while await self._line() != "readyok":
            pass

    async def search(
        self, position: str, go: str, within: float, *, fresh: bool = True
    ) -> SearchResult:
        """Search one position. `fresh` forgets earlier searches first, so that the answer depends
        on nothing else. Raises UciStall after `within` seconds, UciCrash."""
        score: int | None = None
        async with deadline(within, "bestmove"):
            if fresh:
                await self._send("ucinewgame")
                await self.ready()
            await self._send(f"position {position}")
            await self._send(f"go {go}")
            while not (line := await self._line()).startswith("bestmove"):
                if line.startswith("info "):
                    score = _score(line, score)
        words = line.split()
        return SearchResult(words[1] if len(words) > 1 else "", line, score)

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines of its standard error."""
        return tuple(self._stderr)

    async def last_words(self) -> str:
        """How it ended, for a message: exit status and the last line of standard error."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._stderr_task), 0.5)
        status = self._process.returncode
        ended = "" if status is None else f" (exit status {status})"
        return ended + (f"; it said: {self._stderr[-1]}" if self._stderr else "")

    async def close(self, grace: float = 0.5) -> None:
        """End it: politely where it listens, else by force. Safe to call twice."""
        process = self._process
        if process.returncode is None:
            with contextlib.suppress(OSError, UciCrash):  # it may end by itself meanwhile
                await self._send("quit")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), grace)
        self.kill()
        await process.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await asyncio.gather(self._drain(), self._stderr_task)
        self._stderr_task.cancel()
        await asyncio.gather(self._stderr_task, return_exceptions=True)
        if process.stdin is not None:
            process.stdin.close()

    def kill(self) -> None:
        """End it and whatever it started at once."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _drain(self) -> None:
        """Read what is left in the pipe, so that its end is seen and it closes."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(LINE_LIMIT):
            pass

    async def _send(self, text: str) -> None:
        if "\n" in text or "\r" in text:
            raise ValueError(f"a UCI command is one line, not {text!r}")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text.encode() + b"\n")
            await self._process.stdin.drain()
        except ConnectionError as error:
            raise UciCrash("it ended") from error

    async def _line(self) -> str:
        assert self._process.stdout is not None
        try:
            raw = await self._process.stdout.readline()
        except ValueError as error:  # longer than LINE_LIMIT
            raise UciCrash(f"it sent a line of more than {LINE_LIMIT} bytes") from error
        if not raw:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 0.5)
            raise UciCrash("it ended")
        return raw.decode("utf-8", "replace").strip()

    async def _read_options(self) -> None:
        while (line := await self._line()) != "uciok":
            if found := _OPTION.match(line):
                bounds = {word: int(value) for word, value in _BOUND.findall(found["rest"])}
                self.options[found["name"]] = UciOption(
                    found["name"],
                    found["type"],
                    tuple(part.strip() for part in found["rest"].split(" var ")[1:]),
                    bounds.get("min"),
                    bounds.get("max"),
                )

    async def _keep_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(LINE_LIMIT):
            text = chunk.decode("utf-8", "replace")
            self._stderr.extend(line[:1000] for line in text.splitlines() if line.strip())


@contextlib.asynccontextmanager
async def deadline(seconds: float, what: str) -> AsyncIterator[None]:
    """Turn a timeout into UciStall that names what was awaited."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UciStall(f"no {what} within {seconds:g} s") from None


def _score(line: str, before: int | None) -> int | None:
    if " multipv " in line and " multipv 1 " not in line:
        return before
    if not (found := _SCORE.search(line)):
        return before
    value = int(found[2])
    if found[1] == "cp":
        return value
    return 32_000 - value if value > 0 else -32_000 - value
