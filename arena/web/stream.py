"""A run's events as server-sent events, read once for all viewers.

A `Follower` polls the events table of one run while anybody watches, whichever process writes it,
encodes what is new once and hands it to every `Viewer`. Event ids are the run's sequence numbers,
which have no holes, so a page that sees one knows that it lost something and fetches its data
again. A reconnecting page gets what it missed from the table; one that missed more than
`MAX_MISSED`, or reads too slowly, is told to start afresh (`event: reset`).
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Select, select
from sqlalchemy.exc import SQLAlchemyError

from arena.store.models import EventRow, Run

from . import data

POLL_SECONDS = 0.1  # half of it is the mean delay that polling adds
MAX_MISSED = 1_000  # events sent again to one that reconnects
MAX_WAITING = 200  # chunks kept for a slow reader
MAX_VIEWERS = 500
HEARTBEAT_SECONDS = 15.0
STILL_HERE = b": still here\n\n"
PAYLOAD_SHOWN = 2_000  # characters of a text in an event of the arena's own


@dataclass(frozen=True, slots=True)
class Message:
    """One event as the pages get it; `body` is its JSON."""

    seq: int
    game_id: int | None
    body: str

    @property
    def frame(self) -> str:
        return f"id: {self.seq}\ndata: {self.body}\n\n"


@dataclass(eq=False, slots=True)
class Viewer:
    """One open stream. `game_id` None: the whole run."""

    game_id: int | None
    chunks: asyncio.Queue[bytes | None] = field(
        default_factory=lambda: asyncio.Queue(MAX_WAITING + 1)
    )

    def put(self, chunk: bytes) -> bool:
        """Queue a chunk; False where the viewer reads too slowly and must start again."""
        if self.chunks.qsize() >= MAX_WAITING:
            return False
        self.chunks.put_nowait(chunk)
        return True

    def close(self) -> None:
        with suppress(asyncio.QueueFull):
            self.chunks.put_nowait(None)


class TooManyViewers(Exception):
    """Every stream this server allows is in use."""


class Streams:
    """Every open stream of a server: one follower a run that is being watched."""

    def __init__(self, reader: Engine) -> None:
        self._reader = reader
        self._followers: dict[int, Follower] = {}
        self.num_viewers = 0

    def check_room(self) -> None:
        """Raises TooManyViewers where one more stream is not allowed."""
        if self.num_viewers >= MAX_VIEWERS:
            raise TooManyViewers

    async def frames(self, run_id: int, game_id: int | None, after: int) -> AsyncIterator[bytes]:
        """The frames of a run (or one game of it) with a sequence number above `after`."""
        self.num_viewers += 1
        follower = self._followers.setdefault(run_id, Follower(self._reader, run_id))
        viewer = Viewer(game_id)
        try:
            upto = await follower.join(viewer)
            yield b"retry: 1000\n\n"
            missed = follower.recalled(after, upto, game_id)
            if missed is None:
                missed = await asyncio.to_thread(follower.missed, after, upto, game_id)
            yield _reset(upto) if missed is None else encode(missed)
            while True:
                chunk = await viewer.chunks.get()
                if chunk is None:
                    return
                yield chunk
        finally:
            self.num_viewers -= 1
            if follower.leave(viewer) and self._followers.get(run_id) is follower:
                del self._followers[run_id]

    async def close(self) -> None:
        """End every stream."""
        for follower in list(self._followers.values()):
            await follower.close()
        self._followers.clear()


class Follower:
    """Reads the events of one run once and passes them on; polls only while somebody watches."""

    def __init__(self, reader: Engine, run_id: int) -> None:
        self.run_id = run_id
        self._reader = reader
        self._viewers: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._seq = 0
        self._recent: deque[Message] = deque(maxlen=MAX_MISSED)  # everything after `_since`
        self._since = 0

    async def join(self, viewer: Viewer) -> int:
        """Pass on to `viewer` every event after the sequence number that is returned."""
        self._viewers.add(viewer)
        async with self._starting:
            if self._task is None or self._task.done():
                self._seq = self._since = await asyncio.to_thread(self._newest)
                self._recent.clear()
                self._task = asyncio.create_task(self._follow())
        return self._seq

    def leave(self, viewer: Viewer) -> bool:
        """Forget a viewer; True where nobody is left and following has stopped."""
        self._viewers.discard(viewer)
        if self._viewers:
            return False
        if self._task is not None:
            self._task.cancel()
            self._task = None
        return True

    async def close(self) -> None:
        for viewer in self._viewers:
            viewer.close()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def recalled(self, after: int, upto: int, game_id: int | None) -> list[Message] | None:
        """The events in (after, upto] from memory; None where it does not reach back so far.

        On the event loop only. Many that lose their connection at once are answered from here.
        """
        if after < self._since:
            return None
        return [m for m in self._recent if after < m.seq <= upto and game_id in (None, m.game_id)]

    def missed(self, after: int, upto: int, game_id: int | None) -> list[Message] | None:
        """The events in (after, upto]; None where they are too many to send again."""
        if after >= upto:
            return []
        with self._reader.connect() as db:
            found = messages(db, self.run_id, after, upto, game_id=game_id, limit=MAX_MISSED + 1)
        return None if len(found) > MAX_MISSED else found

    async def _follow(self) -> None:
        beat = asyncio.get_running_loop().time()
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                found = await asyncio.to_thread(self._poll)
                if found:
                    self._remember(found)
                    self._pass_on(found)
                if asyncio.get_running_loop().time() - beat >= HEARTBEAT_SECONDS:
                    beat += HEARTBEAT_SECONDS
                    self._hand_out({}, STILL_HERE)
        except SQLAlchemyError:
            for viewer in self._viewers:
                viewer.close()  # its page comes back and asks again

    def _remember(self, found: Sequence[Message]) -> None:
        self._seq = found[-1].seq
        self._recent.extend(found)
        if len(self._recent) == MAX_MISSED:
            self._since = self._recent[0].seq - 1

    def _poll(self) -> list[Message]:
        with self._reader.connect() as db:
            newest = db.scalar(select(Run.last_seq).where(Run.id == self.run_id)) or 0
            if newest <= self._seq:
                return []
            return messages(db, self.run_id, self._seq, newest, limit=MAX_MISSED)

    def _newest(self) -> int:
        with self._reader.connect() as db:
            return int(db.scalar(select(Run.last_seq).where(Run.id == self.run_id)) or 0)

    def _pass_on(self, found: Sequence[Message]) -> None:
        chunks: dict[int | None, bytes] = {None: encode(found)}
        for game_id in {message.game_id for message in found} - {None}:
            chunks[game_id] = encode(m for m in found if m.game_id == game_id)
        self._hand_out(chunks)

    def _hand_out(self, chunks: dict[int | None, bytes], rest: bytes = b"") -> None:
        """Give every viewer the chunk of what it watches, or `rest`."""
        for viewer in self._viewers:
            chunk = chunks.get(viewer.game_id, rest)
            if chunk and not viewer.put(chunk):
                viewer.close()  # its page reconnects with the last id that it has


def encode(found: Iterable[Message]) -> bytes:
    """The frames of some messages, as they go over the wire."""
    return "".join(message.frame for message in found).encode()


def _reset(seq: int) -> bytes:
    return f'id: {seq}\nevent: reset\ndata: {{"seq": {seq}}}\n\n'.encode()


def messages(
    db: Connection,
    run_id: int,
    after: int,
    upto: int,
    *,
    game_id: int | None = None,
    limit: int = MAX_MISSED,
) -> list[Message]:
    """The events in (after, upto] in order, each with the move or game that it is about."""
    query: Select[Any] = (
        select(EventRow.seq, EventRow.at, EventRow.kind, EventRow.game_id, EventRow.payload)
        .where(EventRow.run_id == run_id, EventRow.seq > after, EventRow.seq <= upto)
        .order_by(EventRow.seq)
        .limit(limit)
    )
    if game_id is not None:
        query = query.where(EventRow.game_id == game_id)
    rows = db.execute(query).all()
    games = data.games_by_id(db, {row.game_id for row in rows if row.game_id is not None})
    moves = data.moves_by_key(
        db, games, [(r.game_id, int(r.payload["ply"])) for r in rows if r.kind == "move"]
    )
    return [_message(row, games, moves) for row in rows]


def _message(row: Any, games: dict[int, Any], moves: dict[tuple[int, int], Any]) -> Message:
    body: dict[str, Any] = {"seq": row.seq, "at": row.at, "kind": row.kind, "game_id": row.game_id}
    if row.kind == "move":
        move = moves.get((row.game_id, int(row.payload["ply"])))
        body["move"] = asdict(move) if move is not None else None
    elif row.kind.startswith("game_") and row.game_id in games:
        body["game"] = asdict(games[row.game_id])
    else:
        body["payload"] = {key: _short(value) for key, value in row.payload.items()}
    return Message(row.seq, row.game_id, json.dumps(body, separators=(",", ":")))


def _short(value: object) -> object:
    return value[:PAYLOAD_SHOWN] if isinstance(value, str) else value
