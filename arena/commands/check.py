"""`arena check`: is a player fit for a tournament?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import JsonOption, UsageFault, known_game, print_json, say

if TYPE_CHECKING:
    from agents.base import Check
    from agents.spec import AgentSpec


def check(
    agent: Annotated[str, typer.Argument(help="A player, or with --config a player's name.")],
    game: Annotated[str, typer.Option("--game", "-g", help="chess or janggi; else both.")] = "",
    plies: Annotated[int, typer.Option(min=2, help="Of each short game.")] = 12,
    context: Annotated[
        int, typer.Option(min=64, help="Prompt tokens that an endpoint should read.")
    ] = 2048,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds of one move.")] = 120.0,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file whose [[players]] has that name.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play short games against random moves and report every fault; probe an endpoint.

    \b
    arena check stockfish?nodes=100
    arena check "mqtt:lab-1?broker=mqtt://localhost" --game chess
    arena check qwen --config cup.toml --context 4096 --json
    """
    import asyncio

    from arena.check import Options, check_player

    games = (known_game(game).name,) if game else ()
    options = Options(games, plies, timeout, context)
    tell = (lambda _: None) if as_json else _print
    report = asyncio.run(check_player(_player(agent, config), options, tell))
    if as_json:
        print_json(report.as_json())
    elif report.fit:
        say(f"{report.player} is fit to play.")
    else:
        say(f"{report.player} is not fit to play.")
    if not report.fit:
        raise typer.Exit(4)


def _player(agent: str, config: Path | None) -> "AgentSpec":
    from agents.spec import nearest, parse_spec

    if config is None:
        return parse_spec(agent)
    from arena.config import load_config

    players = {spec.name: spec for spec in load_config(config).players}
    if agent not in players:
        known = ", ".join(players)
        raise UsageFault(f"{config} has no player {agent!r}{nearest(agent, players)}: {known}")
    return players[agent]


def _print(found: "Check") -> None:
    say(f"{found.state:>4}  {found.name}: {found.detail}")
