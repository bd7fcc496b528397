"""`arena db backup/check/merge/vacuum`: looking after a database."""

from pathlib import Path
from typing import Annotated

import typer

from .common import DEFAULT_DB, DbOption, existing_store, say

app = typer.Typer(
    no_args_is_help=True, help="Back up, check, merge and tidy databases.", rich_markup_mode=None
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
def merge(
    sources: Annotated[list[str], typer.Argument(help="Databases: files, or SQLAlchemy URLs.")],
    into: Annotated[str, typer.Option(help="Database that gets every run; made where it is new.")],
) -> None:
    """Copy every run of some databases into one; a run that is there already is left alone.

    \b
    arena db merge monday.db tuesday.db --into week.db
    """
    from contextlib import ExitStack

    from arena.store import Store
    from arena.store.merge import merge as merged

    with ExitStack() as opened:
        stores = [opened.enter_context(existing_store(db)) for db in sources]
        found = merged(stores, opened.enter_context(Store.open(into)))
    for one in found:
        words = "is now" if one.added else "was already"
        say(f"Run {one.source_run} of {one.source} {words} run {one.run_id} of {into}.")


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
