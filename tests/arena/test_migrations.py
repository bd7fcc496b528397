"""Migrations: the newest schema is the models', and a store of revision 1 is brought up to it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import column, select, table

from arena.store import Store, migrations, queries
from arena.store.database import open_database, upgrade
from arena.store.models import Base
from arena.store.rows import moves_hash
from arena.store.views import VIEWS

REVISION_1_ROWS = """
INSERT INTO runs VALUES (1, 'old', 5, '{}', '', 'finished', '0.1', 1.5, NULL, 0, '');
INSERT INTO slots VALUES (1, 0, 'chess', 'standard', 'ann', 'bob', 0, '', '', 1, 0);
INSERT INTO games VALUES (1, 1, 0, 1, 'chess', 'standard', 'ann', 'bob', 0, 1, 'start', '',
    'finished', '1-0', 'resigned', 'protocol', 'Black resigns', 1, 1, NULL, NULL, 2.0, 3.0);
INSERT INTO moves VALUES (1, 1, 0, 'ann', 'e2e4', 'e4', 'start', 0.5, NULL, NULL, NULL, NULL,
    0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL);
"""


def test_the_revisions_are_those_of_the_constant() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    script = ScriptDirectory.from_config(config)
    found = [revision.revision for revision in script.walk_revisions()]
    assert tuple(reversed(found)) == migrations.REVISIONS


def test_the_newest_schema_equals_the_models(target: str) -> None:
    database = open_database(target, create=True)
    with database.reader.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
        for name in VIEWS:
            connection.execute(select(column("run_id")).select_from(table(name))).all()
    database.close()


def test_a_store_of_revision_1_is_upgraded_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with _at_revision_1(path) as connection:
        connection.executescript(REVISION_1_ROWS)
    connection.close()
    with Store.open(path) as store:
        assert queries.latest_run(store).name == "old"
        with queries.reading(store) as reader:
            version = reader.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
            assert version == migrations.HEAD
            won = reader.exec_driver_sql("SELECT player, score FROM scores ORDER BY player").all()
            assert [tuple(row) for row in won] == [("ann", 1.0), ("bob", 0.0)]
        game = queries.game(store, 1)
        assert game.moves_hash == moves_hash("start", ["e2e4"])
        assert game.moves[0].san == "e4"


def _at_revision_1(path: Path) -> sqlite3.Connection:
    database = open_database(path, create=True)
    database.close()
    path.unlink()
    with database.writer.begin() as connection:
        upgrade(connection, "0001")
    database.close()
    return sqlite3.connect(path)


def test_two_processes_that_open_a_new_database_both_get_it(target: str, tmp_path: Path) -> None:
    path = str(tmp_path / "fresh.db")
    if "://" in target:
        import psycopg  # of the extra `postgres`

        path = target.rpartition("/")[0] + "/fresh"
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS fresh")
            connection.execute("CREATE DATABASE fresh")
    code = "import sys; from arena.store import Store; Store.open(sys.argv[1]).close()"
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen([sys.executable, "-c", code, path], cwd=root) for _ in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    with Store.open(path, create=False) as store:
        assert queries.runs(store) == []


def test_an_up_to_date_store_opens_without_alembic(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Store.open(path).close()
    code = (
        "import sys; from arena.store import Store; Store.open(sys.argv[1]).close(); "
        "print('alembic' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(path)]
    root = Path(__file__).parents[2]
    assert subprocess.check_output(words, cwd=root, text=True, timeout=60) == "False\n"
