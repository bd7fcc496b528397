"""`arena init` and `arena doctor`: before the first game."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .common import JsonOption, UsageFault, print_json, say, warn


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


def doctor(as_json: JsonOption = False) -> None:
    """Check Python, packages, torch, GPU, models, engines and import names.

    \b
    arena doctor
    """
    from dataclasses import asdict

    from arena.doctor import check_all

    if as_json:
        checks = list(check_all())
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        checks = []
        for check in check_all():
            checks.append(check)
            say(f"{check.state:>4}  {check.name}: {check.detail}")
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(2)


def warn_of_clashes() -> None:
    """Say at the start if another distribution owns one of our import names."""
    from arena.doctor import clashes

    for sentence in clashes():
        warn(sentence)
