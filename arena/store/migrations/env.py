"""Runs inside the one transaction that `arena.store.database` opened."""

from alembic import context

from arena.store.models import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
