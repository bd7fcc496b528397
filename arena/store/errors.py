"""What goes wrong with a record, in one line that names the database and the fix."""

from sqlalchemy.exc import DBAPIError, OperationalError


class StoreError(Exception):
    """The record cannot be opened, read or written; the message is one line."""


class NewerDatabase(StoreError):
    """The database was written by a newer madang; nothing in it was touched."""


_SQLITE = {
    "file is not a database": "{0} is not a madang database: name another file",
    "unable to open database file": (
        "cannot open {0}: check that its folder exists and that you may write there"
    ),
    "readonly database": "{0} is read-only: nothing more can be recorded; make it writable",
    "disk is full": (
        "no space left for {0}: what was recorded is safe; free some space, then resume the run"
    ),
    "database is locked": "{0} is held by another program: close it, then resume the run",
    "disk I/O error": "the disk of {0} fails to read or write: what was recorded is safe",
    "malformed": "{0} is damaged: restore a backup",
}
_POSTGRES = {  # SQLSTATE
    "53100": _SQLITE["disk is full"],
    "25006": _SQLITE["readonly database"],
    "42501": "no permission on {0}: grant it, or name another database",
}


def explain(error: Exception, label: str) -> StoreError:
    """The one line for a fault of the database; `label` is its path or its URL without secrets."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None)
    if state in _POSTGRES:
        return StoreError(_POSTGRES[state].format(label))
    text = " ".join(str(cause).split())
    for part, line in _SQLITE.items():
        if part in text:
            return StoreError(line.format(label))
    return StoreError(f"{label}: {text[:300]}")


def is_database_wide(error: Exception) -> bool:
    """Whether every write would meet this fault: the disk, a lock, a lost server."""
    return isinstance(error, OperationalError)


def is_store_fault(error: Exception) -> bool:
    """Whether the fault is the database's or a value's, rather than a bug of ours."""
    return isinstance(error, DBAPIError | OverflowError | UnicodeError)
