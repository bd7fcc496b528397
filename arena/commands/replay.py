"""`arena replay`: a run judged again from its stored answers."""

import json
from typing import Annotated, Any, Literal

import typer

from .common import (
    DEFAULT_DB,
    DbOption,
    JsonOption,
    UsageFault,
    chosen_run,
    existing_store,
    print_json,
    say,
)


def replay(
    run: Annotated[int | None, typer.Argument(help="Number of the run; else the last.")] = None,
    parser: Annotated[
        Literal["current", "stored"],
        typer.Option(help="Read the answers with this version's reader, or keep the readings."),
    ] = "current",
    policy: Annotated[
        list[str] | None,
        typer.Option(help="key=value of the policy, such as attempts=1; may be given again."),
    ] = None,
    db: DbOption = DEFAULT_DB,
    as_json: JsonOption = False,
) -> None:
    """Judge a finished run again from its stored answers, without a model.

    Says which games would end otherwise, and the standings that follow. Nothing is written.

    \b
    arena replay --db cup.db
    arena replay 2 --db cup.db --parser stored --policy attempts=1
    arena replay 2 --db cup.db --policy then=random_move --json
    """
    from arena import report

    changes = dict(map(_change, policy or ()))
    with existing_store(db) as store:
        found = report.replay(store, chosen_run(store, run).id, parser=parser, policy=changes)
    if as_json:
        print_json(found)
    else:
        say(report.replay_text(found))


def _change(text: str) -> tuple[str, Any]:
    key, given, value = text.partition("=")
    if not given:
        raise UsageFault(f"--policy {text}: write key=value, such as attempts=1")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
