"""Views that answer the common questions in one line of SQL."""

from alembic import op

from arena.store.views import VIEWS

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
