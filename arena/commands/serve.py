"""`arena serve`: the viewer in a browser."""

from typing import Annotated

import typer

from .common import DEFAULT_DB, DbOption, UsageFault, say


def serve(
    db: DbOption = DEFAULT_DB,
    host: Annotated[str, typer.Option(help="Address; others than loopback need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="MADANG_TOKEN", help="Asked of every visitor.")
    ] = None,
) -> None:
    """Serve boards, standings and latencies of a database to a browser, live, until Ctrl-C.

    \b
    arena serve --db demo.db
    arena serve --db demo.db --port 0
    """
    try:
        from arena.web.server import ServeError
        from arena.web.server import serve as run_server
    except ImportError as error:
        raise UsageFault(
            f"{error.name} is missing, which the viewer needs: pip install 'madang[web]'"
        ) from None
    try:
        run_server(db, host, port, token, lambda url: say(f"Watch at {url} (Ctrl-C ends it)"))
    except ServeError as error:
        raise UsageFault(str(error)) from None
