"""`arena model pull/list/show/path/serve`: the models of the in-process engine."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import JsonOption, QuietOption, UsageFault, print_json, say
from .model_serve import serve

if TYPE_CHECKING:
    from engine.hub import Progress

app = typer.Typer(
    no_args_is_help=True, help="Fetch, convert and list models.", rich_markup_mode=None
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


@app.command()
def pull(
    name: NameArgument,
    force: Annotated[bool, typer.Option("--force", help="Fetch it again.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Fetch a model, convert it once and keep it in the user's cache.

    \b
    arena model pull smollm2-135m
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bars

    hub = _hub()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    shown = sys.stderr.isatty() and not quiet
    stages: dict[str, Any] = {}
    with Bars(*columns, console=console, disable=not shown) as bars:

        def tell(progress: "Progress") -> None:
            if progress.stage not in stages:
                stages[progress.stage] = bars.add_task(f"{name}: {progress.stage}", total=None)
                if not shown and not quiet:
                    typer.echo(f"{name}: {progress.stage}", err=True)
            bars.update(
                stages[progress.stage], completed=progress.done, total=progress.total or None
            )

        path = hub.pull(name, tell, force=force)
    say(str(path))


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the models that are known or here."""
    from dataclasses import asdict

    models = _hub().list_models()
    if as_json:
        print_json({"models": [asdict(model) for model in models]})
        return
    for model in models:
        where = model.path or f"not here; arena model pull {model.name}"
        size = f"{model.parameters / 1e6:.0f}M"
        say(f"{model.name}  {size}  {model.precision}  {model.licence}  {where}")


@app.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Tell what is known of a model: source, checksum, precision, licence, sizes."""
    from dataclasses import asdict

    model = asdict(_hub().show(name))
    if as_json:
        print_json(model)
        return
    for key, value in model.items():
        say(f"{key:>15}  {value}")


@app.command()
def path(name: NameArgument) -> None:
    """Print the directory of a model that is here."""
    say(str(_hub().path(name)))
