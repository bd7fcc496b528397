"""Opens a database: one engine that writes, one that only reads, both on the newest revision.

SQLite runs in WAL mode with foreign keys on; writers begin with `BEGIN IMMEDIATE`, so two
processes take turns and never meet `database is locked` half-way; readers never block.
PostgreSQL is reached by URL (`postgresql://user@host/name`).
"""

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select, table, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool
from sqlalchemy.sql import column

from .errors import NewerDatabase, StoreError, explain
from .migrations import HEAD, REVISIONS

_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
BUSY_SECONDS = 30.0  # how long a writer waits for another process


@dataclass(frozen=True, slots=True)
class Database:
    label: str  # path, or URL without its password
    path: Path | None  # of SQLite's file; None: a server
    writer: Engine
    reader: Engine

    def close(self) -> None:
        self.reader.dispose()
        self.writer.dispose()


def open_database(target: str | Path, *, create: bool) -> Database:
    """The database at a path or SQLAlchemy URL, migrated. Raises StoreError, NewerDatabase."""
    url = _url(target)
    try:
        database = _sqlite(url, create=create) if url.drivername == "sqlite" else _server(url)
    except OSError as error:
        raise StoreError(f"cannot open {target}: {error.strerror}") from None
    try:
        _bring_up_to_date(database)
    except StoreError:
        database.close()
        raise
    except SQLAlchemyError as error:
        database.close()
        raise explain(error, database.label) from None
    return database


def _url(target: str | Path) -> URL:
    if isinstance(target, Path) or "://" not in target:
        return URL.create("sqlite", database=str(target))
    try:
        url = make_url(target)
    except ArgumentError:
        raise StoreError(f"cannot read the database URL {target!r}") from None
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        return url.set(drivername="sqlite")
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    raise StoreError(f"unknown kind of database {kind!r}: there are sqlite and postgresql")


def _sqlite(url: URL, *, create: bool) -> Database:
    name = (url.database or "").removeprefix("file:")
    if name in ("", ":memory:"):
        raise StoreError("a record needs a file: name one, as in `--db demo.db`")
    path = Path(name)
    only_read = url.query.get("mode") == "ro"
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name a database file in it")
    if not path.exists() and (only_read or not create):
        raise StoreError(f"there is no database {path}: `arena run` makes one")
    mode = "ro" if only_read else "rwc"
    writer = create_engine("sqlite://", creator=_connector(path, mode), poolclass=NullPool)
    reader = create_engine("sqlite://", creator=_reader(path), poolclass=QueuePool)
    event.listen(writer, "begin", lambda connection: _begin(connection, "BEGIN IMMEDIATE"))
    event.listen(reader, "begin", lambda connection: _begin(connection, "BEGIN"))
    return Database(str(path), path, writer, reader)


def _begin(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement)


def _connector(path: Path, mode: str) -> Callable[[], sqlite3.Connection]:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,  # transactions begin where SQLAlchemy says so
            check_same_thread=False,  # the pool hands each to one thread at a time
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            if mode == "rwc":
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    return connect


def _reader(path: Path) -> Callable[[], sqlite3.Connection]:
    """Readers of a file on a read-only disk do without the WAL's shared memory."""

    def connect() -> sqlite3.Connection:
        live = path.with_name(path.name + "-wal").exists() or os.access(path.parent, os.W_OK)
        return _connector(path, "ro" if live else "ro&immutable=1")()

    return connect


def _server(url: URL) -> Database:
    label = url.render_as_string(hide_password=True)
    timeout = {"connect_timeout": 10}
    try:
        writer = create_engine(url, poolclass=NullPool, connect_args=timeout)
    except ModuleNotFoundError:
        raise StoreError("PostgreSQL needs psycopg: pip install 'madang[postgres]'") from None
    reader = create_engine(url, pool_pre_ping=True, connect_args=timeout)
    event.listen(reader, "begin", lambda connection: _begin(connection, _SNAPSHOT))
    return Database(label, None, writer, reader)


def _bring_up_to_date(database: Database) -> None:
    if not _is_new_file(database.path):
        with database.reader.connect() as connection:
            if _revision(connection, database.label) == HEAD:
                return
    with database.writer.begin() as connection:  # BEGIN IMMEDIATE: one process migrates
        if database.path is None:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('madang'))"))
        if _revision(connection, database.label) != HEAD:
            upgrade(connection)


def _is_new_file(path: Path | None) -> bool:
    return path is not None and (not path.exists() or path.stat().st_size == 0)


def _revision(connection: Connection, label: str) -> str | None:
    """The revision of the database, None for an empty one. Raises StoreError for a strange one."""
    names = inspect(connection).get_table_names()
    if "alembic_version" not in names:
        if names:
            raise StoreError(f"{label} holds other tables than madang's: name another database")
        return None
    version = table("alembic_version", column("version_num"))
    found = connection.execute(select(version.c.version_num)).scalar()
    if found is None or found in REVISIONS:
        return found
    raise NewerDatabase(
        f"{label} was written by a newer madang (revision {found}, this one knows {HEAD}): "
        "upgrade madang, or name another database"
    )


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision` within the connection's open transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
