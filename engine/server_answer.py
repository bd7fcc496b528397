"""One answer of the endpoint: from a body to what is sent, while its client is watched.

A client that hangs up, streaming or not, has its request aborted and its blocks freed. Requests
beyond what may run and wait are refused before anything is tokenised.
"""

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.engine import Engine, Result
from engine.server_ask import Ask, Body, Room, ask_of
from engine.server_gate import error_response
from engine.server_reply import DONE, Json, Reply, dump, error_body, event, fault_for
from engine.server_wire import ChatBody, Fault
from engine.tokenizer import Tokenizer
from engine.types import EngineOverloaded, RequestAborted

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """One model under the name that clients ask for."""

    name: str
    engine: Engine
    tokenizer: Tokenizer


class Desk:
    """Takes the requests to one model, up to its cap. Used on the event loop alone."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.since = int(time.time())
        self.num_refused = 0
        self._open: set[str] = set()
        self._is_stopping = False
        runner, config = served.engine.runner, served.engine.config
        self._limit = config.num_places + config.max_num_queued_reqs
        self.longest = min(config.max_model_len or runner.max_model_len, runner.max_model_len)
        self._room = Room(self.longest, runner.num_blocks * runner.block_size)

    @contextlib.contextmanager
    def place(self, body: Body) -> Iterator[str]:
        """A place for one request, and its id. Raises EngineOverloaded, RequestAborted."""
        self._check_stopping()
        if len(self._open) >= self._limit:
            raise EngineOverloaded(f"{self._limit} requests are open already; try again later")
        kind = "chatcmpl" if isinstance(body, ChatBody) else "cmpl"
        request_id = f"{kind}-{uuid.uuid4().hex}"
        self._open.add(request_id)
        try:
            yield request_id
        finally:
            self._open.remove(request_id)

    async def ask(self, request_id: str, body: Body) -> Ask:
        """Rendered and tokenised beside the event loop. Raises Fault or EngineError."""
        ask = await asyncio.to_thread(ask_of, request_id, body, self.served.tokenizer, self._room)
        self._check_stopping()
        return ask

    async def stop(self, grace_s: float) -> None:
        """After so many seconds, end what is still open: its clients are told."""
        await asyncio.sleep(grace_s)
        self._is_stopping = True
        for request_id in self._open:
            self.served.engine.abort(request_id)

    def _check_stopping(self) -> None:
        if self._is_stopping:
            raise RequestAborted("the server is stopping")

    def reply(self, ask: Ask) -> Reply:
        return Reply(ask, self.served.name, int(time.time()), self.served.tokenizer)

    async def result(self, ask: Ask) -> Result:
        engine = self.served.engine
        return await (engine.score if ask.request.score else engine.generate)(ask.request)

    async def events(self, ask: Ask) -> AsyncGenerator[Json, None]:
        """The chunks of a streamed answer; the first one comes with the first text."""
        reply = self.reply(ask)
        if ask.choices is not None:  # held to a set: it comes whole
            result = await self.result(ask)
            for chunk in (*reply.opening(), *reply.closing(result)):
                yield chunk
            return
        is_open = False
        async with contextlib.aclosing(self.served.engine.stream(ask.request)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                if not is_open:
                    is_open = True
                    for chunk in reply.opening():
                        yield chunk
                if isinstance(piece, str):
                    yield reply.piece(piece)
                else:
                    for chunk in reply.closing(piece):
                        yield chunk


class Answer(Response):
    """Works an answer out while it is sent, and stops when the client hangs up."""

    def __init__(self, desk: Desk, body: Body) -> None:
        super().__init__()
        self._desk, self._body = desk, body
        self._is_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.ensure_future(self._work(scope, receive, send))
        gone = asyncio.ensure_future(_hung_up(receive))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            gone.cancel()
            await asyncio.wait((work, gone))
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._desk.place(self._body) as request_id:
                ask = await self._desk.ask(request_id, self._body)
                if ask.stream:
                    await self._stream(ask, send)
                    return
                found = self._desk.reply(ask).body(await self._desk.result(ask))
            answer = Response(dump(found), media_type="application/json")
        except Exception as error:
            fault = self._fault(error)
            if self._is_begun:
                await _send_last(send, event(error_body(fault)))
                return
            answer = error_response(fault)
        await answer(scope, receive, send)

    async def _stream(self, ask: Ask, send: Send) -> None:
        async with contextlib.aclosing(self._desk.events(ask)) as chunks:
            async for chunk in chunks:
                if not self._is_begun:
                    self._is_begun = True
                    await send(_STREAM_START)
                await send({"type": "http.response.body", "body": event(chunk), "more_body": True})
        await _send_last(send, DONE)

    def _fault(self, error: Exception) -> Fault:
        fault = fault_for(error)
        if fault is None:
            log.error("a request failed", exc_info=error)
            return Fault(500, "the server failed; its log says why", code="internal_error")
        self._desk.num_refused += fault.status == 503
        return fault


_STREAM_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),  # nginx passes every piece on at once
    ],
}


async def _send_last(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": False})


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
