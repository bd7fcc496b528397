"""`arena db backup/check/vacuum`: looking after a database."""

from pathlib import Path
from typing import Annotated

import typer

from .common import DEFAULT_DB, DbOption, existing_store, say

app = typer.Typer(
    no_args_is_help=True, help="Back up, check and tidy a database.", rich_markup_mode=None
)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="A new file.")], db: DbOption = DEFAULT_DB
) -> None:
    """Copy a database whole, also while a run is written to it.

    \b
    arena db backup copy.db --db cup.db
    """
    from arena.store import maintenance

    with existing_store(db) as store:
        maintenance.backup(store, file)
    say(f"Wrote {file}.")


@app.command()
def check(db: DbOption = DEFAULT_DB) -> None:
    """Check that a database keeps what is promised; leaves with 1 where it does not.

    \b
    arena db check --db cup.db
    """
    from arena.store import maintenance

    with existing_store(db) as store:
        faults = maintenance.check(store)
    for fault in faults:
        say(fault)
    if faults:
        raise typer.Exit(1)
    say(f"{db} is sound.")


@app.command()
def vacuum(db: DbOption = DEFAULT_DB) -> None:
    """Give the space of deleted rows back to the disk.

    \b
    arena db vacuum --db cup.db
    """
    from arena.store import maintenance

    with existing_store(db) as store:
        maintenance.vacuum(store)
    say(f"Tidied {db}.")
