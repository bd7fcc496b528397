"""Is a broker there, and is the player online? Connects and reads its retained status."""

import asyncio
import os

import aiomqtt

from .base import Check
from .mqtt_wire import connection, topic
from .spec import MqttSpec

REACH_S = 5.0
STATUS_S = 1.0  # a retained message comes at once


async def reach_broker(name: str, spec: MqttSpec) -> Check:
    """One line about the broker of a player and the player's status. Raises nothing."""
    password = os.environ.get(spec.password_env, "") if spec.password_env else ""
    if spec.password_env and not password:
        return Check(name, "warn", f"the environment variable {spec.password_env} is not set")
    try:
        async with asyncio.timeout(REACH_S):
            status = await _status(spec, password)
    except TimeoutError:
        return Check(name, "warn", f"{spec.broker}: no answer in {REACH_S:g} s")
    except (aiomqtt.MqttError, OSError) as error:
        return Check(name, "warn", f"{spec.broker}: {error}")
    if status == "online":
        return Check(name, "ok", f"{spec.broker} answers, {spec.agent} is online")
    text = f"{spec.broker} answers, {spec.agent} is {status or 'not online'}"
    return Check(name, "warn", f"{text}: arena agent connect {spec.broker} --name {spec.agent}")


async def _status(spec: MqttSpec, password: str) -> str:
    async with connection(spec.broker, spec.username, password) as client:
        await client.subscribe(topic(spec.prefix, spec.agent, "status"), qos=1)
        try:
            async with asyncio.timeout(STATUS_S):
                async for message in client.messages:
                    payload = message.payload
                    return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
        except TimeoutError:
            return ""
    return ""
