"""`arena share`, `publish`, `verify`: games for others, and the proof that they are true."""

from pathlib import Path
from typing import Annotated

import typer

from .common import DEFAULT_DB, DbOption, RunOption, UsageFault, chosen_run, existing_store, say


def share(
    game: Annotated[int, typer.Argument(help="Number of the game.")],
    file: Annotated[Path, typer.Argument(help="The HTML file to write.")],
    db: DbOption = DEFAULT_DB,
) -> None:
    """Write one game as one HTML file that needs nothing else.

    \b
    arena share 3 game.html --db demo.db
    """
    from arena import share as sharing

    with existing_store(db) as store:
        try:
            say(f"Wrote {sharing.share(store, game, file)}.")
        except sharing.ShareError as error:
            raise UsageFault(str(error)) from None


def publish(
    folder: Annotated[Path, typer.Argument(help="Where the site goes.")],
    db: DbOption = DEFAULT_DB,
    run: RunOption = None,
) -> None:
    """Write standings and every game of a run as a site for any file host.

    \b
    arena publish site --db demo.db
    """
    from arena import share as sharing

    with existing_store(db) as store:
        try:
            number = sharing.publish(store, chosen_run(store, run).id, folder)
        except sharing.ShareError as error:
            raise UsageFault(str(error)) from None
    say(f"Wrote {number} games and the standings to {folder}.")


def verify(
    file: Annotated[Path, typer.Argument(help="A file that `arena share` wrote.")],
) -> None:
    """Play a shared game again, with the same players and seeds, and compare every move.

    \b
    arena verify game.html
    """
    from arena.running import run as run_async
    from arena.share import ShareError
    from arena.share import verify as verified

    try:
        verdict = run_async(verified(file))
    except ShareError as error:
        raise UsageFault(str(error)) from None
    say(verdict.text)
    if verdict.ply is not None:
        raise typer.Exit(3)
