"""Who may read: loopback by default, a token elsewhere, and headers that let nothing run.

Plain ASGI, so that open streams pass through untouched.
"""

import hmac
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "madang_token"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Refuses what must not be answered and puts the safe headers on everything else.

    `hosts`: names that the server answers to (a page of another site cannot reach us by a name of
    its own); None allows any, which needs a `token`. Only GET and HEAD are served.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str] | None = LOOPBACK, token: str | None = None
    ) -> None:
        if hosts is None and not token:
            raise ValueError("serving other machines needs a token")
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self._hosts is not None and _host_name(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse("unknown host name: use the printed address\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("this viewer only reads\n", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        offered = query.pop("token", [""])[0]
        if offered and self._fits(offered):
            return self._enter(scope["path"], query)
        if self._fits(_cookie(headers)) or self._fits(_bearer(headers)):
            return None
        return PlainTextResponse("a token is needed: open the address that was printed\n", 401)

    def _fits(self, offered: str) -> bool:
        return hmac.compare_digest(offered.encode(), str(self._token).encode())

    def _enter(self, path: str, query: dict[str, list[str]]) -> Response:
        """Keep the token in a cookie and out of the address bar."""
        tail = f"?{urlencode(query, doseq=True)}" if query else ""
        response = RedirectResponse("/" + path.lstrip("/\\") + tail, 303)
        response.set_cookie(COOKIE, str(self._token), httponly=True, samesite="strict")
        return response


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _bearer(headers: Headers) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""
