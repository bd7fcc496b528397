"""A run as files that other programs read. The name's ending chooses:

    games.pgn           every game; refused answers as comments, [%clk] [%emt] [%eval]
    games.gib           janggi, for Korean programs (CP949)
    games.csv           one line a game            moves.csv   one line a move (`*moves.csv`)
    games.parquet       the same tables with types moves.parquet
    final.epd           last positions             illegal.epd first refused ones (`*illegal.epd`)

Everything is derived from the database. A file appears whole or not at all.
"""

import csv
import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from agents.base import Attempt
from arena.records import MoveRecord
from arena.store import Store, StoreError, queries
from arena.store.queries import GameInfo
from games.base import Move
from games.janggi.gib import write_gib
from games.pgn import write_pgn
from games.transcript import Transcript

from .parquet import from_csv

BATCH = 200  # games held at a time
LETTERS = str.maketrans({"[": "(", "]": ")", "{": "(", "}": ")", "%": "％", ";": ","})
QUOTED = 80  # characters of a refused answer in a comment; the database has all of it
GAME_COLUMNS = tuple(
    field.name for field in fields(GameInfo) if field.name not in ("moves", "failed_attempts")
)
MOVE_COLUMNS = tuple(
    field.name for field in fields(MoveRecord) if field.name not in ("attempts", "belief")
)

Writer = Callable[[Store, Sequence[GameInfo], str], bytes]


class ExportError(StoreError):
    """A file that cannot be written, or an ending that no format has."""


def export(store: Store, run_id: int, file: str | Path) -> int:
    """Write the games of a run that were not played again; how many. Raises StoreError."""
    path = Path(file)
    write = _format(path.name.lower())
    info = queries.run(store, run_id)
    games = queries.games(store, run_id)
    if write is _gib:
        games = [game for game in games if game.game == "janggi"]
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("wb") as out:
            out.write(_csv_head(write))
            for at in range(0, len(games), BATCH):
                out.write(write(store, games[at : at + BATCH], info.name))
        if path.suffix.lower() == ".parquet":
            _to_parquet(draft, write)
        draft.replace(path)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
    return len(games)


def _to_parquet(draft: Path, write: "Writer") -> None:
    """Replace a CSV draft by the same table as Parquet."""
    made = draft.with_name(draft.name + ".made")
    moves = write is _moves_csv
    names = ("game_id", *MOVE_COLUMNS) if moves else GAME_COLUMNS
    try:
        from_csv(draft, made, MoveRecord if moves else GameInfo, names)
        made.replace(draft)
    finally:
        made.unlink(missing_ok=True)


def _csv_head(write: "Writer") -> bytes:
    heads = {_games_csv: GAME_COLUMNS, _moves_csv: ("game_id", *MOVE_COLUMNS)}
    return _csv([heads[write]]) if write in heads else b""


def _format(name: str) -> Writer:
    endings: dict[str, Writer] = {
        "illegal.epd": _illegal_epd,
        "moves.csv": _moves_csv,
        "moves.parquet": _moves_csv,
        ".parquet": _games_csv,
        ".pgn": _pgn,
        ".gib": _gib,
        ".csv": _games_csv,
        ".epd": _final_epd,
    }
    for ending, write in endings.items():
        if name.endswith(ending):
            return write
    raise ExportError(f"cannot tell the format of {name!r}: it should end in {', '.join(endings)}")


def transcript(game: GameInfo, event: str) -> Transcript:
    """A game with its moves as `games.pgn` and `games.janggi.gib` write it."""
    tags = {
        "Event": event,
        "Site": "madang",
        "Date": time.strftime("%Y.%m.%d", time.gmtime(game.started)),
        "Round": f"{game.round}.{game.slot_id + 1}",
        "White": game.first,
        "Black": game.second,
        "Rules": game.rules,
        "Termination": game.termination or game.status,
        "TerminationDetails": game.detail,
        "GameId": str(game.id),
        "PlyCount": str(game.plies),
    }
    comments = [(move.ply, text) for move in game.moves if (text := _comment(move))]
    if refused := _refused(game.failed_attempts):
        comments.append((game.plies, refused))
    return Transcript(
        game=game.game,
        start_fen=game.start_fen,
        moves=tuple(Move(move.uci) for move in game.moves),
        result=game.result,
        tags={name: value for name, value in tags.items() if value},
        comments=tuple(comments),
        clocks={move.ply: move.clock_s for move in game.moves if move.clock_s is not None},
    )


