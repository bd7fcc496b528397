"""The record: SQLAlchemy models, Alembic migrations, one writer, read-only queries."""

from .errors import NewerDatabase, StoreError
from .store import Store

__all__ = ["NewerDatabase", "Store", "StoreError"]
