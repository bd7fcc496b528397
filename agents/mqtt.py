"""A player at the other end of an MQTT 5 broker.

Requests and answers are as `mqtt_wire` says. The connection is made again with back-off whenever it
breaks; a request that has no answer yet is sent again after that, when the agent comes back, and
every few seconds, always whole and under the same correlation data. An answer counts once, and only
for the request it names; late, doubled and unasked ones are dropped and counted. Silence beyond
`stall_timeout` is the agent's, and loses. The database stays the truth: nothing is read back.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import secrets
import time
from collections.abc import Mapping

import aiomqtt

from games.base import Game, Move, Side

from .base import AgentError, AgentInfo, Attempt, Decision, DecisionKind, Timing, Turn
from .mqtt_wire import back_off, connection, correlation_of, encode_turn, properties, topic
from .naming import default_name
from .parse import PARSER_VERSION, parse_answer
from .policy import retry_text
from .spec import MqttSpec

log = logging.getLogger(__name__)

RESEND_S = 5.0
MOST_BYTES = 64_000  # of an answer; a longer one is read to here
_Pending = tuple[bytes, "asyncio.Future[bytes]"]


class MqttAgent:
    """One remote agent as a player; serves many games at once."""

    def __init__(self, spec: MqttSpec) -> None:
        self._spec = spec
        config = {**spec.model_dump(mode="json"), "parser_version": PARSER_VERSION}
        name = spec.name or default_name(spec)
        self._info = AgentInfo(name, "mqtt", config, deterministic=False)
        self._slots = asyncio.Semaphore(spec.max_pending)
        self._pending: dict[bytes, _Pending] = {}
        self._session = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._client: aiomqtt.Client | None = None
        self._link: asyncio.Task[None] | None = None
        self._online = asyncio.Event()
        self._trouble = "no connection to the broker yet"
        self._password = ""
        self._offers: dict[str, int] = {}  # game → the ply a draw was offered at
        self._dropped = self._connections = 0

    @property
    def info(self) -> AgentInfo:
        return self._info

    @property
    def faults(self) -> Mapping[str, int]:
        return {
            "answers to no open request": self._dropped,
            "broken connections": max(0, self._connections - 1),
        }

    @property
    def dropped(self) -> int:
        """Answers so far that answered no open request."""
        return self._dropped

    @property
    def connections(self) -> int:
        """Times the broker was reached so far."""
        return self._connections

    async def start(self) -> None:
        """Waits until the agent is online. Raises AgentError after `startup_timeout`."""
        spec = self._spec
        if spec.password_env:
            self._password = os.environ.get(spec.password_env, "")
            if not self._password:
                raise AgentError(
                    f"{self._info.name}: the environment variable {spec.password_env} is not set"
                )
        self._link = asyncio.create_task(self._keep_linked())
        try:
            async with asyncio.timeout(spec.startup_timeout):
                await self._online.wait()
        except TimeoutError:
            raise AgentError(
                f"{self._info.name}: not there after {spec.startup_timeout:g} s "
                f"({self._trouble}): arena agent connect {spec.broker} --name {spec.agent}"
            ) from None

    async def new_game(self, game_id: str, game: Game, side: Side) -> None:
        """Raises AgentError where the game lacks the notation."""
        if self._spec.notation not in game.notations:
            known = ", ".join(game.notations)
            raise AgentError(
                f"{self._info.name}: {game.name} has no notation {self._spec.notation!r}: "
                f"it has {known}"
            )

    async def choose(self, turn: Turn) -> Decision:
        policy, asked = self._spec.policy, time.monotonic()
        attempts: tuple[Attempt, ...] = ()
        async with self._slots:
            first = time.monotonic()
            while True:
                note = retry_text(attempts) if attempts else ""
                began = time.monotonic()
                request = encode_turn(turn, self._spec.notation, note)
                answer = await self._answer(request)
                timing = Timing(time.monotonic() - asked, queue=began - asked)
                asked = time.monotonic()
                if answer is None:
                    detail = f"no answer in {self._spec.stall_timeout:g} s ({self._trouble})"
                    return Decision("forfeit", reason="stall", detail=detail, attempts=attempts)
                attempts = (*attempts, self._read(turn, answer, len(attempts) + 1, timing, request))
                if decision := self._accepted(turn, attempts):
                    return decision
                if reason := policy.stop(attempts, time.monotonic() - first):
                    return policy.end(turn, attempts, reason)

    async def end_game(self, game_id: str) -> None:
        self._offers.pop(game_id, None)

    async def close(self) -> None:
        link = self._link
        while link is not None and not link.done():
            link.cancel()  # until it ends: a publish that is just acknowledged swallows one
            await asyncio.wait({link}, timeout=0.1)
        if link is not None and not link.cancelled():
            link.result()

    def _read(
        self, turn: Turn, answer: bytes, number: int, timing: Timing, request: bytes
    ) -> Attempt:
        text = answer[:MOST_BYTES].decode("utf-8", "replace")
        cut = len(answer) > MOST_BYTES
        read = parse_answer(turn.state, text, notation=self._spec.notation, truncated=cut)
        return Attempt(
            number,
            read.kind,
            answer=text,
            uci=read.uci,
            span=read.span,
            detail=read.detail,
            prompt=request.decode(),
            seed=turn.seed,
            timing=timing,
        )

    def _accepted(self, turn: Turn, attempts: tuple[Attempt, ...]) -> Decision | None:
        last = attempts[-1]
        if last.kind == "move" and last.uci is not None:
            return Decision("move", Move(last.uci), attempts=attempts)
        if last.kind not in ("resign", "draw_offer") or not self._spec.policy.allows(last.kind):
            return None
        ply = len(turn.state.moves)
        if last.kind == "draw_offer" and not turn.draw_offered:
            if self._offers.get(turn.game_id) == ply:
                return None  # offered already on this move: now a move is due
            self._offers[turn.game_id] = ply
        kind: DecisionKind = "resign" if last.kind == "resign" else "draw_offer"
        return Decision(kind, attempts=attempts)

    async def _answer(self, request: bytes) -> bytes | None:
        """The answer to one request; None: none came in time."""
        correlation = f"{self._session}.{next(self._numbers)}".encode()
        came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending[correlation] = (request, came)
        try:
            async with asyncio.timeout(self._spec.stall_timeout):
                while not came.done():
                    sending = asyncio.create_task(self._send(correlation))
                    try:  # a broker that dies meanwhile never acknowledges it
                        await asyncio.wait({came}, timeout=RESEND_S)
                    finally:
                        sending.cancel()
                        await asyncio.gather(sending, return_exceptions=True)
                return came.result()
        except TimeoutError:
            return None
        finally:
            del self._pending[correlation]

    async def _send(self, correlation: bytes) -> None:
        """Publish a request; where that fails it is sent again after the next connection."""
        spec, client = self._spec, self._client
        if client is None or correlation not in self._pending:
            return
        request, _ = self._pending[correlation]
        back = properties(correlation, topic(spec.prefix, spec.agent, "answer"))
        with contextlib.suppress(aiomqtt.MqttError):
            to = topic(spec.prefix, spec.agent, "request")
            await client.publish(to, request, qos=1, properties=back)

    async def _keep_linked(self) -> None:
        spec, failures = self._spec, 0
        while True:
            try:
                async with connection(spec.broker, spec.username, self._password) as client:
                    for what in ("answer", "status"):
                        await client.subscribe(topic(spec.prefix, spec.agent, what), qos=1)
                    self._client, self._trouble, failures = client, "the agent is not online", 0
                    self._connections += 1
                    await self._resend()
                    async for message in client.messages:
                        await self._take(message)
            except (aiomqtt.MqttError, OSError) as error:
                self._trouble = f"{spec.broker}: {error}"
                log.warning("%s: %s; connecting again", self._info.name, self._trouble)
            finally:
                self._client = None
            await asyncio.sleep(back_off(failures))
            failures += 1

    async def _resend(self) -> None:
        await asyncio.gather(*(self._send(correlation) for correlation in self._pending))

    async def _take(self, message: aiomqtt.Message) -> None:
        payload = message.payload if isinstance(message.payload, bytes) else b""
        if message.topic.value.endswith("/status"):
            if payload == b"online":
                self._trouble = "it is online"
                self._online.set()
                await self._resend()
            else:
                self._trouble = "the agent is offline"
            return
        _, came = self._pending.get(correlation_of(message), (b"", None))
        if came is None or came.done():
            self._dropped += 1
        else:
            came.set_result(payload)
