"""`arena agent`: players that play elsewhere."""

import contextlib
from typing import Annotated

import typer

from .common import UsageFault

app = typer.Typer(help="Players that play elsewhere.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `connect` a subcommand while it is the only one."""


@app.command()
def connect(
    broker: Annotated[str, typer.Argument(help="mqtt://host[:port], or mqtts:// for TLS.")],
    name: Annotated[str, typer.Option(help="The agent name that the tournament asks for.")],
    player: Annotated[str, typer.Option("--with", help="The player that answers.")] = "random",
    prefix: Annotated[str, typer.Option(help="First part of every topic.")] = "madang",
    username: Annotated[str, typer.Option(help="User name at the broker.")] = "",
    password_env: Annotated[
        str, typer.Option(help="Environment variable that holds the password.")
    ] = "",
) -> None:
    """Answer a tournament's move requests over MQTT until interrupted.

    \b
    arena agent connect mqtt://localhost --name lab-1 --with stockfish?nodes=1000
    """
    import asyncio
    import os

    from agents.spec import load_spec, parse_spec

    load_spec(
        {"kind": "mqtt", "broker": broker, "agent": name, "prefix": prefix}
    )  # one-line faults
    if password_env and not os.environ.get(password_env):
        raise UsageFault(f"the environment variable {password_env} is not set: export it")
    password = os.environ.get(password_env, "") if password_env else ""

    async def serve() -> None:
        from agents.factory import create_agents

        try:
            from agents.mqtt_client import MqttClient
        except ImportError as error:
            raise UsageFault(f"{error.name} is missing: pip install 'madang[mqtt]'") from None
        players = create_agents([parse_spec(player)])
        try:
            await players.start()
            (chosen,) = players.values()
            await MqttClient(chosen, broker, name, prefix).run(username, password)
        finally:
            await players.close()

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(serve())