def _comment(move: MoveRecord) -> str:
    parts = [f"[%emt {_hours(move.seconds)}]"]
    if move.score_cp is not None:  # PGN's evaluations are White's
        parts.append(f"[%eval {(-move.score_cp if move.side else move.score_cp) / 100:.2f}]")
    parts.append(_refused(move.attempts))
    if move.random_move:
        parts.append("chosen at random by the policy")
    return " ".join(part for part in parts if part)


def _refused(attempts: Sequence[Attempt]) -> str:
    """What was refused; letters that mean something in PGN are changed."""
    failed = [a for a in attempts if a.kind not in ("move", "resign", "draw_offer")]
    shown = (f"{a.kind} ({_plain(a.uci or a.answer)})" for a in failed)
    return f"refused: {', '.join(shown)}" if failed else ""


def _plain(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line.translate(LETTERS)[:QUOTED]


def _hours(seconds: float) -> str:
    thousandths = round(seconds * 1000)
    whole, part = divmod(thousandths, 1000)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}.{part:03}"


def _pgn(store: Store, games: Sequence[GameInfo], event: str) -> bytes:
    text = write_pgn(tuple(transcript(game, event) for game in _with_moves(store, games)))
    return f"{text}\n".encode()


def _gib(store: Store, games: Sequence[GameInfo], event: str) -> bytes:
    return write_gib(tuple(transcript(game, event) for game in _with_moves(store, games)))


def _games_csv(store: Store, games: Sequence[GameInfo], event: str) -> bytes:
    return _csv([[getattr(game, name) for name in GAME_COLUMNS] for game in games])


def _moves_csv(store: Store, games: Sequence[GameInfo], event: str) -> bytes:
    return _csv(
        [
            [game.id, *(getattr(move, name) for name in MOVE_COLUMNS)]
            for game in _with_moves(store, games)
            for move in game.moves
        ]
    )


def _final_epd(store: Store, games: Sequence[GameInfo], event: str) -> bytes:
    lines = (
        _epd(game.moves[-1].fen if game.moves else game.start_fen, f"game {game.id}")
        for game in _with_moves(store, games)
    )
    return "".join(lines).encode()


def _illegal_epd(store: Store, games: Sequence[GameInfo], event: str) -> bytes:
    """The first position of each game and player in which an answer was no legal move."""
    lines = []
    for game in _with_moves(store, games):
        seen = set()
        for ply, player, attempts in _asked(game):
            failed = [a for a in attempts if a.kind not in ("move", "resign", "draw_offer")]
            if failed and player not in seen:
                seen.add(player)
                fen = game.moves[ply - 2].fen if ply > 1 else game.start_fen
                lines.append(_epd(fen, f"game {game.id} ply {ply}", _refused(failed)))
    return "".join(lines).encode()


def _asked(game: GameInfo) -> Iterator[tuple[int, str, Sequence[Attempt]]]:
    for move in game.moves:
        yield move.ply, move.player, move.attempts
    if game.failed_attempts:
        last = game.moves[-1].side if game.moves else 1
        yield game.plies + 1, (game.first, game.second)[1 - last], game.failed_attempts


def _epd(fen: str, name: str, note: str = "") -> str:
    board, turn, castling, en_passant, halfmoves, number = fen.split(" ")
    quoted = note.replace('"', "'").replace("\\", "/")
    comment = f' c0 "{quoted}";' if note else ""
    fields_ = f"{board} {turn} {castling} {en_passant}"
    return f'{fields_} hmvc {halfmoves}; fmvn {number}; id "{name}";{comment}\n'


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", errors="replace")


def _with_moves(store: Store, games: Sequence[GameInfo]) -> list[GameInfo]:
    return queries.games_by_id(store, [game.id for game in games])
