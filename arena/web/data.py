"""Rows of the store as the viewer's dataclasses; reads only, never waits for a writer.

Every function takes an open connection of a read-only engine. A name or filter that comes from
outside is only ever a bound parameter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, tuple_

from arena.store.models import (
    AttemptRow,
    GameRow,
    MoveRow,
    Player,
    PromptRow,
    Run,
    SlotRow,
)
from games.base import GameError
from games.registry import GAMES

from .boards import balance, king_square
from .rows import (
    AttemptInfo,
    GameInfo,
    GamePage,
    GameView,
    MoveInfo,
    PlayerInfo,
    Refusal,
    RunInfo,
    Tile,
    Wall,
)

FAILED = ("unparsable", "illegal", "ambiguous", "truncated", "empty", "refused")
WALL_TILES = 50

_DERIVED = ("check", "refused", "taken", "points")
_GAME_COLUMNS = [getattr(GameRow, f.name) for f in fields(GameInfo)]
_MOVE_COLUMNS = [getattr(MoveRow, f.name) for f in fields(MoveInfo) if f.name not in _DERIVED]


class NotFound(LookupError):
    """No such run, game, player or ply; the message is one line for a reader."""


@lru_cache(maxsize=20_000)
def check_square(game: str, rules: str, fen: str) -> str | None:
    """The square of the king or general that stands in check, by the game's own rules."""
    try:
        state = GAMES[game].start(rules=rules, fen=fen)
        return king_square(fen) if state.is_check() else None
    except (GameError, ValueError, KeyError):
        return None


def runs(db: Connection, run_id: int | None = None) -> tuple[RunInfo, ...]:
    """Every run, newest first, or the one asked for."""
    slots = _count(SlotRow.run_id == Run.id, SlotRow)
    done = _count(and_(GameRow.run_id == Run.id, GameRow.status == "finished"), GameRow)
    running = _count(and_(GameRow.run_id == Run.id, GameRow.status == "running"), GameRow)
    columns = [
        getattr(Run, f.name)
        for f in fields(RunInfo)
        if f.name not in ("num_slots", "num_finished", "num_running", "games")
    ]
    query = select(
        *columns,
        slots.label("num_slots"),
        done.label("num_finished"),
        running.label("num_running"),
    ).order_by(Run.id.desc())
    if run_id is not None:
        query = query.where(Run.id == run_id)
    kinds: dict[int, list[str]] = {}
    for owner, game in db.execute(
        select(SlotRow.run_id, SlotRow.game).distinct().order_by(SlotRow.run_id, SlotRow.game)
    ):
        kinds.setdefault(owner, []).append(game)
    return tuple(
        RunInfo(**row._mapping, games=tuple(kinds.get(row.id, ()))) for row in db.execute(query)
    )


def run(db: Connection, run_id: int) -> RunInfo:
    """One run. Raises NotFound."""
    found = runs(db, run_id)
    if not found:
        raise NotFound(f"there is no run {run_id} in this database")
    return found[0]


