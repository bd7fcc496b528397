"""`arena model pull/add/remove/list/show/path/serve`: the models of the in-process engine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import JsonOption, QuietOption, UsageFault, print_json, say
from .model_serve import serve

if TYPE_CHECKING:
    from engine.hub import ModelInfo, Progress

app = typer.Typer(
    no_args_is_help=True, help="Fetch, add, list and serve models.", rich_markup_mode=None
)
app.command()(serve)
NameArgument = Annotated[str, typer.Argument(help="A model, such as smollm2-135m.")]


def _hub() -> Any:
    """The engine's hub. Raises UsageFault where what reads models is not installed."""
    try:
        from engine import hub
    except ImportError as error:
        raise UsageFault(
            f"{error.name} is missing, which models need: pip install 'madang[local]'"
        ) from None
    return hub


@contextmanager
def _bars(name: str, quiet: bool) -> "Iterator[Callable[[Progress], None]]":
    """What shows progress: bars on a terminal, a line a stage elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    shown = sys.stderr.isatty() and not quiet
    stages: dict[str, Any] = {}
    with Bars(*columns, console=Console(stderr=True), disable=not shown) as bars:

        def tell(progress: "Progress") -> None:
            if progress.stage not in stages:
                stages[progress.stage] = bars.add_task(f"{name}: {progress.stage}", total=None)
                if not shown and not quiet:
                    typer.echo(f"{name}: {progress.stage}", err=True)
            bars.update(
                stages[progress.stage], completed=progress.done, total=progress.total or None
            )

        yield tell


@app.command()
def pull(
    name: NameArgument,
    force: Annotated[bool, typer.Option("--force", help="Fetch it again.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Fetch a known model, make it ready once and keep it in the user's cache.

    \b
    arena model pull smollm2-135m
    arena model pull gemma3-270m
    """
    hub = _hub()
    with _bars(name, quiet) as tell:
        path = hub.pull(name, tell, force=force)
    say(str(path))


@app.command()
def add(
    source: Annotated[str, typer.Argument(help="A path, hf:ID or ollama:NAME.")],
    name: Annotated[str | None, typer.Option("--name", help="What to call it here.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Take up a model where it lies: a directory, a GGUF file, Ollama's or the hub's.

    \b
    arena model add ~/models/Qwen3-0.6B
    arena model add ~/models/Qwen3-0.6B-Q4_K_M.gguf --name qwen3
    arena model add ollama:qwen3:0.6b
    arena model add hf:Qwen/Qwen3-0.6B
    """
    from dataclasses import asdict

    hub = _hub()
    with _bars(source, quiet or as_json) as tell:
        info = hub.add(source, name, tell, quiet=quiet or as_json)
    if as_json:
        print_json(asdict(info))
        return
    say(_line(info))
    if not quiet:
        say(f"Next, try: arena play llm:{info.name}:constrained material --max-plies 20")


@app.command()
def remove(name: NameArgument) -> None:
    """Forget a model: what we keep of it is deleted, files used in place stay."""
    _hub().remove(name)


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the models that are known or here, with what each costs in memory."""
    from dataclasses import asdict

    models = _hub().list_models()
    if as_json:
        print_json({"models": [asdict(model) for model in models]})
        return
    for model in models:
        say(_line(model))


def _line(model: "ModelInfo") -> str:
    """Name, size, precision of the file and of the computation, memory, where."""
    where = model.fault or model.path or f"not here; arena model pull {model.name}"
    memory = f"{model.weights_bytes >> 20} MiB + {model.kv_bytes_per_token / 1024:g} KiB a token"
    size, computed = f"{model.parameters / 1e6:.0f}M", model.compute_precision
    precision = f"{model.precision}→{computed.replace('float', 'fp')}"
    return f"{model.name}  {size}  {precision}  {memory}  {model.licence}  {where}"


@app.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Tell what is known of a model: source, checksum, precision, licence, sizes, memory."""
    from dataclasses import asdict

    model = asdict(_hub().show(name))
    if as_json:
        print_json(model)
        return
    for key, value in model.items():
        if value not in (None, ""):
            say(f"{key:>18}  {value}")


@app.command()
def path(name: NameArgument) -> None:
    """Print the directory of a model that is here."""
    say(str(_hub().path(name)))
