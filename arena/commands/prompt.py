"""`arena prompt`: the exact text a model would be sent."""

from typing import Annotated

import typer

from .board import FenOption, MovesOption, SetupOption, position
from .common import GameOption, JsonOption, RulesOption, UsageFault, print_json, say


def prompt(
    template: Annotated[str, typer.Option(help="Name of the template.")] = "history",
    game: GameOption = "chess",
    fen: FenOption = "",
    moves: MovesOption = None,
    rules: RulesOption = "",
    setup: SetupOption = "",
    notation: Annotated[str, typer.Option(help="Notation the model is asked for.")] = "uci",
    plies_left: Annotated[int | None, typer.Option(help="To the arena's cap.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only name the templates.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the messages that ask a model for a move, before its own chat template.

    \b
    arena prompt --game janggi --template history
    arena prompt -m e2e4 -m e7e5 --json
    """
    from dataclasses import asdict

    from agents.prompt import render_prompt
    from agents.templates import TEMPLATES

    if listed:
        say("\n".join(TEMPLATES))
        return
    state = position(game, rules, fen, setup, moves)
    try:
        made = render_prompt(template, state, notation=notation, plies_left=plies_left)
    except ValueError as error:
        raise UsageFault(str(error)) from None
    if as_json:
        messages = [asdict(message) for message in made.messages]
        print_json({"template": made.template, "hash": made.hash, "messages": messages})
        return
    say(made.text)
