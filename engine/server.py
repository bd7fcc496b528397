"""An OpenAI-compatible endpoint over one engine: FastAPI at the wire, nothing behind it but Engine.

Answers are worked out in `server_answer`; here are the routes, the models page, health and metrics,
and the server that carries them. A fault of ours is a 500 with its trace in the log alone.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from engine.server_answer import Answer, Desk, Served
from engine.server_ask import Body
from engine.server_gate import Gate, error_response
from engine.server_metrics import CONTENT_TYPE, page
from engine.server_reply import Json
from engine.server_wire import ChatBody, CompletionBody, Fault, fault_of

MAX_BODY = 8 << 20  # bytes
BODY_S = 30.0  # for a client to send its body
GRACE_S = 5.0  # for open answers when the server stops
PROFILES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "interactive": {"max_num_seqs": 2, "max_num_queued_reqs": 0},
        "throughput": {},
    }
)
"""Engine settings by purpose: nobody waits behind others, or full batches with a queue."""


def create_app(served: Served, *, api_key: str | None = None) -> FastAPI:
    """The endpoint. Without a key it answers to loopback names only; see `Gate`."""
    desk = Desk(served)
    app = FastAPI(title="madang", openapi_url=None)
    app.state.desk = desk
    app.add_middleware(Gate, api_key=api_key)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: Any) -> Response:
        return error_response(Fault(error.status_code, str(error.detail)), error.headers)

    @app.exception_handler(Fault)
    async def faulty(request: Request, fault: Any) -> Response:
        return error_response(fault)

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        return await _answer(desk, request, ChatBody)

    @app.post("/v1/completions")
    async def completions(request: Request) -> Response:
        return await _answer(desk, request, CompletionBody)

    @app.get("/v1/models")
    async def models() -> Json:
        return {"object": "list", "data": [_model(desk)]}

    @app.get("/v1/models/{name:path}")
    async def model(name: str) -> Json:
        _check_model(name, served)
        return _model(desk)

    @app.get("/health")
    async def health() -> Json:
        if served.engine.is_dead:
            raise Fault(503, "the engine is closed or dead", code="dead")
        return {"status": "ok"}

    @app.get("/metrics")
    async def metrics() -> Response:
        text = page(served.name, served.engine.snapshot(), desk.num_refused)
        return Response(text, media_type=CONTENT_TYPE)

    return app


async def _answer(desk: Desk, request: Request, kind: type[Body]) -> Response:
    try:
        async with asyncio.timeout(BODY_S):
            data = await _read(request)
    except TimeoutError:
        raise Fault(408, f"no whole body within {BODY_S:g} s") from None
    except ClientDisconnect:
        return Response()  # nobody reads it
    try:
        body = kind.model_validate_json(data)
    except ValidationError as error:
        raise fault_of(error) from None
    _check_model(body.model, desk.served)
    return Answer(desk, body)


async def _read(request: Request) -> bytes:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MAX_BODY:
            raise Fault(413, f"a body of more than {MAX_BODY} bytes")
    return bytes(data)


def _check_model(name: str, served: Served) -> None:
    if name != served.name:
        raise Fault(
            404, f"no model {name!r} here, only {served.name!r}",
            param="model", code="model_not_found",
        )  # fmt: skip


def _model(desk: Desk) -> Json:
    return {
        "id": desk.served.name,
        "object": "model",
        "created": desk.since,
        "owned_by": "madang",
        "max_model_len": desk.longest,
    }


def serve(app: FastAPI, listener: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM, on the main thread; open answers get `GRACE_S` to end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again at its end
    with contextlib.suppress(KeyboardInterrupt):
        server_of(app).run(sockets=[listener])


def server_of(app: FastAPI) -> uvicorn.Server:
    """A server that can be run in any thread."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=int(GRACE_S) + 5,
        timeout_keep_alive=30,
    )
    return _Server(config, app.state.desk)


class _Server(uvicorn.Server):
    """Tells the clients of answers that do not end in time, rather than cut them off."""

    def __init__(self, config: uvicorn.Config, desk: Desk) -> None:
        super().__init__(config)
        self._desk = desk

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.create_task(self._desk.stop(GRACE_S))
        await super().shutdown(sockets)
        ending.cancel()
