"""Read-only questions to a store. Each answers from one snapshot and never waits for the writer.

Nothing here computes: counts and rows as they are recorded. Figures are in `arena.ratings` and
`arena.report`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable, Select, func, select
from sqlalchemy.exc import DBAPIError

from agents.base import AgentInfo, Attempt
from arena.records import MoveRecord, Result, Slot, Status

from .errors import StoreError, explain
from .models import (
    AttemptRow,
    EventRow,
    GameRow,
    MoveRow,
    Player,
    PromptRow,
    Run,
    SlotRow,
    TelemetryRow,
)
from .rows import row_attempt, row_move, row_slot
from .store import Store

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run; `config` is the resolved one. Times are seconds since 1970."""

    id: int
    name: str
    seed: int
    config: Mapping[str, Any]
    config_hash: str
    status: str
    madang: str
    created: float
    finished: float | None
    last_seq: int
    owner: str


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How far a run is: slots by what became of them."""

    run: RunInfo
    slots: int
    finished: int
    running: int
    aborted: int
    superseded: int  # games that were played again
    moves: int

    @property
    def open(self) -> int:
        """Slots that have no finished game."""
        return self.slots - self.finished


@dataclass(frozen=True, slots=True)
class GameInfo:
    """One game as recorded; `moves` is filled by `game` alone."""

    id: int
    run_id: int
    slot_id: int
    attempt: int
    game: str
    rules: str
    first: str
    second: str
    pair: int
    round: int
    start_fen: str
    setup: str
    status: str
    result: Result
    termination: str
    ending: str
    detail: str
    rated: bool
    plies: int
    points_first: float | None
    points_second: float | None
    started: float
    ended: float | None
    moves_hash: str  # equal for games of the same start and moves; "" while it runs
    moves: tuple[MoveRecord, ...] = ()
    failed_attempts: tuple[Attempt, ...] = ()  # of the ply that was never played


@dataclass(frozen=True, slots=True)
class Event:
    seq: int
    at: float
    kind: str
    game_id: int | None
    payload: Mapping[str, Any]


@contextmanager
def reading(store: Store) -> Iterator[Connection]:
    """A connection that sees one state of the database. Raises StoreError."""
    try:
        with store.reader.connect() as connection, connection.begin():
            yield connection
    except DBAPIError as error:
        raise explain(error, store.label) from None


def _all(store: Store, statement: Executable) -> list[Row]:
    with reading(store) as connection:
        return [dict(row) for row in connection.execute(statement).mappings()]


def runs(store: Store) -> list[RunInfo]:
    """Every run, the oldest first."""
    return [RunInfo(**row) for row in _all(store, select(Run.__table__).order_by(Run.id))]


def latest_run(store: Store) -> RunInfo:
    """The run that was made last. Raises StoreError where there is none."""
    rows = _all(store, select(Run.__table__).order_by(Run.id.desc()).limit(1))
    if not rows:
        raise StoreError(f"{store.label} holds no run yet: `arena run` makes one")
    return RunInfo(**rows[0])


def run(store: Store, run_id: int) -> RunInfo:
    """Raises StoreError where there is no such run."""
    rows = _all(store, select(Run.__table__).where(Run.id == run_id))
    if not rows:
        known = ", ".join(str(info.id) for info in runs(store)) or "none"
        raise StoreError(f"there is no run {run_id} in {store.label}: there are {known}")
    return RunInfo(**rows[0])


def run_status(store: Store, run_id: int) -> RunStatus:
    info = run(store, run_id)
    with reading(store) as connection:
        slots = connection.execute(
            select(func.count()).select_from(SlotRow).where(SlotRow.run_id == run_id)
        ).scalar_one()
        of_run = GameRow.run_id == run_id
        counted = select(GameRow.status, func.count()).where(of_run).group_by(GameRow.status)
        games = {row[0]: row[1] for row in connection.execute(counted)}
        counted_moves = (of_run, GameRow.status != str(Status.SUPERSEDED))
        moves = connection.execute(select(func.sum(GameRow.plies)).where(*counted_moves)).scalar()
    return RunStatus(
        info,
        slots,
        finished=games.get(str(Status.FINISHED), 0),
        running=games.get(str(Status.RUNNING), 0),
        aborted=games.get(str(Status.ABORTED), 0),
        superseded=games.get(str(Status.SUPERSEDED), 0),
        moves=moves or 0,
    )


def players(store: Store, run_id: int) -> list[AgentInfo]:
    """In the order they were configured."""
    wanted = select(Player.name, Player.kind, Player.config, Player.deterministic)
    wanted = wanted.where(Player.run_id == run_id).order_by(Player.id)
    return [AgentInfo(**row) for row in _all(store, wanted)]


def slots(store: Store, run_id: int) -> list[Slot]:
    wanted = select(SlotRow.__table__).where(SlotRow.run_id == run_id).order_by(SlotRow.id)
    return [row_slot(row) for row in _all(store, wanted)]


def games(
    store: Store,
    run_id: int | None = None,
    *,
    game: str | None = None,
    player: str | None = None,
    status: str | None = None,
    termination: str | None = None,
    superseded: bool = False,
) -> list[GameInfo]:
    """Games without their moves, by id; those played again only where asked for."""
    wanted = select(GameRow.__table__).order_by(GameRow.id)
    exact = {"run_id": run_id, "game": game, "status": status, "termination": termination}
    for name, value in exact.items():
        if value is not None:
            wanted = wanted.where(getattr(GameRow, name) == value)
    if player is not None:
        wanted = wanted.where((GameRow.first == player) | (GameRow.second == player))
    if not superseded and status is None:
        wanted = wanted.where(GameRow.status != str(Status.SUPERSEDED))
    return [GameInfo(**row) for row in _all(store, wanted)]


def results(store: Store, run_id: int) -> dict[int, Result]:
    """Slot → result of every finished game of a run."""
    wanted = select(GameRow.slot_id, GameRow.result).where(
        GameRow.run_id == run_id, GameRow.status == str(Status.FINISHED)
    )
    return {row["slot_id"]: row["result"] for row in _all(store, wanted)}


def game(store: Store, game_id: int) -> GameInfo:
    """One game with its moves and every attempt. Raises StoreError where there is none."""
    found = _games_with_moves(store, GameRow.id == game_id)
    if not found:
        raise StoreError(f"there is no game {game_id} in {store.label}")
    return found[0]


def game_info(store: Store, game_id: int) -> GameInfo:
    """One game without its moves. Raises StoreError where there is none."""
    rows = _all(store, select(GameRow.__table__).where(GameRow.id == game_id))
    if not rows:
        raise StoreError(f"there is no game {game_id} in {store.label}")
    return GameInfo(**rows[0])


def games_with_moves(store: Store, run_id: int) -> list[GameInfo]:
    """Every game of a run that was not played again, with moves and attempts, by id."""
    ours = (GameRow.run_id == run_id) & (GameRow.status != str(Status.SUPERSEDED))
    return _games_with_moves(store, ours)


def games_by_id(store: Store, ids: Sequence[int]) -> list[GameInfo]:
    """Those games with moves and attempts, by id."""
    return _games_with_moves(store, GameRow.id.in_(ids))


def moves(store: Store, game_id: int) -> tuple[MoveRecord, ...]:
    return game(store, game_id).moves


def _games_with_moves(store: Store, condition: Any) -> list[GameInfo]:
    with reading(store) as connection:
        infos = connection.execute(
            select(GameRow.__table__).where(condition).order_by(GameRow.id)
        ).mappings()
        rows = [dict(info) for info in infos]
        chosen = select(GameRow.id).where(condition)
        attempts = _attempts(connection, chosen)
        played = select(MoveRow.__table__).where(MoveRow.game_id.in_(chosen))
        by_game: dict[int, list[MoveRecord]] = defaultdict(list)
        for row in connection.execute(played.order_by(MoveRow.game_id, MoveRow.ply)).mappings():
            place = (row["game_id"], row["ply"])
            by_game[row["game_id"]].append(row_move(dict(row), attempts.pop(place, [])))
    return [
        GameInfo(
            **row,
            moves=tuple(by_game[row["id"]]),
            failed_attempts=tuple(attempts.get((row["id"], row["plies"] + 1), [])),
        )
        for row in rows
    ]


def _attempts(connection: Connection, chosen: Select[int]) -> dict[tuple[int, int], list[Attempt]]:
    """(game, ply) → its attempts in order."""
    wanted = (
        select(AttemptRow.__table__, PromptRow.text)
        .outerjoin(PromptRow, PromptRow.hash == AttemptRow.prompt)
        .where(AttemptRow.game_id.in_(chosen))
        .order_by(AttemptRow.game_id, AttemptRow.ply, AttemptRow.number)
    )
    found: dict[tuple[int, int], list[Attempt]] = defaultdict(list)
    for row in connection.execute(wanted).mappings():
        found[row["game_id"], row["ply"]].append(row_attempt(dict(row)))
    return found


def rated_games(store: Store, run_ids: int | Sequence[int] | None = None) -> list[GameInfo]:
    """The games that count for ratings, without moves: finished, rated, with a result."""
    wanted = select(GameRow.__table__).where(
        GameRow.status == str(Status.FINISHED), GameRow.rated, GameRow.result != "*"
    )
    if run_ids is not None:
        ids = [run_ids] if isinstance(run_ids, int) else list(run_ids)
        wanted = wanted.where(GameRow.run_id.in_(ids))
    return [GameInfo(**row) for row in _all(store, wanted.order_by(GameRow.id))]


@dataclass(frozen=True, slots=True)
class Cost:
    """What the recorded moves of one player in one game took."""

    game: str
    player: str
    moves: int
    prompt_tokens: int
    completion_tokens: int


def costs(store: Store) -> list[Cost]:
    """Tokens by game and player over all runs of the database."""
    keys = (GameRow.game, MoveRow.player)
    wanted = (
        select(
            *keys,
            func.count().label("moves"),
            func.sum(MoveRow.prompt_tokens).label("prompt_tokens"),
            func.sum(MoveRow.completion_tokens).label("completion_tokens"),
        )
        .join(GameRow, GameRow.id == MoveRow.game_id)
        .group_by(*keys)
    )
    return [Cost(**row) for row in _all(store, wanted)]


def mean_plies(store: Store, game: str) -> float | None:
    """The mean length of the finished games; None without any."""
    wanted = select(func.avg(GameRow.plies)).where(
        GameRow.game == game, GameRow.status == str(Status.FINISHED)
    )
    with reading(store) as connection:
        found = connection.execute(wanted).scalar()
    return None if found is None else float(found)


def latency_rows(store: Store, run_id: int) -> list[Row]:
    """One row a move of the games that stand: game, player, times in seconds, tokens."""
    columns = (
        MoveRow.player, MoveRow.seconds, MoveRow.queue_s, MoveRow.prefill_s, MoveRow.decode_s,
        MoveRow.ttft_s, MoveRow.prompt_tokens, MoveRow.cached_tokens, MoveRow.completion_tokens,
        MoveRow.legal_mass, MoveRow.disagreement, MoveRow.random_move,
    )  # fmt: skip
    wanted = (
        select(GameRow.game, GameRow.rules, *columns)
        .join(MoveRow, MoveRow.game_id == GameRow.id)
        .where(GameRow.run_id == run_id, GameRow.status != str(Status.SUPERSEDED))
    )
    return _all(store, wanted)


def attempt_counts(store: Store, run_ids: Sequence[int]) -> list[Row]:
    """How often each kind of answer came in finished games, first answers of a turn apart.

    Keys: run_id, section, player, kind, is_first, answers.
    """
    is_first = (AttemptRow.number == 1).label("is_first")
    keys = (GameRow.run_id, SlotRow.section, AttemptRow.player, AttemptRow.kind, is_first)
    wanted = (
        select(*keys, func.count().label("answers"))
        .join(GameRow, GameRow.id == AttemptRow.game_id)
        .join(SlotRow, (SlotRow.run_id == GameRow.run_id) & (SlotRow.id == GameRow.slot_id))
        .where(GameRow.run_id.in_(run_ids), GameRow.status == str(Status.FINISHED))
        .group_by(*keys)
    )
    return _all(store, wanted)


def legal_masses(store: Store, run_ids: Sequence[int]) -> list[Row]:
    """The legal mass of every move of a finished game that has one: run_id, section, player."""
    wanted = (
        select(GameRow.run_id, SlotRow.section, MoveRow.player, MoveRow.legal_mass)
        .join(GameRow, GameRow.id == MoveRow.game_id)
        .join(SlotRow, (SlotRow.run_id == GameRow.run_id) & (SlotRow.id == GameRow.slot_id))
        .where(
            GameRow.run_id.in_(run_ids),
            GameRow.status == str(Status.FINISHED),
            MoveRow.legal_mass.is_not(None),
        )
    )
    return _all(store, wanted)


def telemetry(store: Store, run_id: int, after: int = 0) -> list[Row]:
    """The engines' samples past row `after` in order: `id`, `at` and the fields of `Telemetry`."""
    wanted = select(TelemetryRow.__table__).where(
        TelemetryRow.run_id == run_id, TelemetryRow.id > after
    )
    return _all(store, wanted.order_by(TelemetryRow.id))


def events(store: Store, run_id: int, after: int = 0, limit: int | None = None) -> list[Event]:
    """The events of a run past sequence number `after`, in order and without gaps."""
    wanted = (
        select(EventRow.seq, EventRow.at, EventRow.kind, EventRow.game_id, EventRow.payload)
        .where(EventRow.run_id == run_id, EventRow.seq > after)
        .order_by(EventRow.seq)
        .limit(limit)
    )
    return [Event(**row) for row in _all(store, wanted)]
