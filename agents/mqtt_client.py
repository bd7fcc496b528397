"""The other end of `agents.mqtt`: puts any player of ours behind a broker. A reference to copy.

It remembers its last answers by correlation data: a request that comes twice is answered the same
way twice and thought about once.
"""

import asyncio
import json
import logging
from collections import OrderedDict

import aiomqtt

from .base import Agent, AgentError, Decision
from .mqtt_wire import back_off, connection, correlation_of, decode_turn, properties, topic

log = logging.getLogger(__name__)
REMEMBERED = 1000  # answers


class MqttClient:
    """One player, answering under one name until cancelled."""

    def __init__(self, player: Agent, broker: str, name: str, prefix: str = "madang") -> None:
        self._player, self._broker, self._name, self._prefix = player, broker, name, prefix
        self._answers: OrderedDict[bytes, str] = OrderedDict()
        self._games: set[str] = set()

    async def run(self, username: str = "", password: str = "") -> None:
        """Connect, and connect again whenever the connection breaks."""
        failures = 0
        status = topic(self._prefix, self._name, "status")
        will = aiomqtt.Will(status, "offline", qos=1, retain=True)
        while True:
            try:
                async with connection(self._broker, username, password, will=will) as client:
                    await client.subscribe(topic(self._prefix, self._name, "request"), qos=1)
                    await client.publish(status, "online", qos=1, retain=True)
                    failures = 0
                    log.info("%s is online at %s", self._name, self._broker)
                    async for message in client.messages:
                        await self._reply(client, message)
            except (aiomqtt.MqttError, OSError) as error:
                log.warning("%s: %s; connecting again", self._broker, error)
            await asyncio.sleep(back_off(failures))
            failures += 1

    async def _reply(self, client: aiomqtt.Client, message: aiomqtt.Message) -> None:
        correlation = correlation_of(message)
        to = getattr(message.properties, "ResponseTopic", "")
        if not correlation or not to or not isinstance(message.payload, bytes):
            return
        if correlation not in self._answers:
            self._answers[correlation] = await self._answer(message.payload)
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        answer = self._answers[correlation]
        await client.publish(to, answer, qos=1, properties=properties(correlation))

    async def _answer(self, payload: bytes) -> str:
        try:
            turn = decode_turn(json.loads(payload))
            if turn.game_id not in self._games:
                self._games.add(turn.game_id)
                await self._player.new_game(turn.game_id, turn.state.game, turn.side)
            return _words(await self._player.choose(turn))
        except (KeyError, TypeError, ValueError, AgentError) as error:
            log.warning("a request that cannot be answered: %s", error)
            return ""


def _words(decision: Decision) -> str:
    if decision.move is not None:
        return decision.move.uci
    return {"resign": "resign", "draw_offer": "draw"}.get(decision.kind, "")