def game(db: Connection, game_id: int) -> GameInfo:
    """One game without its moves. Raises NotFound."""
    row = db.execute(select(*_GAME_COLUMNS).where(GameRow.id == game_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no game {game_id} in this database")
    return GameInfo(**row._mapping)


def game_view(db: Connection, game_id: int) -> GameView:
    """One game with every ply; the attempts of a last ply that led to no move close the list."""
    seq = db.scalar(
        select(Run.last_seq).join(GameRow, GameRow.run_id == Run.id).where(GameRow.id == game_id)
    )
    info = game(db, game_id)
    found = moves(db, info)
    refused = refusals(db, [(game_id, info.plies + 1)])
    if refused and info.status != "running":
        found = (*found, _unmade(info, found, refused[game_id, info.plies + 1]))
    return GameView(info, int(seq or 0), found)


def moves(db: Connection, info: GameInfo) -> tuple[MoveInfo, ...]:
    """Every ply of one game."""
    query = select(*_MOVE_COLUMNS).where(MoveRow.game_id == info.id).order_by(MoveRow.ply)
    bad = refusals(db, None, info.id)
    return tuple(
        _move(info, dict(row._mapping), bad.get((info.id, row.ply), ()))
        for row in db.execute(query)
    )


def refusals(
    db: Connection, keys: Sequence[tuple[int, int]] | None, game_id: int | None = None
) -> dict[tuple[int, int], tuple[Refusal, ...]]:
    """Failed attempts by (game, ply): of the keys, or of a whole game where keys is None."""
    query = (
        select(
            AttemptRow.game_id,
            AttemptRow.ply,
            AttemptRow.number,
            AttemptRow.kind,
            AttemptRow.uci,
            AttemptRow.detail,
        )
        .where(AttemptRow.kind.in_(FAILED))
        .order_by(AttemptRow.game_id, AttemptRow.ply, AttemptRow.number)
    )
    if keys is None:
        query = query.where(AttemptRow.game_id == game_id)
    else:
        query = query.where(tuple_(AttemptRow.game_id, AttemptRow.ply).in_(keys))
    found: dict[tuple[int, int], tuple[Refusal, ...]] = {}
    for row in db.execute(query):
        key = (row.game_id, row.ply)
        refusal = Refusal(row.number, row.kind, row.uci, row.detail)
        found[key] = (*found.get(key, ()), refusal)
    return found


def games_by_id(db: Connection, ids: Collection[int]) -> dict[int, GameInfo]:
    """The games of those ids that there are."""
    rows = db.execute(select(*_GAME_COLUMNS).where(GameRow.id.in_(tuple(ids))))
    return {row.id: GameInfo(**row._mapping) for row in rows}


def moves_by_key(
    db: Connection, games: Mapping[int, GameInfo], keys: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], MoveInfo]:
    """Moves of several games at once, by (game, ply)."""
    if not keys:
        return {}
    query = select(MoveRow.game_id, *_MOVE_COLUMNS)
    rows = db.execute(query.where(tuple_(MoveRow.game_id, MoveRow.ply).in_(keys))).all()
    bad = refusals(db, keys)
    found = {}
    for row in rows:
        values = dict(row._mapping)
        key = (values.pop("game_id"), row.ply)
        found[key] = _move(games[key[0]], values, bad.get(key, ()))
    return found


def attempts(db: Connection, game_id: int, ply: int) -> tuple[AttemptInfo, ...]:
    """Every request made for one ply, raw."""
    columns = [getattr(AttemptRow, f.name) for f in fields(AttemptInfo) if f.name != "has_prompt"]
    rows = db.execute(
        select(*columns, AttemptRow.prompt.is_not(None).label("has_prompt"))
        .where(AttemptRow.game_id == game_id, AttemptRow.ply == ply)
        .order_by(AttemptRow.number)
    )
    return tuple(AttemptInfo(**row._mapping) for row in rows)


def prompt_text(db: Connection, game_id: int, ply: int, number: int) -> str:
    """The text sent for one attempt. Raises NotFound."""
    text = db.scalar(
        select(PromptRow.text)
        .join(AttemptRow, AttemptRow.prompt == PromptRow.hash)
        .where(AttemptRow.game_id == game_id, AttemptRow.ply == ply, AttemptRow.number == number)
    )
    if text is None:
        raise NotFound(f"no prompt is kept for attempt {number} of ply {ply} in game {game_id}")
    return text


def wall(db: Connection, run_id: int, limit: int = WALL_TILES) -> Wall:
    """The running games, then the last to end, at most `limit` boards."""
    info = run(db, run_id)
    query = (
        select(*_GAME_COLUMNS)
        .where(GameRow.run_id == run_id, GameRow.status.in_(("running", "finished")))
        .order_by((GameRow.status == "running").desc(), GameRow.ended.desc(), GameRow.id)
        .limit(limit)
    )
    games = [GameInfo(**row._mapping) for row in db.execute(query)]
    last = {row.game_id: row for row in _last_moves(db, [item.id for item in games])}
    return Wall(info, info.last_seq, tuple(_tile(item, last.get(item.id)) for item in games))


def library(
    db: Connection,
    *,
    run_id: int | None = None,
    player: str | None = None,
    rival: str | None = None,
    game: str | None = None,
    result: str | None = None,
    status: str | None = None,
    ending: str | None = None,
    termination: str | None = None,
    page: int = 1,
    size: int = 50,
) -> GamePage:
    """Games by filter, newest first."""
    wanted: list[ColumnElement[bool]] = []
    equal = {
        GameRow.run_id: run_id,
        GameRow.game: game,
        GameRow.result: result,
        GameRow.status: status,
        GameRow.ending: ending,
        GameRow.termination: termination,
    }
    wanted += [column == value for column, value in equal.items() if value is not None]
    for name in (player, rival):
        if name is not None:
            wanted.append(or_(GameRow.first == name, GameRow.second == name))
    total = db.scalar(select(func.count()).select_from(GameRow).where(*wanted))
    rows = db.execute(
        select(*_GAME_COLUMNS)
        .where(*wanted)
        .order_by(GameRow.id.desc())
        .offset((page - 1) * size)
        .limit(size)
    )
    return GamePage(tuple(GameInfo(**r._mapping) for r in rows), int(total or 0), page, size)


def players(db: Connection, run_id: int) -> tuple[PlayerInfo, ...]:
    """Everybody in a run, by name, with the score of the games that count."""
    rows = db.execute(_players().where(Player.run_id == run_id).order_by(Player.name)).all()
    return tuple(_scored(db, PlayerInfo(**row._mapping)) for row in rows)


def player(db: Connection, player_id: int) -> PlayerInfo:
    """One player of one run. Raises NotFound."""
    row = db.execute(_players().where(Player.id == player_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no player {player_id} in this database")
    return _scored(db, PlayerInfo(**row._mapping))


def _players() -> Select[Any]:
    return select(
        Player.id,
        Player.run_id,
        Player.name,
        Player.kind,
        Player.deterministic,
        Player.config,
    )


def _scored(db: Connection, info: PlayerInfo) -> PlayerInfo:
    mine = or_(GameRow.first == info.name, GameRow.second == info.name)
    rows = db.execute(
        select(GameRow.first, GameRow.second, GameRow.result, GameRow.ending, GameRow.status).where(
            GameRow.run_id == info.run_id, mine
        )
    )
    tally = {"wins": 0, "draws": 0, "losses": 0, "forfeits": 0, "unresolved": 0}
    for first, _, result, ending, status in rows:
        if status != "finished" or result == "*":
            tally["unresolved"] += status in ("finished", "aborted")
            continue
        won = result == ("1-0" if first == info.name else "0-1")
        key = "draws" if result == "1/2-1/2" else "wins" if won else "losses"
        tally[key] += 1
        tally["forfeits"] += key == "losses" and ending == "protocol"
    return replace(
        info,
        wins=tally["wins"],
        draws=tally["draws"],
        losses=tally["losses"],
        forfeits=tally["forfeits"],
        unresolved=tally["unresolved"],
    )


def _count(condition: ColumnElement[bool], table: type[Any]) -> Any:
    return select(func.count()).select_from(table).where(condition).scalar_subquery()


def _last_moves(db: Connection, games: Iterable[int]) -> list[Any]:
    newest = (
        select(MoveRow.game_id, func.max(MoveRow.ply).label("ply"))
        .where(MoveRow.game_id.in_(tuple(games)))
        .group_by(MoveRow.game_id)
        .subquery()
    )
    query = select(MoveRow.game_id, MoveRow.ply, MoveRow.fen, MoveRow.uci, MoveRow.san).join(
        newest, and_(MoveRow.game_id == newest.c.game_id, MoveRow.ply == newest.c.ply)
    )
    return list(db.execute(query))


def _tile(info: GameInfo, last: Any) -> Tile:
    if last is None:
        return Tile(info, 0, info.start_fen, None, "", None)
    check = check_square(info.game, info.rules, last.fen)
    return Tile(info, last.ply, last.fen, last.uci, last.san, check)


def _move(info: GameInfo, values: dict[str, Any], refused: tuple[Refusal, ...]) -> MoveInfo:
    fen = values["fen"]
    values["top"] = tuple((str(uci), float(p)) for uci, p in values["top"] or ())
    check = check_square(info.game, info.rules, fen)
    now = balance(info.game, info.start_fen, fen)
    return MoveInfo(**values, check=check, refused=refused, taken=now.taken, points=now.points)


def _unmade(info: GameInfo, made: tuple[MoveInfo, ...], refused: tuple[Refusal, ...]) -> MoveInfo:
    fen = made[-1].fen if made else info.start_fen
    side = 1 if fen.split(" ")[1:2] == ["b"] else 0
    name = info.second if side else info.first
    check = check_square(info.game, info.rules, fen)
    now = balance(info.game, info.start_fen, fen)
    return MoveInfo(
        *(info.plies + 1, side, name, "", "", fen, check),
        taken=now.taken,
        points=now.points,
        refused=refused,
    )
