"""`arena status`, `standings`, `show`, `export`: what is recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import (
    DEFAULT_DB,
    DbOption,
    JsonOption,
    RunOption,
    UsageFault,
    chosen_run,
    existing_store,
    print_json,
    say,
)

if TYPE_CHECKING:
    from agents.base import Attempt
    from arena.records import MoveRecord
    from arena.store.queries import GameInfo, RunStatus


def status(db: DbOption = DEFAULT_DB, as_json: JsonOption = False) -> None:
    """Tell how far every run of a database is.

    \b
    arena status --db demo.db
    """
    from arena.store import queries

    with existing_store(db) as store:
        found = [queries.run_status(store, info.id) for info in queries.runs(store)]
    if as_json:
        print_json({"runs": [_status_json(one) for one in found]})
        return
    if not found:
        say(f"{db} holds no run yet: `arena run` makes one.")
    for one in found:
        run = one.run
        say(
            f"run {run.id}  {_clean(run.name)}  {run.status}  {one.finished} of {one.slots} games "
            f"finished, {one.running} running, {one.moves} moves  seed {run.seed}"
        )


def _status_json(status: "RunStatus") -> dict[str, Any]:
    run = status.run
    return {
        "run": run.id, "name": run.name, "status": run.status, "seed": run.seed,
        "slots": status.slots, "finished": status.finished, "running": status.running,
        "aborted": status.aborted, "open": status.open, "moves": status.moves,
        "config_hash": run.config_hash,
    }  # fmt: skip


def standings(
    db: DbOption = DEFAULT_DB, run: RunOption = None, as_json: JsonOption = False
) -> None:
    """Print the standings of a run: scores and ratings with their intervals, a table a game.

    \b
    arena standings --db demo.db
    arena standings --db demo.db --run 2 --json
    """
    from arena import report

    with existing_store(db) as store:
        info = chosen_run(store, run)
        if as_json:
            print_json(report.standings(store, info.id))
        else:
            say(report.standings_text(store, info.id))


def show(
    game: Annotated[int | None, typer.Argument(help="Number of the game; else a list.")] = None,
    db: DbOption = DEFAULT_DB,
    run: RunOption = None,
    ply: Annotated[int | None, typer.Option(min=0, help="The board after this ply.")] = None,
    attempts: Annotated[bool, typer.Option("--attempts", help="Raw answers too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a game with board, moves, times and answers, or list the games of a run.

    \b
    arena show --db demo.db
    arena show 3 --db demo.db --ply 12
    arena show 3 --db demo.db --attempts
    """
    from dataclasses import asdict

    from arena.store import queries

    with existing_store(db) as store:
        if game is None:
            info = chosen_run(store, run)
            games = queries.games(store, info.id)
            if as_json:
                print_json({"run": info.id, "games": [asdict(one) for one in games]})
            else:
                say("\n".join(_game_line(one) for one in games) or "No game has started yet.")
            return
        found = queries.game(store, game)
    if as_json:
        print_json(asdict(found))
        return
    say("\n".join(_game_text(found, ply, attempts)))


def _game_line(game: "GameInfo") -> str:
    players = f"{_clean(game.first)} vs {_clean(game.second)}"
    end = _clean(game.detail) or game.status
    return f"{game.id:>5}  {game.game:<7} {players}  {game.result}  {game.plies} plies  {end}"


def _game_text(game: "GameInfo", ply: int | None, attempts: bool) -> list[str]:
    from games.registry import get_game

    last = len(game.moves) if ply is None else ply
    if last > len(game.moves):
        raise UsageFault(f"game {game.id} has {len(game.moves)} plies: --ply 0 to that")
    fen = game.moves[last - 1].fen if last else game.start_fen
    state = get_game(game.game).start(rules=game.rules, fen=fen)
    lines = [_game_line(game).strip(), f"rules {game.rules}, slot {game.slot_id}, {game.status}"]
    if game.termination:
        lines.append(f"termination {game.termination}")
    lines += ["", state.board_text(), f"after ply {last}: {fen}", ""]
    for move in game.moves:
        lines.append(_move_line(move))
        if attempts:
            lines += _attempt_lines(move.attempts)
    if game.failed_attempts:
        lines.append(f"{len(game.failed_attempts)} answers that led to no move:")
        lines += _attempt_lines(game.failed_attempts)
    return lines


def _move_line(move: "MoveRecord") -> str:
    parts = [f"{move.ply:>4}  {move.uci:<7} {_clean(move.player)}  {move.seconds:.3f} s"]
    if move.queue_s is not None:
        parts.append(f"queue {move.queue_s:.3f}")
    if move.ttft_s is not None:
        parts.append(f"first token {move.ttft_s:.3f}")
    if move.prompt_tokens:
        used = f"{move.cached_tokens}/{move.prompt_tokens}+{move.completion_tokens}"
        parts.append(f"tokens {used}")
    if move.belief is not None:
        parts.append(f"p {move.belief.chosen:.3f} of legal {move.belief.legal_mass:.3f}")
    return "  ".join(parts)


def _attempt_lines(attempts: "tuple[Attempt, ...]") -> list[str]:
    return [
        f"      {attempt.number}. {attempt.kind}: {_clean(attempt.answer)[:400]!r} {attempt.detail}"
        for attempt in attempts
    ]


def _clean(text: str) -> str:
    """On one line, control characters made visible: names and answers are hostile text."""
    return "".join(char if char.isprintable() else "�" for char in text)


def export(
    file: Annotated[Path, typer.Argument(help="Where to write; its ending says the format.")],
    db: DbOption = DEFAULT_DB,
    run: RunOption = None,
) -> None:
    """Write the games of a run as PGN, GIB, CSV, Parquet or EPD.

    \b
    arena export games.pgn --db demo.db
    arena export moves.parquet --db demo.db
    """
    from arena import report

    with existing_store(db) as store:
        written = report.export(store, chosen_run(store, run).id, file)
    say(f"Wrote {written} games to {file}.")
