"""`arena rate`, `crosstable`, `h2h`, `stats`: what the games of a run come to."""

import math
from typing import Annotated

import typer

from .common import (
    DEFAULT_DB,
    DbOption,
    JsonOption,
    RunOption,
    UsageFault,
    chosen_run,
    existing_store,
    print_json,
    say,
)


def rate(
    runs: Annotated[
        list[int] | None, typer.Argument(metavar="[RUN]...", help="Numbers of runs; else the last.")
    ] = None,
    anchor: Annotated[
        list[str] | None,
        typer.Option("--anchor", help="NAME=ELO: a player of known Elo; may be given again."),
    ] = None,
    db: DbOption = DEFAULT_DB,
    as_json: JsonOption = False,
) -> None:
    """Rate the players of one run, or of several counted together.

    Runs by other rules or terms, or whose players of one name differ, are refused.

    \b
    arena rate --db cup.db
    arena rate 1 2 3 --db cup.db --anchor stockfish:n100=1500
    """
    from arena import report

    anchors = dict(map(_anchor, anchor or ()))
    with existing_store(db) as store:
        if as_json:
            print_json(report.rate(store, runs or (), anchors))
        else:
            say(report.rate_text(store, runs or (), anchors))


def _anchor(text: str) -> tuple[str, float]:
    name, _, elo = text.rpartition("=")
    try:
        value = float(elo)
    except ValueError:
        value = math.nan
    if not name or not math.isfinite(value):
        raise UsageFault(f"--anchor {text}: write NAME=ELO, such as stockfish:n100=1500")
    return name, value


def crosstable(
    db: DbOption = DEFAULT_DB, run: RunOption = None, as_json: JsonOption = False
) -> None:
    """Print who scored how much against whom, a table a game.

    \b
    arena crosstable --db cup.db
    arena crosstable --db cup.db --json
    """
    from arena import report

    with existing_store(db) as store:
        info = chosen_run(store, run)
        if as_json:
            print_json({"run": info.id, **report.crosstable(store, info.id)})
        else:
            say(report.crosstable_text(store, info.id))


def h2h(
    first: Annotated[str, typer.Argument(help="Name of a player.")],
    second: Annotated[str, typer.Argument(help="Name of the other player.")],
    db: DbOption = DEFAULT_DB,
    run: RunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print two players head to head: results by who moved first, Elo, every game.

    \b
    arena h2h random material --db cup.db
    """
    from arena import report

    with existing_store(db) as store:
        info = chosen_run(store, run)
        if as_json:
            found = report.head_to_head(store, first, second, info.id)
            print_json({"run": info.id, **found})
        else:
            say(report.head_to_head_text(store, first, second, info.id))


def stats(db: DbOption = DEFAULT_DB, run: RunOption = None, as_json: JsonOption = False) -> None:
    """Print how games ended, which answers were refused, and where the time went.

    \b
    arena stats --db cup.db
    arena stats --db cup.db --run 2 --json
    """
    from arena import report

    with existing_store(db) as store:
        info = chosen_run(store, run)
        if as_json:
            print_json(report.stats(store, info.id))
        else:
            say(report.stats_text(store, info.id) or "no game has ended yet")
