"""The viewer as one ASGI application over a store."""

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from arena.store import Store, StoreError

from . import api, pages, render, tables
from .data import NotFound
from .guard import LOOPBACK, Guard
from .stream import Streams, TooManyViewers

log = logging.getLogger(__name__)


def create_app(
    store: Store, *, hosts: Collection[str] | None = LOOPBACK, token: str | None = None
) -> FastAPI:
    """The application; it reads `store` and never closes it. See `Guard` for hosts and token."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await app.state.streams.close()

    app = FastAPI(
        title="madang",
        description="Games between language models: pages, JSON and live events. Read-only.",
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.store = store
    app.state.tournaments = tables.Cache(store)
    app.state.streams = Streams(store.reader)
    app.include_router(pages.router)
    app.include_router(api.router)
    static = str(files("arena.web").joinpath("static"))
    app.mount("/static", StaticFiles(directory=static), name="static")
    app.add_exception_handler(NotFound, _not_found)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(TooManyViewers, _full)
    app.add_exception_handler(StoreError, _store_error)
    app.add_middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
    app.add_middleware(Guard, hosts=hosts, token=token)
    return app


def _answer(request: Request, status: int, line: str) -> Response:
    if request.url.path.startswith("/api"):
        return JSONResponse({"detail": line}, status)
    return HTMLResponse(render.page("error.html", status=status, line=line), status)


async def _not_found(request: Request, error: Exception) -> Response:
    return _answer(request, 404, str(error))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    line = "there is no such page" if error.status_code == 404 else str(error.detail)
    return _answer(request, error.status_code, line)


async def _bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(str(p) for p in e['loc'][1:])}: {e['msg']}" for e in error.errors()]
    return _answer(request, 422, "; ".join(faults)[:500])


async def _full(request: Request, error: Exception) -> Response:
    response = _answer(request, 503, "every live stream is in use: try again in a minute")
    response.headers["Retry-After"] = "60"
    return response


async def _store_error(request: Request, error: Exception) -> Response:
    log.error("%s", error)
    return _answer(request, 503, str(error))
