"""`arena legal`, `perft`, `convert`, `parse`: positions and moves without a game."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import (
    GameOption,
    JsonOption,
    RulesOption,
    UsageFault,
    known_game,
    print_json,
    read_bytes,
    read_text,
    say,
    warn,
    write_bytes,
)

if TYPE_CHECKING:
    from games.base import GameState

GameArgument = Annotated[str, typer.Argument(help="chess or janggi.")]
FenOption = Annotated[str, typer.Option("--fen", help="Position; else the game's start.")]
SetupOption = Annotated[str, typer.Option("--setup", help="Janggi set-up Cho/Han: nbbn/bnnb.")]
MovesOption = Annotated[
    list[str] | None,
    typer.Option("--moves", "-m", help='UCI moves from there: "e2e4 e7e5"; may be given again.'),
]


def position(game: str, rules: str, fen: str, setup: str, moves: list[str] | None) -> "GameState":
    """The position that the options describe. Raises UsageFault, GameError."""
    try:
        state = known_game(game).start(rules=rules or None, fen=fen or None, setup=setup or None)
    except ValueError as error:
        raise UsageFault(str(error)) from None
    for text in words(moves):
        state = state.apply(state.parse_move(text))
    return state


def words(moves: list[str] | None) -> list[str]:
    """The single moves of an option that may hold several and be given again."""
    return " ".join(moves or ()).split()


def legal(
    game: GameArgument = "chess",
    fen: FenOption = "",
    moves: MovesOption = None,
    rules: RulesOption = "",
    setup: SetupOption = "",
    notation: Annotated[str, typer.Option(help="Notation of the list; --json has UCI.")] = "uci",
    style: Annotated[
        str, typer.Option("--board", help="letters, unicode; janggi: hanja, hangul.")
    ] = "letters",
    as_json: JsonOption = False,
) -> None:
    """List the legal moves of a position.

    \b
    arena legal janggi --setup nbbn/nbbn --board hanja
    arena legal chess --moves "e2e4 e7e5" --json
    arena legal chess --fen "8/8/8/8/8/2k5/2p5/2K5 w - - 0 1" --notation san
    """
    from games.legal import report

    state = position(game, rules, fen, setup, moves)
    if as_json:
        print_json(report(state))
        return
    try:
        say(state.board_text(style))
        listed = [state.format_move(move, notation) for move in state.legal_moves()]
    except ValueError as error:
        raise UsageFault(str(error)) from None
    say(state.fen())
    outcome = state.outcome()
    if outcome is not None:
        say(f"The game is over: {outcome.result} ({outcome.termination}).")
    say(f"{len(listed)} legal moves: {' '.join(listed)}")


def perft(
    game: GameArgument = "chess",
    depth: Annotated[int, typer.Option("--depth", "-d", min=0, help="Plies.")] = 3,
    fen: FenOption = "",
    moves: MovesOption = None,
    rules: RulesOption = "",
    setup: SetupOption = "",
    divided: Annotated[bool, typer.Option("--divide", help="Count under each first move.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Count the legal move sequences of a length; the check of a move generator.

    \b
    arena perft chess --depth 4
    arena perft janggi --setup nbbn/bnnb --depth 3 --divide
    """
    from games.perft import divide
    from games.perft import perft as count

    state = position(game, rules, fen, setup, moves)
    parts = divide(state, depth) if divided and depth > 0 else {}
    nodes = sum(parts.values()) if parts else count(state, depth)
    if as_json:
        found = {"game": game, "fen": state.fen(), "depth": depth, "nodes": nodes}
        print_json(found | ({"divide": parts} if divided else {}))
        return
    for uci, number in parts.items():
        say(f"{uci}: {number}")
    say(str(nodes))


def convert(
    file: Annotated[str, typer.Argument(help="A file of games, or - for standard input.")],
    source: Annotated[str, typer.Option("--from", help="pgn, gib, uci, fen; else by suffix.")] = "",
    target: Annotated[str, typer.Option("--to", help="pgn, gib, gib-hanja, uci, fen.")] = "uci",
    game: GameOption = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Else stdout.")] = None,
) -> None:
    """Convert games between formats. A game that cannot be read is named, the rest is written.

    \b
    arena convert games.gib --to pgn -o games.pgn
    arena convert games.pgn --to uci
    echo "startpos moves a4b4 i7h7" | arena convert - --from uci --to gib --game janggi
    """
    from games.convert import FORMATS
    from games.convert import convert as converted

    source = source or Path(file).suffix.removeprefix(".")
    for name, option in ((source, "--from"), (target, "--to")):
        if name not in FORMATS:
            raise UsageFault(f"{option} {name or 'is missing'}: known are {', '.join(FORMATS)}")
    known = known_game(game or ("janggi" if "gib" in f"{source} {target}" else "chess"))
    try:
        data, faults = converted(read_bytes(file), source, target, known.name)
    except ValueError as error:
        raise UsageFault(f"{file}: {error}") from None
    for fault in faults:
        warn(f"{file}: {fault}")
    if not data.strip():
        raise UsageFault(f"{file}: no game could be read as {source}")
    if output is None:
        typer.echo(data, nl=False)
    else:
        write_bytes(output, data)


def parse(
    game: GameArgument = "chess",
    fen: FenOption = "",
    moves: MovesOption = None,
    rules: RulesOption = "",
    setup: SetupOption = "",
    notation: Annotated[str, typer.Option(help="Notation that the answer was asked for.")] = "uci",
    truncated: Annotated[
        bool, typer.Option("--truncated", help="The answer was cut at its token limit.")
    ] = False,
    file: Annotated[str, typer.Option("--file", help="The answer; else standard input.")] = "-",
    as_json: JsonOption = False,
) -> None:
    """Read an answer text as the referee's parser does, and say what it is.

    \b
    echo "I play **Nf3**." | arena parse chess
    arena parse janggi --moves "a4b4" --file answer.txt --json
    """
    from dataclasses import asdict

    from agents.parse import parse_answer

    state = position(game, rules, fen, setup, moves)
    reading = parse_answer(state, read_text(file), notation=notation, truncated=truncated)
    if as_json:
        print_json(asdict(reading))
        return
    say(f"{reading.kind} {reading.uci or ''}".strip())
    if reading.detail:
        say(reading.detail)
