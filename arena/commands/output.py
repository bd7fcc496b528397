"""How a run is followed and what is printed at its end; shared by everything that plays."""

import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from .common import print_json, say, warn

if TYPE_CHECKING:
    from arena.running import Follower
    from arena.store import Store
    from arena.tournament import RunResult


@dataclass(frozen=True, slots=True)
class Output:
    """Where and how much is printed."""

    db: str
    as_json: bool = False
    quiet: bool = False
    port: int | None = None  # of the viewer that runs along; None: no viewer, 0: a free one

    @property
    def live(self) -> bool:
        """Whether a person watches a terminal that can redraw."""
        terminal = sys.stderr.isatty() and (sys.stdout.isatty() or self.as_json)
        return terminal and not self.quiet and os.environ.get("TERM") != "dumb"


@contextmanager
def followed(output: Output) -> "Iterator[Follower]":
    """What shows the run, with a viewer beside it where one is wanted; both end with it."""
    if output.port is None:
        yield follower(output, f"watch elsewhere: arena serve --db {output.db}")
        return
    try:
        from arena.web.server import ServeError, start_background
    except ImportError as error:
        warn(f"no viewer: {error.name} is missing: pip install 'madang[web]'")
        yield follower(output, "")
        return
    try:
        handle = start_background(output.db, port=output.port)
    except ServeError as error:
        warn(f"no viewer: {error}")
        yield follower(output, "")
        return
    try:
        yield follower(output, f"watch at {handle.url} while it runs")
    finally:
        handle.stop()


def follower(output: Output, where: str) -> "Follower":
    """The live panel on a terminal; else plain lines, which under --json go to standard error."""
    from rich.console import Console

    from arena.panel import LivePanel, PlainLines

    lines = tuple(line for line in (where, f"or: arena show --db {output.db}") if line)
    if output.live:
        return LivePanel(Console(stderr=True), lines)
    if output.quiet:
        return PlainLines(None, sys.stderr)
    return PlainLines(sys.stderr if output.as_json else sys.stdout, sys.stderr, lines)


def finish(
    work: "Callable[[], Coroutine[Any, Any, RunResult | None]]", store: "Store", output: Output
) -> None:
    """Play, print the results, leave with the documented exit code. None: nothing was open."""
    from arena.running import run
    from arena.store import StoreError

    try:
        result = run(work())
    except StoreError as error:
        warn(str(error))
        raise typer.Exit(2) from None
    if result is None:
        say(f"Every game of this run in {output.db} is finished.")
        return
    _print_results(store, result, output)
    if result.num_open:
        why = "Interrupted" if result.status == "interrupted" else "Not all games have a result"
        resume = f"arena resume {result.run_id} --db {output.db}"
        typer.echo(f"{why}: {result.num_open} open. Go on with: {resume}", err=True)
    raise typer.Exit(result.exit_code)


def _print_results(store: "Store", result: "RunResult", output: Output) -> None:
    from arena import report
    from arena.store import queries

    if output.as_json:
        print_json(report.summary(store, result.run_id))
        return
    games = queries.games(store, result.run_id)
    if not games:
        return
    say(report.summary_text(store, result.run_id))
    if not output.quiet:
        say("\n".join(_next_commands(output.db, games[-1].id)))


def _next_commands(db: str, game: int) -> list[str]:
    return [
        "Next, try:",
        f"  arena serve --db {db}              boards, answers and latencies in a browser",
        f"  arena show {game} --db {db} --attempts   one game with every raw answer",
        f"  arena standings --db {db} --json   the tables for a program",
    ]
