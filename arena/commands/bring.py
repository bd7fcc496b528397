"""`arena import`: games of other programs into a database."""

from pathlib import Path
from typing import Annotated

import typer

from .common import DEFAULT_DB, DbOption, say, warn


def import_(
    file: Annotated[Path, typer.Argument(help="A .pgn or .gib file.")], db: DbOption = DEFAULT_DB
) -> None:
    """Record the games of a PGN or .gib file as a run, to be shown, rated and served as others.

    \b
    arena import games.pgn --db archive.db
    arena import games.gib --db archive.db
    """
    from arena.importing import import_games
    from arena.store import Store

    with Store.open(db) as store:
        found = import_games(store, file)
    for fault in found.faults:
        warn(f"{file}: {fault}")
    say(f"Wrote {found.games} games of {file} as run {found.run_id} of {db}.")
