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
from arena.store.views import VIEWS


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
        connection.execute(
            "INSERT INTO runs VALUES (1, 'old', 5, '{}', '', 'finished', '0.1', 1.5, NULL, 0, '')"
        )
    connection.close()
    with Store.open(path) as store:
        assert queries.latest_run(store).name == "old"
        with queries.reading(store) as reader:
            version = reader.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
            assert version == migrations.HEAD
            assert reader.exec_driver_sql("SELECT * FROM scores").all() == []


def _at_revision_1(path: Path) -> sqlite3.Connection:
    database = open_database(path, create=True)
    database.close()
    path.unlink()
    with database.writer.begin() as connection:
        upgrade(connection, "0001")
    database.close()
    return sqlite3.connect(path)


def test_two_processes_that_open_a_new_database_both_get_it(target: str, tmp_path: Path) -> None:
    path = str(tmp_path / "both.db") if "://" not in target else target
    words = [
        sys.executable,
        "-c",
        "import sys; from arena.store import Store; Store.open(sys.argv[1])",
    ]
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen([*words, path], cwd=root) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]


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
