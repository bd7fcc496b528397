"""Options and small steps that several commands share."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from arena.store import Store
    from arena.store.queries import RunInfo
    from games.base import Game

DEFAULT_DB = "madang.db"
PANEL = "Output"

DbOption = Annotated[
    str, typer.Option("--db", envvar="MADANG_DB", help="Database: a file, or a SQLAlchemy URL.")
]
RunOption = Annotated[int | None, typer.Option("--run", help="Number of the run; else the last.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, nothing else there.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Only results and faults.")]
GameOption = Annotated[str, typer.Option("--game", "-g", help="chess or janggi.")]
RulesOption = Annotated[str, typer.Option("--rules", help="Rule set; else the game's default.")]


class UsageFault(Exception):
    """Something the user must change; one line that names the thing and the fix."""


def say(text: str = "") -> None:
    """A result: one line or more on standard output."""
    typer.echo(text)


def warn(text: str) -> None:
    """A warning: one line on standard error."""
    typer.echo(f"arena: {text}", err=True)


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def existing_store(db: str) -> "Store":
    """The database of earlier runs. Raises StoreError where there is none."""
    from arena.store import Store

    return Store.open(db, create=False)


def chosen_run(store: "Store", run: int | None) -> "RunInfo":
    from arena.store import queries

    return queries.latest_run(store) if run is None else queries.run(store, run)


def is_url(db: str) -> bool:
    return "://" in db


def read_text(source: str) -> str:
    """The text of a file, or of standard input for `-`. Raises UsageFault."""
    try:
        return read_bytes(source).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageFault(f"{source}: not UTF-8: save it as UTF-8") from None


def read_bytes(source: str) -> bytes:
    """The bytes of a file, or of standard input for `-`. Raises UsageFault."""
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise UsageFault(f"{source}: {error.strerror}") from None


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file. Raises UsageFault."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageFault(f"{path}: {error.strerror}") from None


def known_game(name: str) -> "Game":
    """The game of that name. Raises UsageFault that names the games there are."""
    from games.registry import get_game

    try:
        return get_game(name)
    except ValueError as error:
        raise UsageFault(str(error)) from None
