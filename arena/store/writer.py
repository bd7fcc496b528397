"""The one writer: a thread that commits whatever waits as one transaction.

A waiter is answered after the commit that holds its rows. A job that fails takes nobody with it:
its group is rolled back and tried again one by one. A fault that every job would meet (full disk,
read-only file, lost server) answers the whole group with StoreError; later jobs try again.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from .database import Database
from .errors import StoreError, explain, is_database_wide, is_store_fault
from .locks import RunLocks
from .transaction import Transaction

T = TypeVar("T")
Job = Callable[[Transaction], T]
MAX_GROUP = 1000  # jobs in one transaction


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: Job[Any]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


@dataclass(frozen=True, slots=True)
class _Answer:
    waiting: _Waiting
    value: object = None
    error: Exception | None = None

    def give(self) -> None:
        """On the waiter's loop. A waiter that was cancelled has its rows all the same."""
        if self.waiting.future.done():
            return
        if self.error is None:
            self.waiting.future.set_result(self.value)
        else:
            self.waiting.future.set_exception(self.error)


class Writer:
    """Jobs from any number of event loops, run in the order they came."""

    def __init__(self, database: Database) -> None:
        self.num_commits = 0
        self.num_jobs = 0
        self._database = database
        self._locks = RunLocks(database)
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    async def submit(self, job: Job[T]) -> T:
        """The job's value, once it is committed. Raises StoreError, or what the job raised."""
        if self._closed:
            raise StoreError(f"{self._database.label} is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Waiting(job, loop, future))
        return await future

    def close(self) -> None:
        """Write what waits, then end the thread. Harmless twice."""
        self._closed = True
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            group, going = self._take()
            if group:
                _answer(self._write(group))
        self._release()
        self._disconnect()
        self._locks.close()

    def _release(self) -> None:
        """A server's locks; those of a lost server are gone with its session."""
        if self._connection is None or self._database.path is not None:
            return
        try:
            with self._connection.begin():
                self._locks.release(self._connection)
        except SQLAlchemyError:
            return

    def _take(self) -> tuple[list[_Waiting], bool]:
        """Everything that waits, at least one; and whether more may come."""
        group: list[_Waiting] = []
        item = self._queue.get()
        while item is not None:
            group.append(item)
            if len(group) == MAX_GROUP:
                return group, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _write(self, group: list[_Waiting]) -> list[_Answer]:
        try:
            values = self._commit(group)
        except Exception as error:
            if len(group) > 1 and not is_database_wide(error):
                return [answer for waiting in group for answer in self._write([waiting])]
            if is_store_fault(error):
                error = explain(error, self._database.label)
            return [_Answer(waiting, error=error) for waiting in group]
        return [_Answer(waiting, value) for waiting, value in zip(group, values, strict=True)]

    def _commit(self, group: list[_Waiting]) -> list[object]:
        try:
            connection = self._connect()
            with connection.begin():
                transaction = Transaction(connection, self._locks)
                values = [waiting.job(transaction) for waiting in group]
                transaction.flush()
        except DBAPIError as error:
            if error.connection_invalidated:
                self._disconnect()
            raise
        self.num_commits += 1
        self.num_jobs += len(group)
        return values

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.writer.connect()
        return self._connection

    def _disconnect(self) -> None:
        self._locks.forget()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                connection.close()
            except SQLAlchemyError:
                connection.invalidate()


def _answer(answers: list[_Answer]) -> None:
    """One wake-up for each loop, however many wait there."""
    loops: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
    for answer in answers:
        loops.setdefault(answer.waiting.loop, []).append(answer)
    for loop, theirs in loops.items():
        try:
            loop.call_soon_threadsafe(_give_all, theirs)
        except RuntimeError:  # that loop has ended; nobody waits any more
            continue


def _give_all(answers: list[_Answer]) -> None:
    for answer in answers:
        answer.give()
