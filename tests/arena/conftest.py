"""Databases for the tests: a file, and a private PostgreSQL server where its programs are found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .store_kit import clean_database, private_server, server_programs


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server of our own, without a database name."""
    pytest.importorskip("psycopg", reason="no psycopg here (pip install madang[postgres])")
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server here (Debian: apt install postgresql)")
    with private_server(programs) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may be opened: a path of awkward letters, or the URL of an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "games 한국?#%.db")
    server: str = request.getfixturevalue("postgres")
    return clean_database(server)
