"""Starts the viewer: in a process of its own (`serve`) or beside a run (`start_background`)."""

import ipaddress
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from arena.store import Store

from .app import create_app
from .guard import LOOPBACK

START_SECONDS = 10.0


class ServeError(Exception):
    """The viewer cannot start; one line that names the thing and the fix."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A viewer that runs in a thread of this process."""

    url: str
    _stop: Callable[[], None]

    def stop(self) -> None:
        """End every stream, stop serving and wait for it."""
        self._stop()


def serve(
    store_url: str | Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve a record until Ctrl-C; `announce` gets the address. Raises ServeError, StoreError.

    Port 0 takes a free one. An address other than loopback needs a token; one is made where none
    is given, and is part of the address that is announced.
    """
    with Store.open(store_url, create=False) as store, listen(host, port) as listener:
        server, url = _server(store, listener, host, token)
        announce(url)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def start_background(
    store_url: str | Path, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> Handle:
    """Serve a record from a thread while this process goes on. Raises ServeError, StoreError."""
    store = Store.open(store_url, create=False)
    try:
        listener = listen(host, port)
    except ServeError:
        store.close()
        raise
    server, url = _server(store, listener, host, token)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="viewer", daemon=True
    )
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join(START_SECONDS)
        listener.close()
        store.close()

    return Handle(url, stop)


class _Server(uvicorn.Server):
    """Ends the open streams first: they would hold up a shutdown until its time limit."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.config.app.state.streams.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one. Raises ServeError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ServeError(
            f"cannot serve on {host} port {port}: {reason}; choose another --port"
        ) from None
    return listener


def _server(
    store: Store, listener: socket.socket, host: str, token: str | None
) -> tuple[uvicorn.Server, str]:
    local = is_loopback(host)
    if not local and not token:
        token = secrets.token_urlsafe(18)
    app = create_app(store, hosts=LOOPBACK if local else None, token=token)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=30,
        limit_concurrency=1_500,
    )
    name = f"[{host}]" if ":" in host else host
    tail = f"/?token={token}" if token else "/"
    return _Server(config), f"http://{name}:{listener.getsockname()[1]}{tail}"
