"""What the players of one configuration need, asked of the places that have it: engine binaries,
models here, servers and brokers. Starts no player and plays nothing (`arena check` does)."""

import asyncio
from collections.abc import Iterator

from agents.base import Check
from agents.spec import AgentSpec, EndpointSpec, LlmSpec, MqttSpec, UciSpec
from agents.uci_client import find_binary
from arena.config import Config
from arena.doctor import find_model


def check_players(config: Config) -> Iterator[Check]:
    """One line for each player that needs something. `warn`: its games cannot be played now."""
    for spec in config.players:
        found = _player(spec)
        if found is not None:
            yield found


def _player(spec: AgentSpec) -> Check | None:
    name = f"player {spec.name}"
    match spec:
        case UciSpec():
            path = find_binary(spec.path)
            missing = f"no engine binary {spec.path!r}: check the path, or install it"
            return Check(name, "ok" if path else "warn", path or missing)
        case LlmSpec():
            return Check(name, *find_model(spec.model))
        case EndpointSpec():
            return _endpoint(name, spec)
        case MqttSpec():
            return _remote(name, spec)
    return None


def _endpoint(name: str, spec: EndpointSpec) -> Check:
    try:
        from agents.reach import reach_endpoint
    except ImportError as error:
        return Check(name, "warn", f"{error.name} is missing: pip install 'madang[endpoint]'")
    return asyncio.run(reach_endpoint(name, spec))


def _remote(name: str, spec: MqttSpec) -> Check:
    try:
        from agents.reach_broker import reach_broker
    except ImportError as error:
        return Check(name, "warn", f"{error.name} is missing: pip install 'madang[mqtt]'")
    return asyncio.run(reach_broker(name, spec))
