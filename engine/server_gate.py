"""Who may ask: this machine alone, or whoever has the key.

Plain ASGI, so that streams and hang-ups pass through untouched. A page of another site can reach us
neither by a host name of its own (only loopback names are answered where there is no key) nor by a
plain form (bodies must be declared as JSON, which a browser asks about first).
"""

import hmac
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.server_reply import dump, error_body
from engine.server_wire import Fault

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OPEN_PATHS = frozenset({"/health"})


class Gate:
    """In front of the app. Raises nothing; without a key it answers to loopback names only."""

    def __init__(self, app: ASGIApp, *, api_key: str | None) -> None:
        self._app, self._key = app, api_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._fault(scope) if scope["type"] == "http" else None
        answer = self._app if fault is None else error_response(fault)
        await answer(scope, receive, send)

    def _fault(self, scope: Scope) -> Fault | None:
        headers = Headers(scope=scope)
        if self._key is None:
            if _host_name(headers.get("host", "")) not in LOOPBACK:
                return Fault(421, "unknown host name: use 127.0.0.1, or start with a key")
        elif scope["path"] not in OPEN_PATHS and not self._fits(headers):
            return Fault(401, "wrong or missing API key", code="invalid_api_key")
        if scope["method"] == "POST" and _media_type(headers) != "application/json":
            return Fault(415, "send JSON with Content-Type: application/json")
        return None

    def _fits(self, headers: Headers) -> bool:
        scheme, _, offered = headers.get("authorization", "").partition(" ")
        given = offered.strip() if scheme.lower() == "bearer" else ""
        return hmac.compare_digest(given.encode(), str(self._key).encode())


def error_response(fault: Fault, headers: Mapping[str, str] | None = None) -> Response:
    """The fault in OpenAI's shape."""
    more = {"WWW-Authenticate": "Bearer"} if fault.status == 401 else {}
    if fault.status == 503:
        more = {"Retry-After": "1"}
    return Response(
        dump(error_body(fault)),
        fault.status,
        {**(headers or {}), **more},
        media_type="application/json",
    )


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
