"""One process writes a run at a time; the claim ends with the process, however it ends.

SQLite: an open-file-description lock on byte `run` of `<database>-lock` (Linux). PostgreSQL: an
advisory lock of the writer's session. Neither leaves anything behind to be cleaned up by hand.
"""

import fcntl
import os
import socket
import struct
from pathlib import Path

from sqlalchemy import Connection, select, text, update

from .database import Database
from .errors import StoreError
from .models import Run

LOCK_SPACE = 0x6D61  # the first of PostgreSQL's two lock numbers


class RunLocks:
    """The runs this store writes. Used on the writer's thread only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: set[int] = set()
        self._file: int | None = None

    def claim(self, connection: Connection, run_id: int) -> None:
        """Make the run ours. Raises StoreError where another process has it, or there is none."""
        if run_id in self._held:
            return
        path = self._database.path
        if not (self._claim_byte(path, run_id) if path else _claim_on_server(connection, run_id)):
            owner = connection.execute(select(Run.owner).where(Run.id == run_id)).scalar()
            raise StoreError(
                f"run {run_id} of {self._database.label} is being played by another process "
                f"({owner}): stop that one first"
            )
        ours = update(Run).where(Run.id == run_id).values(owner=owner_name())
        if connection.execute(ours).rowcount == 0:
            raise StoreError(f"there is no run {run_id} in {self._database.label}")
        self._held.add(run_id)

    def release(self, connection: Connection) -> None:
        """Let go of a server's locks now: it would notice the end of the session only later."""
        if self._held:
            connection.execute(text("SELECT pg_advisory_unlock_all()"))

    def forget(self) -> None:
        """The writer's session is gone, and a server's locks with it."""
        if self._database.path is None:
            self._held.clear()

    def close(self) -> None:
        self._held.clear()
        if self._file is None:
            return
        if _lock_bytes(self._file, 0, 0):  # nobody else holds a run: the file may go
            _lock_path(self._database.path).unlink(missing_ok=True)
        os.close(self._file)
        self._file = None

    def _claim_byte(self, path: Path, run_id: int) -> bool:
        while True:
            if self._file is None:
                self._file = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            if not _lock_bytes(self._file, run_id, 1):
                return False
            try:
                if os.stat(_lock_path(path)).st_ino == os.fstat(self._file).st_ino:
                    return True
            except FileNotFoundError:
                pass
            os.close(self._file)  # its last user removed it between our open and our lock
            self._file = None


def owner_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _lock_path(path: Path | None) -> Path:
    assert path is not None
    return path.with_name(path.name + "-lock")


def _lock_bytes(file: int, start: int, length: int) -> bool:
    """Lock `length` bytes (0: to the end) for this open file; False where another holds some."""
    flock = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, flock)
    except BlockingIOError:
        return False
    except PermissionError:  # the other name POSIX gives a conflict
        return False
    return True


def _claim_on_server(connection: Connection, run_id: int) -> bool:
    question = text("SELECT pg_try_advisory_lock(:space, :run)")
    return bool(connection.execute(question, {"space": LOCK_SPACE, "run": run_id}).scalar())
