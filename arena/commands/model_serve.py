"""`arena model serve`: an OpenAI-compatible endpoint over the in-process engine."""

import contextlib
import os
import socket
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from .common import UsageFault, say

if TYPE_CHECKING:
    from agents.base import Telemetry
    from agents.spec import EngineOptions


class Profile(StrEnum):
    INTERACTIVE = "interactive"
    THROUGHPUT = "throughput"


def serve(
    model: Annotated[str, typer.Argument(help="A model, such as smollm2-135m, or a directory.")],
    profile: Annotated[
        Profile, typer.Option(help="interactive: two at once, nobody queues; or full batches.")
    ] = Profile.THROUGHPUT,
    host: Annotated[str, typer.Option(help="Address; others than loopback need a key.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8001,
    name: Annotated[
        str | None, typer.Option(help="What clients call the model; else as given here.")
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine", metavar="KEY=VALUE", help="An engine setting; may be given again."
        ),
    ] = None,
    api_key_env: Annotated[
        str, typer.Option(help="Environment variable with the key that clients must send.")
    ] = "MADANG_API_KEY",
    db: Annotated[
        str | None, typer.Option("--db", help="Keep the engine's time series in this database.")
    ] = None,
) -> None:
    """Serve a model to any OpenAI client, until Ctrl-C: see docs/endpoint.md.

    \b
    arena model serve smollm2-135m
    arena model serve smollm2-135m --profile interactive --db serve.db
    arena model serve smollm2-135m --engine max_num_seqs=16 --engine max_num_queued_reqs=16
    """
    try:
        from arena.web.server import ServeError, is_loopback, listen
        from engine.server import PROFILES, create_app
        from engine.server import serve as run_server
        from engine.server_answer import Served
    except ImportError as error:
        raise UsageFault(
            f"{error.name} is missing, which the endpoint needs: pip install 'madang[web]'"
        ) from None
    from agents.base import AgentError
    from agents.local import load
    from arena.series import kept

    key = os.environ.get(api_key_env) or None
    if key is None and not is_loopback(host):
        raise UsageFault(
            f"serving on {host} needs a key: export {api_key_env} with one, or stay on 127.0.0.1"
        )
    options = _options(PROFILES[profile], engine or [])
    shown = name or model
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(listen(host, port))
            loaded = load(model, options)
        except (ServeError, AgentError) as error:
            raise UsageFault(str(error)) from None
        served = Served(shown, stack.enter_context(loaded.engine), loaded.tokenizer)
        if db is not None:
            config = _kept_config(model, profile, options)
            read = partial(_read, shown, loaded.engine)
            stack.enter_context(kept(db, f"serve {shown}", config, read))
        say(f"Serving {shown} at {_address(host, listener)} (Ctrl-C ends it)")
        run_server(create_app(served, api_key=key), listener)


def _read(name: str, engine: Any) -> "Telemetry":
    from agents.local import telemetry_of

    return telemetry_of(name, engine.snapshot())


def _kept_config(model: str, profile: str, options: "EngineOptions") -> dict[str, object]:
    return {"serve": model, "profile": profile, "engine": options.model_dump(exclude_none=True)}


def _address(host: str, listener: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}/v1"


def _options(profile: Mapping[str, int], words: list[str]) -> "EngineOptions":
    """The profile's settings, and over them KEY=VALUE words. Raises UsageFault."""
    from agents.spec import LlmSpec, SpecError, parse_spec

    pairs = {f"engine.{key}": str(value) for key, value in profile.items()}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageFault(f"--engine {word}: write KEY=VALUE, such as max_num_seqs=8")
        pairs[f"engine.{key.strip()}"] = value.strip()
    try:
        spec = parse_spec(f"llm:model?{urlencode(pairs)}")
    except SpecError as error:
        raise UsageFault(f"--engine: {str(error).partition(': ')[2]}") from None
    assert isinstance(spec, LlmSpec)
    return spec.engine
