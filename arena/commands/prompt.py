"""`arena prompt`: the exact text a model would be sent."""

from typing import Annotated

import typer

from .board import FenOption, MovesOption, SetupOption, position, words
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
    draw_offered: Annotated[
        bool, typer.Option("--draw-offered", help="The opponent offers a draw.")
    ] = False,
    no_resign: Annotated[
        bool, typer.Option("--no-resign", help="As under policy.allow_resign = false.")
    ] = False,
    no_draw: Annotated[
        bool, typer.Option("--no-draw", help="As under policy.allow_draw_offer = false.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Only name the templates.")] = False,
    model: Annotated[
        str, typer.Option(help="Render by this model's chat template and count its tokens.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Print exactly what asks a model for a move: the messages, or with --model the sent text.

    \b
    arena prompt --game janggi --template history
    arena prompt --moves "e2e4 e7e5 g1f3 b8c6" --model smollm2-135m
    """
    from dataclasses import asdict

    from agents.prompt import render_prompt
    from agents.templates import TEMPLATES

    if listed:
        say("\n".join(TEMPLATES))
        return
    state = position(game, rules, fen, setup, moves)
    try:
        made = render_prompt(
            template,
            state,
            notation=notation,
            plies_left=plies_left,
            draw_offered=draw_offered,
            may_resign=not no_resign,
            may_offer_draw=not no_draw,
        )
    except ValueError as error:
        raise UsageFault(str(error)) from None
    found: dict[str, object] = {
        "template": made.template,
        "hash": made.hash,
        "messages": [asdict(message) for message in made.messages],
    }
    text = made.text
    if model:
        from agents.local import load_tokenizer, prompt_report, rendered

        tokenizer = load_tokenizer(model)
        before = words(moves)[:-2]  # what the same player was asked at its last move
        earlier = None
        if len(words(moves)) >= 2:
            state = position(game, rules, fen, setup, before)
            earlier = render_prompt(
                template, state, notation=notation, plies_left=plies_left and plies_left + 2
            )
        counts = prompt_report(tokenizer, earlier, made)
        text = rendered(tokenizer, made)
        found |= {"text": text, "tokens": counts.tokens, "reusable": counts.reusable}
    if as_json:
        print_json(found)
        return
    say(text)
    if model:
        say(
            f"\n{counts.tokens} tokens for {model}; {counts.reusable} are computed already "
            f"from its move before, {counts.fresh} are fresh"
        )
