"""`arena legal`, `perft`, `convert`, `parse`: positions and moves without a game."""

from typing import TYPE_CHECKING, Annotated

import typer

from .common import (
    GameOption,
    JsonOption,
    RulesOption,
    UsageFault,
    known_game,
    print_json,
    read_text,
    say,
)

if TYPE_CHECKING:
    from games.base import GameState, Move

FenOption = Annotated[str, typer.Option("--fen", help="Position; else the game's start.")]
SetupOption = Annotated[str, typer.Option("--setup", help="Janggi set-up Cho/Han.")]
MovesOption = Annotated[
    list[str] | None, typer.Option("--move", "-m", help="A move from there; may be given again.")
]


def position(game: str, rules: str, fen: str, setup: str, moves: list[str] | None) -> "GameState":
    """The position that the options describe. Raises UsageFault, GameError."""
    try:
        state = known_game(game).start(rules=rules or None, fen=fen or None, setup=setup or None)
    except ValueError as error:
        raise UsageFault(str(error)) from None
    for text in moves or ():
        state = state.apply(state.parse_move(text))
    return state


def legal(
    game: GameOption = "chess",
    fen: FenOption = "",
    moves: MovesOption = None,
    rules: RulesOption = "",
    setup: SetupOption = "",
    notation: Annotated[str, typer.Option(help="Notation of the list.")] = "uci",
    as_json: JsonOption = False,
) -> None:
    """List the legal moves of a position.

    \b
    arena legal --game janggi --setup nbbn/nbbn
    arena legal --fen "8/8/8/8/8/2k5/2p5/2K5 w - - 0 1" --notation san
    """
    state = position(game, rules, fen, setup, moves)
    listed = [_formatted(state, move, notation) for move in state.legal_moves()]
    outcome = state.outcome()
    if as_json:
        ended = None if outcome is None else outcome.termination
        print_json({"fen": state.fen(), "moves": listed, "ended": ended})
        return
    say(state.board_text())
    say(state.fen())
    if outcome is not None:
        say(f"The game is over: {outcome.result} ({outcome.termination}).")
    say(f"{len(listed)} legal moves: {' '.join(listed)}")


def _formatted(state: "GameState", move: "Move", notation: str) -> str:
    try:
        return state.format_move(move, notation)
    except ValueError as error:
        raise UsageFault(str(error)) from None


def perft(
    depth: Annotated[int, typer.Argument(min=0, help="Plies.")],
    game: GameOption = "chess",
    fen: FenOption = "",
    moves: MovesOption = None,
    rules: RulesOption = "",
    setup: SetupOption = "",
    divided: Annotated[bool, typer.Option("--divide", help="Count under each first move.")] = False,
) -> None:
    """Count the legal move sequences of a length; the check of a move generator.

    \b
    arena perft 4
    arena perft 3 --game janggi --divide
    """
    from games.perft import divide
    from games.perft import perft as count

    state = position(game, rules, fen, setup, moves)
    if divided:
        for uci, number in divide(state, depth).items():
            say(f"{uci}: {number}")
    say(str(count(state, depth)))


def convert(
    texts: Annotated[list[str], typer.Argument(help="Moves in a row, from the position on.")],
    game: GameOption = "chess",
    fen: FenOption = "",
    rules: RulesOption = "",
    setup: SetupOption = "",
    source: Annotated[str, typer.Option("--from", help="Notation of the moves given.")] = "uci",
    target: Annotated[str, typer.Option("--to", help="Notation wanted.")] = "san",
) -> None:
    """Write moves in another notation.

    \b
    arena convert e2e4 e7e5 g1f3 --to san
    arena convert e4 e5 --from san --to uci
    arena convert a4b4 --game janggi --to korean
    """
    state = position(game, rules, fen, setup, None)
    written = []
    for text in texts:
        try:
            move = state.parse_move(text, source)
        except ValueError as error:
            raise UsageFault(str(error)) from None
        written.append(_formatted(state, move, target))
        state = state.apply(move)
    say(" ".join(written))


def parse(
    answer: Annotated[str, typer.Argument(help="A file with a model's answer, or - for stdin.")],
    game: GameOption = "chess",
    fen: FenOption = "",
    moves: MovesOption = None,
    rules: RulesOption = "",
    setup: SetupOption = "",
    notation: Annotated[str, typer.Option(help="Notation that the answer was asked for.")] = "uci",
    as_json: JsonOption = False,
) -> None:
    """Read an answer text as the referee's parser does, and say what it is.

    \b
    echo "I play **Nf3**." | arena parse -
    """
    from dataclasses import asdict

    from agents.parse import parse_answer

    state = position(game, rules, fen, setup, moves)
    reading = parse_answer(state, read_text(answer), notation=notation)
    if as_json:
        print_json(asdict(reading))
        return
    say(f"{reading.kind} {reading.uci or ''}".strip())
    if reading.detail:
        say(reading.detail)
