"""The stream: in order to every reader, never slower for a slow one."""

import asyncio

from arena.events import Event, EventBus, Noted, Subscription


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Noted)]


async def read(subscription: Subscription) -> list[Event]:
    return [event async for event in subscription]


def test_every_reader_gets_every_event_in_order() -> None:
    async def scenario() -> None:
        bus = EventBus()
        readers = [asyncio.create_task(read(bus.subscribe())) for _ in range(3)]
        for number in range(100):
            bus.publish(Noted(str(number)))
            if number % 7 == 0:
                await asyncio.sleep(0)
        bus.close()
        for reader in readers:
            assert texts(await reader) == [str(number) for number in range(100)]

    asyncio.run(scenario())


def test_a_full_queue_drops_the_oldest_and_counts_them() -> None:
    async def scenario() -> None:
        bus = EventBus()
        slow = bus.subscribe(maxsize=3)
        for number in range(10):
            bus.publish(Noted(str(number)))
        bus.close()
        assert texts(await read(slow)) == ["7", "8", "9"]
        assert slow.dropped == 7

    asyncio.run(scenario())


def test_an_unsubscribed_reader_gets_nothing_more() -> None:
    async def scenario() -> None:
        bus = EventBus()
        gone = bus.subscribe()
        bus.publish(Noted("one"))
        bus.unsubscribe(gone)
        bus.publish(Noted("two"))
        gone.close()
        assert texts(await read(gone)) == ["one"]

    asyncio.run(scenario())
