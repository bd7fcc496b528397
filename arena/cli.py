"""The command `arena`: parse, call one function, print.

Exit codes: 0 finished · 1 our bug · 2 usage, configuration or environment · 3 finished with
unresolved games · 4 an agent could not start · 130 interrupted, resumable. A user's mistake is one
line that names the fix; a bug of ours is a trace and a plea.
"""

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable

import typer

from arena.commands import (
    agent,
    board,
    bring,
    care,
    check,
    figures,
    hand_on,
    look,
    model,
    play,
    prompt,
    replay,
    serve,
    setup,
    watch,
)

app = typer.Typer(
    name="arena",
    help="Language models, engines and simple movers play chess and janggi; every move is kept.",
    epilog="Start with: arena play random material --game janggi --pairs 5",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: tuple[Callable[..., None], ...] = (
    setup.init, setup.doctor, check.check, play.play, play.run, play.resume, play.extend,
    look.status, look.standings, figures.crosstable, figures.h2h, figures.rate, figures.stats,
    look.show, watch.watch, replay.replay, look.export, serve.serve,
    hand_on.share, hand_on.publish, hand_on.verify,
    prompt.prompt, board.legal, board.perft, board.convert, board.parse,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)
app.command("import")(bring.import_)
app.add_typer(model.app, name="model")
app.add_typer(care.app, name="db")
app.add_typer(agent.app, name="agent")

LINGER_S = 1.0
ONE_LINE: dict[tuple[str, str], int] = {
    ("arena.commands.common", "UsageFault"): 2,
    ("arena.config", "ConfigError"): 2,
    ("arena.store", "StoreError"): 2,
    ("agents.spec", "SpecError"): 2,
    ("agents.base", "AgentError"): 4,
    ("engine.types", "EngineError"): 2,
    ("games.base", "GameError"): 2,
}
"""Errors that are the user's to mend: (module, name) → exit code. Only loaded modules can raise."""


class StderrHandler(logging.Handler):
    """Writes to what standard error is now, so that a live panel can move out of the way."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def main() -> None:
    """Entry point. Leaves by SystemExit with the documented code."""
    logging.basicConfig(level=logging.WARNING, handlers=[StderrHandler()])
    logging.getLogger("agents.local").setLevel(logging.INFO)  # how a model's download gets on
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    leave(guarded())


def guarded() -> int:
    """Run the command; its exit code."""
    try:
        setup.warn_of_clashes()
        app()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except KeyboardInterrupt:
        typer.echo("arena: interrupted", err=True)
        return 130
    except Exception as error:
        code = exit_code(error)
        if code is None:
            traceback.print_exc()
            typer.echo("arena: this is a bug of ours; please report the lines above", err=True)
            return 1
        typer.echo(f"arena: {error}", err=True)
        return code
    return 0


def leave(code: int) -> None:
    """End the process, also where a thread is still busy with a model's step."""
    busy = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    for thread in busy:
        thread.join(LINGER_S / len(busy))
    if any(thread.is_alive() for thread in busy):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)  # nothing is left to be written: the record is closed
    sys.exit(code)


def exit_code(error: Exception) -> int | None:
    """The code of an error that is not our bug; None for a bug."""
    for (module, name), code in ONE_LINE.items():
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(error, kind):
            return code
    return None


if __name__ == "__main__":
    main()
