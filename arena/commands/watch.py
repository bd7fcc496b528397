"""`arena watch`: a run that another process plays, in this terminal."""

import asyncio

from .common import DEFAULT_DB, DbOption, QuietOption, RunOption, chosen_run, existing_store, say
from .output import Output, follower


def watch(db: DbOption = DEFAULT_DB, run: RunOption = None, quiet: QuietOption = False) -> None:
    """Follow a run that another process plays, until it ends or Ctrl-C.

    \b
    arena watch --db cup.db
    arena watch --db cup.db --run 2
    """
    from arena.watching import watch as watched

    with existing_store(db) as store:
        info = chosen_run(store, run)
        shown = follower(Output(db, quiet=quiet), "")
        status = asyncio.run(watched(store, info.id, shown))
    say(f"run {info.id} is {status}")
