"""What both ends of an MQTT game agree on: the broker's address, topics, and a request's JSON.

An agent `NAME` reads `PREFIX/agents/NAME/request`, answers on the response topic of each request,
`PREFIX/agents/NAME/answer`, with its correlation data, and keeps `online` or `offline` (its will)
retained on `PREFIX/agents/NAME/status`. A request holds the whole game, so that an agent may forget
everything between two of them; the same correlation data means the same request.
"""

import json
import random
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiomqtt
from aiomqtt import ProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from games.base import Move
from games.registry import get_game

from .base import Clocks, Turn
from .prompt import legal_texts

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
MOST_QUEUED = 1000  # messages that wait on either side of a connection


def topic(prefix: str, agent: str, what: str) -> str:
    """The topic of an agent's `request`, `answer` or `status`."""
    return f"{prefix}/agents/{agent}/{what}"


def connection(broker: str, username: str = "", password: str = "", **more: Any) -> aiomqtt.Client:
    """A client of `mqtt://host[:1883]` or, over TLS, `mqtts://host[:8883]`; not yet connected."""
    url = urlsplit(broker)
    secure = url.scheme == "mqtts"
    return aiomqtt.Client(
        url.hostname or "localhost",
        url.port or (8883 if secure else 1883),
        username=username or None,
        password=password or None,
        protocol=ProtocolVersion.V5,
        tls_context=ssl.create_default_context() if secure else None,
        keepalive=20,
        max_queued_incoming_messages=MOST_QUEUED,
        max_queued_outgoing_messages=MOST_QUEUED,
        **more,
    )


def properties(correlation: bytes, response: str = "") -> Properties:
    """MQTT 5 properties of a request (with its response topic) or of an answer."""
    made = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    made.CorrelationData = correlation
    if response:
        made.ResponseTopic = response
    return made


def correlation_of(message: aiomqtt.Message) -> bytes:
    """The correlation data of a message; empty where it has none."""
    return bytes(getattr(message.properties, "CorrelationData", b""))


def back_off(failures: int) -> float:
    """Seconds before the next try to connect, jittered."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures, 16)) * random.uniform(0.5, 1)


def encode_turn(turn: Turn, notation: str, note: str) -> bytes:
    """A turn as JSON. `note` says why the answer before was refused."""
    state = turn.state
    return json.dumps(
        {
            "game_id": turn.game_id,
            "game": state.game.name,
            "rules": state.rules,
            "side": state.game.sides[turn.side],
            "start_fen": state.start_fen,
            "moves": [move.uci for move in state.moves],
            "fen": state.fen(),
            "notation": notation,
            "legal": [text for text, _ in legal_texts(state, notation)],
            "seed": turn.seed,
            "remaining": turn.clocks.remaining,
            "increment": turn.clocks.increment,
            "draw_offered": turn.draw_offered,
            "plies_left": turn.plies_left,
            "note": note,
        },
        ensure_ascii=False,
    ).encode()


def decode_turn(data: Mapping[str, Any]) -> Turn:
    """The turn of a request. Raises KeyError, TypeError or ValueError for what is none."""
    state = get_game(data["game"]).start(rules=data["rules"], fen=data["start_fen"])
    for move in data["moves"]:
        state = state.apply(Move(move))
    return Turn(
        str(data["game_id"]),
        state,
        int(data["seed"]),
        Clocks(tuple(data["remaining"]), tuple(data["increment"])),
        bool(data["draw_offered"]),
        data["plies_left"],
    )
