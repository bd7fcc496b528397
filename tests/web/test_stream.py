import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.base import Timing
from arena.records import MoveRecord
from arena.store import Store
from arena.web import stream
from arena.web.stream import Streams, TooManyViewers

from . import sample

Event = dict[str, Any]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Store]:
    """A store of our own with a short sample run that goes on while it is watched."""
    with Store.open(tmp_path / "live.db") as store:
        asyncio.run(sample.build(store, plies=2))
        yield store


async def take(frames: AsyncIterator[bytes], count: int) -> list[Event]:
    """The next events of a stream: `{"id", "kind" or "event", …}`."""
    found: list[Event] = []
    while len(found) < count:
        chunk = await asyncio.wait_for(anext(frames), 10)
        for block in chunk.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "data" in fields:
                kind = {"event": fields["event"]} if "event" in fields else {}
                found.append(json.loads(fields["data"]) | {"id": int(fields["id"])} | kind)
    return found


def newest(store: Store) -> int:
    return Streams(store.reader)._followers.get(1, stream.Follower(store.reader, 1))._newest()


async def play(store: Store, game_id: int, ply: int) -> None:
    fen = "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
    move = MoveRecord(ply, 0, "alpha:choice", "h1h8", "Rh8+", fen, Timing(0.1).total)
    await store.append_move(game_id, move)


def test_a_page_gets_what_it_missed_and_then_what_is_new(live: Store) -> None:
    async def scene() -> None:
        streams = Streams(live.reader)
        seq = newest(live)
        frames = streams.frames(1, None, seq - 3)
        missed = await take(frames, 3)
        assert [event["seq"] for event in missed] == [seq - 2, seq - 1, seq]
        await play(live, 5, 3)
        await play(live, 10, 3)
        new = await take(frames, 2)
        assert (
            [event["seq"] for event in new] == [event["id"] for event in new] == [seq + 1, seq + 2]
        )
        assert [(event["game_id"], event["move"]["uci"]) for event in new] == [
            (5, "h1h8"),
            (10, "h1h8"),
        ]
        await frames.aclose()  # type: ignore[attr-defined]
        assert streams.num_viewers == 0
        assert streams._followers == {}

    asyncio.run(scene())


def test_two_followers_of_one_run_share_one_reader_and_filter_by_game(live: Store) -> None:
    async def scene() -> None:
        streams = Streams(live.reader)
        seq = newest(live)
        whole, one = streams.frames(1, None, seq), streams.frames(1, 10, seq)
        await anext(whole)
        await anext(one)
        assert streams.num_viewers == 2
        assert len(streams._followers) == 1
        await anext(whole)
        await anext(one)
        await play(live, 5, 3)
        await play(live, 10, 3)
        assert [event["game_id"] for event in await take(whole, 2)] == [5, 10]
        assert [event["game_id"] for event in await take(one, 1)] == [10]
        await streams.close()
        assert [chunk async for chunk in whole] == []

    asyncio.run(scene())


def test_one_that_missed_too_much_is_told_to_start_afresh(
    live: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MAX_MISSED", 5)

    async def scene() -> None:
        seq = newest(live)
        frames = Streams(live.reader).frames(1, None, 0)
        event = (await take(frames, 1))[0]
        assert event == {"event": "reset", "id": seq, "seq": seq}
        await frames.aclose()  # type: ignore[attr-defined]

    asyncio.run(scene())


def test_a_short_loss_is_answered_from_memory_as_from_the_table(live: Store) -> None:
    async def scene() -> None:
        streams = Streams(live.reader)
        seq = newest(live)
        first = streams.frames(1, None, seq)
        await anext(first)
        await anext(first)
        await play(live, 5, 3)
        await play(live, 10, 3)
        seen = await take(first, 2)
        follower = streams._followers[1]
        assert [message.seq for message in follower._recent] == [seq + 1, seq + 2]
        for game_id in (None, 10):
            with live.reader.connect() as db:
                told = stream.messages(db, 1, seq, seq + 2, game_id=game_id)
            assert follower.recalled(seq, seq + 2, game_id) == told
        assert await take(streams.frames(1, None, seq), 2) == seen
        assert follower.recalled(seq - 2, seq + 2, None) is None
        assert len(follower.missed(seq - 2, seq + 2, None) or []) == 4
        await streams.close()

    asyncio.run(scene())


def test_a_slow_reader_is_cut_off_and_never_holds_the_others() -> None:
    async def scene() -> None:
        viewer = stream.Viewer(None)
        assert all(viewer.put(b"x") for _ in range(stream.MAX_WAITING))
        assert not viewer.put(b"y")
        viewer.close()
        taken = [viewer.chunks.get_nowait() for _ in range(stream.MAX_WAITING + 1)]
        assert taken[-1] is None

    asyncio.run(scene())


def test_streams_are_limited(live: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_VIEWERS", 1)

    async def scene() -> None:
        streams = Streams(live.reader)
        frames = streams.frames(1, None, 0)
        await anext(frames)
        with pytest.raises(TooManyViewers):
            streams.check_room()
        await frames.aclose()  # type: ignore[attr-defined]
        streams.check_room()

    asyncio.run(scene())


def test_every_kind_of_event_carries_what_it_is_about(live: Store) -> None:
    async def scene() -> None:
        await live.append_event(1, "note", {"text": "x" * 9_999}, None)
        frames = Streams(live.reader).frames(1, None, 0)
        events = await take(frames, newest(live))
        kinds = {event["kind"]: event for event in events}
        assert set(kinds) == {"run_started", "game_started", "move", "game_finished", "note"}
        assert kinds["game_started"]["game"]["start_fen"]
        assert kinds["game_finished"]["game"]["status"] == "finished"
        assert kinds["move"]["move"]["fen"]
        assert len(kinds["note"]["payload"]["text"]) == stream.PAYLOAD_SHOWN
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        await frames.aclose()  # type: ignore[attr-defined]

    asyncio.run(scene())
