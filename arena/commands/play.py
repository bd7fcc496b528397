"""`arena run`, `arena play`, `arena resume`: everything that plays games."""

import fcntl
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import (
    DEFAULT_DB,
    DbOption,
    GameOption,
    JsonOption,
    QuietOption,
    RulesOption,
    UsageFault,
    chosen_run,
    existing_store,
    is_url,
    warn,
)
from .dry_run import print_plan
from .output import Output, finish, followed

if TYPE_CHECKING:
    from arena.config import Config

FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Start a new database; an old one is kept beside it.")
]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Print the schedule, play nothing.")]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the run.")]
ConcurrencyOption = Annotated[
    int | None, typer.Option("--concurrency", "-c", min=1, help="Games in flight at once.")
]
ServeOption = Annotated[
    bool, typer.Option("--serve", help="Serve the viewer while it runs; the address is printed.")
]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Of the viewer; 0 takes a free one.")
]


def run(
    config: Annotated[Path, typer.Argument(help="A TOML file; `arena init` writes one.")],
    db: Annotated[str | None, typer.Option("--db", help="Database; else the file's.")] = None,
    seed: SeedOption = None,
    concurrency: ConcurrencyOption = None,
    fresh: FreshOption = False,
    dry_run: DryOption = False,
    serve: ServeOption = False,
    port: PortOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Play the tournament of a TOML file.

    \b
    arena run examples/demo.toml
    arena run cup.toml --db cup.db --concurrency 8 --json
    """
    from arena.config import load_config

    given = {"db": db, "seed": seed, "concurrency": concurrency}
    overrides = {key: value for key, value in given.items() if value is not None}
    loaded = load_config(config, overrides)
    output = Output(loaded.run.db, as_json, quiet, port if serve else None)
    _run_config(loaded, output, fresh=fresh, dry_run=dry_run)


def play(
    first: Annotated[str, typer.Argument(help="A player, such as random or smollm2-135m:choice.")],
    second: Annotated[str, typer.Argument(help="The other player.")],
    game: GameOption = "chess",
    rules: RulesOption = "",
    pairs: Annotated[
        int | None, typer.Option(min=1, help="Colour-swapped pairs of games; with --sprt at most.")
    ] = None,
    max_plies: Annotated[int | None, typer.Option(min=1, help="The arena's cap.")] = None,
    at_cap: Annotated[
        str, typer.Option(help="At the cap: cut_short, material, points, draw, referee.")
    ] = "cut_short",
    referee: Annotated[
        str, typer.Option(help="An engine that judges at the cap, such as stockfish?nodes=50000.")
    ] = "",
    openings: Annotated[str, typer.Option(help="A book (EPD, FEN lines, PGN), or builtin.")] = "",
    sprt: Annotated[
        str, typer.Option(help="Play until one is told from the other: elo0,elo1[,alpha,beta].")
    ] = "",
    setup: Annotated[
        list[str] | None, typer.Option(help="Janggi set-up Cho/Han; may be given again.")
    ] = None,
    tc: Annotated[str, typer.Option(help="Time control: [moves/]time[+increment].")] = "inf",
    db: DbOption = DEFAULT_DB,
    seed: SeedOption = None,
    concurrency: ConcurrencyOption = None,
    dry_run: DryOption = False,
    serve: ServeOption = False,
    port: PortOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Play two agents against each other, without a TOML file.

    \b
    arena play random material --game janggi --pairs 5
    arena play smollm2-135m:constrained stockfish?nodes=100 --max-plies 60 --at-cap material
    arena play stockfish?nodes=200 stockfish?nodes=100 --sprt 0,20 --pairs 500 --openings builtin
    """
    from arena.config import build_config

    section: dict[str, object] = {
        "game": game, "rules": rules, "at_cap": at_cap, "setups": tuple(setup or ()), "tc": tc,
        **(_sprt_table(sprt, pairs) if sprt else {"format": "match", "pairs": pairs or 1}),
    }  # fmt: skip
    if referee:
        section["referee"] = _referee_table(referee)
    if max_plies is not None:
        section["max_plies"] = max_plies
    if openings:
        section["openings"] = openings
    settings: dict[str, object] = {"name": f"{first} v {second}"[:200], "db": db}
    given = {"seed": seed, "concurrency": concurrency}
    settings |= {key: value for key, value in given.items() if value is not None}
    players = [_spec_table(text) for text in (first, second)]
    config = build_config({"run": settings, "games": [section], "players": players})
    output = Output(db, as_json, quiet, port if serve else None)
    _run_config(config, output, fresh=False, dry_run=dry_run)


def resume(
    run: Annotated[int | None, typer.Argument(help="Number of the run; else the last.")] = None,
    db: DbOption = DEFAULT_DB,
    concurrency: ConcurrencyOption = None,
    serve: ServeOption = False,
    port: PortOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Play what is still open of an interrupted run; nothing is played twice.

    \b
    arena resume --db demo.db
    arena resume 3 --db demo.db --concurrency 4
    """
    from arena.config import restore
    from arena.running import resume_run

    output = Output(db, as_json, quiet, port if serve else None)
    with existing_store(db) as store:
        info = chosen_run(store, run)
        if "imported" in info.config:
            raise UsageFault(f"run {info.id} holds games of {info.config['imported']}: all played")
        config = restore(info.config)
        if concurrency is not None:
            changed = config.run.model_copy(update={"concurrency": concurrency})
            config = config.model_copy(update={"run": changed})
        with followed(output) as shown:
            finish(lambda: resume_run(config, info.id, store, shown), store, output)


def extend(
    run: Annotated[int, typer.Argument(help="Number of the run.")],
    add: Annotated[list[str], typer.Option("--add", help="A new player; may be given again.")],
    db: DbOption = DEFAULT_DB,
    concurrency: ConcurrencyOption = None,
    serve: ServeOption = False,
    port: PortOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add players to a recorded run and play their games against everybody.

    \b
    arena extend 1 --add stockfish?nodes=100 --db cup.db
    """
    import asyncio

    from agents.spec import parse_spec
    from arena.config import resolved, restore
    from arena.extend import extend as extended
    from arena.store import queries

    with existing_store(db) as store:
        info = chosen_run(store, run)
        more = extended(
            restore(info.config), queries.slots(store, run), [parse_spec(text) for text in add]
        )
        adding = store.extend_run(
            run, players=more.players, slots=more.slots, config=resolved(more.config)
        )
        asyncio.run(adding)
    resume(run, db, concurrency, serve, port, as_json, quiet)


def _sprt_table(text: str, pairs: int | None) -> dict[str, object]:
    """`0,10` or `0,10,0.05,0.05` as a section's keys. Raises UsageFault."""
    names = ("elo0", "elo1", "alpha", "beta")
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 4):
        raise UsageFault(f"--sprt {text}: write elo0,elo1 or elo0,elo1,alpha,beta, such as 0,10")
    test: dict[str, object] = dict(zip(names, numbers, strict=False))
    return {"format": "sprt", "sprt": test | ({"max_pairs": pairs} if pairs else {})}


def _referee_table(text: str) -> dict[str, Any]:
    """A UCI player in the command line's form as a section's `referee`. Raises UsageFault."""
    from agents.spec import UciSpec, parse_spec

    spec = parse_spec(text)
    if not isinstance(spec, UciSpec):
        raise UsageFault(f"--referee {text}: only a UCI engine can judge, such as stockfish")
    named = spec.model_dump(include={"path", "nodes", "depth", "options"})
    return {key: value for key, value in named.items() if value is not None}


def _spec_table(text: str) -> dict[str, Any]:
    from agents.spec import parse_spec

    return parse_spec(text).model_dump()


def _run_config(config: "Config", output: Output, *, fresh: bool, dry_run: bool) -> None:
    from arena.running import run_new
    from arena.store import Store

    if dry_run:
        print_plan(config, output.as_json)
        return
    if fresh:
        set_aside(output.db)
    with Store.open(output.db) as store, followed(output) as shown:
        finish(lambda: run_new(config, store, shown, warn), store, output)


def set_aside(db: str) -> None:
    """Rename an existing database file, so that a new one can take its name. Raises UsageFault."""
    if is_url(db):
        raise UsageFault("--fresh works on database files only: name an empty database instead")
    path = Path(db)
    if not path.exists():
        return
    lock = path.with_name(path.name + "-lock")
    if lock.exists():
        with lock.open("r+b") as held:
            try:
                fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageFault(f"{db} is being played by another process: stop it") from None
    number = 1
    while path.with_name(f"{path.name}.old-{number}").exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(path.with_name(f"{path.name}.old-{number}{suffix}"))
    warn(f"the old {db} is kept as {path.name}.old-{number}")
