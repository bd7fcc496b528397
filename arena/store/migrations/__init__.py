"""How the database became what it is: one Alembic revision a change, run when a store is opened.

`REVISIONS` lists them in order so that an up-to-date store opens without importing Alembic.
"""

REVISIONS = ("0001", "0002", "0003")
HEAD = REVISIONS[-1]
