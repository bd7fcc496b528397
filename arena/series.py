"""Keeps the time series of an engine that serves clients: a run of its own, without players.

Samples are `Telemetry` rows like a tournament's, so the viewer draws them alike. They are written
from a thread beside the server: it has an event loop of its own.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping

from agents.base import Telemetry
from arena.records import Status
from arena.store import Store, StoreError

log = logging.getLogger(__name__)
EVERY_S = 5.0


@contextlib.contextmanager
def kept(
    db: str,
    name: str,
    config: Mapping[str, object],
    read: Callable[[], Telemetry],
    every_s: float = EVERY_S,
) -> Iterator[int]:
    """Samples `read` into a new run of the database while the block runs; gives the run's id.

    The last sample is taken at its end. Raises StoreError before the block where the database
    cannot be written; a fault later on is logged and ends the series, not the block.
    """
    with Store.open(db) as store:
        run_id = asyncio.run(
            store.create_run(name=name, seed=0, config=config, players=(), slots=())
        )
        stop = threading.Event()
        thread = threading.Thread(
            target=lambda: asyncio.run(_sample(store, run_id, read, stop, every_s)), name="series"
        )
        thread.start()
        try:
            yield run_id
        finally:
            stop.set()
            thread.join()


async def _sample(
    store: Store,
    run_id: int,
    read: Callable[[], Telemetry],
    stop: threading.Event,
    every_s: float,
) -> None:
    try:
        while True:
            is_last = stop.is_set()
            await store.append_telemetry(run_id, read())
            if is_last:
                break
            await asyncio.to_thread(stop.wait, every_s)
        await store.finish_run(run_id, Status.FINISHED)
    except StoreError as error:
        log.error("the series ends here: %s", error)
