"""`arena init` and `arena doctor`: before the first game."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import JsonOption, UsageFault, print_json, say, warn

if TYPE_CHECKING:
    from agents.base import Check as PlayerCheck
    from arena.doctor import Check


def init(
    file: Annotated[Path, typer.Argument(help="Where to write.")] = Path("arena.toml"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take defaults.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Write a commented TOML file of a tournament.

    \b
    arena init
    arena init cup.toml --yes
    """
    from arena.template import Answers, render

    if file.exists() and not force:
        raise UsageFault(f"{file} exists already: name another file, or give --force")
    answers = Answers()
    if not yes and sys.stdin.isatty():
        answers = Answers(
            games=_listed(typer.prompt("Games", "chess, janggi")),
            players=_listed(typer.prompt("Players", ", ".join(answers.players))),
            pairs=typer.prompt("Colour-swapped pairs of each pairing", answers.pairs, type=int),
        )
    text = render(answers)
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise UsageFault(f"{file}: {error.strerror}") from None
    say(f"Wrote {file}. Play it with: arena run {file}")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def doctor(
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file: its players' engines, servers, brokers too.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check Python, packages, torch, GPU, memory, models, engines, broker and import names.

    \b
    arena doctor
    arena doctor cup.toml
    """
    from dataclasses import asdict

    checks = []
    for check in _checks(config):
        checks.append(check)
        if not as_json:
            say(f"{check.state:>4}  {check.name}: {check.detail}")
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(2)


def _checks(config: Path | None) -> "Iterator[Check | PlayerCheck]":
    from arena.doctor import check_all

    if config is None:
        yield from check_all()
        return
    from arena.config import load_config
    from arena.doctor_players import check_players

    loaded = load_config(config)
    yield from check_all()
    yield from check_players(loaded)


def warn_of_clashes() -> None:
    """Say at the start if another distribution owns one of our import names."""
    from arena.doctor import clashes

    for sentence in clashes():
        warn(sentence)
