"""The tables. Times of day are seconds since 1970 (UTC), durations are seconds.

    runs ─┬─ players
          ├─ slots ── games ─┬─ moves
          │                  └─ attempts ── prompts
          ├─ telemetry
          └─ events

`games` holds one row for each time a slot was tried; of those at most one is running or finished.
An attempt belongs to the ply it was made for, which has no move where the attempts all failed.
Names of players are repeated in `games` and `moves` so that one line of SQL answers most questions.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

BigId = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers only INTEGER keys itself
LIVE = "status IN ('running', 'finished')"


class RawText(TypeDecorator[str]):
    """Text as an agent sent it, character for character, so that spans stay right.

    What no database can hold is shown instead: NUL as ␀, half a surrogate pair as U+FFFD.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or (value.isascii() and "\0" not in value):
            return value
        held = value.replace("\0", "␀")
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in held)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {str: RawText, float: Double, dict[str, Any]: JSON}  # noqa: RUF012


def table_of(model: type[Base]) -> Table:
    """The table alone, for statements that need nothing of the mapper."""
    table = model.__table__
    assert isinstance(table, Table)
    return table


class Run(Base):
    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str]
    seed: Mapped[int] = mapped_column(BigInteger)
    config: Mapped[dict[str, Any]]  # resolved
    config_hash: Mapped[str]  # SHA-256 of its canonical JSON
    status: Mapped[str]
    madang: Mapped[str]  # version that made it
    created: Mapped[float]
    finished: Mapped[float | None]
    last_seq: Mapped[int] = mapped_column(BigInteger)  # of its events
    owner: Mapped[str]  # `host:pid` of the last process that wrote it


class Player(Base):
    __tablename__ = "players"
    __table_args__ = (UniqueConstraint("run_id", "name"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    name: Mapped[str]
    kind: Mapped[str]
    config: Mapped[dict[str, Any]]
    deterministic: Mapped[bool]


class SlotRow(Base):
    __tablename__ = "slots"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    game: Mapped[str]
    rules: Mapped[str]
    first: Mapped[str]
    second: Mapped[str]
    pair: Mapped[int] = mapped_column(BigInteger)
    opening: Mapped[str]
    setup: Mapped[str]
    round: Mapped[int]
    section: Mapped[int]


class GameRow(Base):
    __tablename__ = "games"
    __table_args__ = (
        ForeignKeyConstraint(["run_id", "slot_id"], ["slots.run_id", "slots.id"]),
        UniqueConstraint("run_id", "slot_id", "attempt"),
        Index(
            "one_live_game_a_slot",
            "run_id",
            "slot_id",
            unique=True,
            sqlite_where=text(LIVE),
            postgresql_where=text(LIVE),
        ),
        CheckConstraint("result IN ('1-0', '0-1', '1/2-1/2', '*')", name="result"),
        CheckConstraint("result = '*' OR status = 'finished'", name="no_result_unfinished"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int] = mapped_column(BigInteger)
    slot_id: Mapped[int] = mapped_column(BigInteger)
    attempt: Mapped[int]  # how often the slot was tried, from 1
    game: Mapped[str]
    rules: Mapped[str]
    first: Mapped[str]  # player
    second: Mapped[str]
    pair: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int]
    start_fen: Mapped[str]
    setup: Mapped[str]
    status: Mapped[str]
    result: Mapped[str]
    termination: Mapped[str]
    ending: Mapped[str]  # `rows.ending_of`; "" while it runs
    detail: Mapped[str]
    rated: Mapped[bool]
    plies: Mapped[int]
    points_first: Mapped[float | None]
    points_second: Mapped[float | None]
    started: Mapped[float]
    ended: Mapped[float | None]
    moves_hash: Mapped[str] = mapped_column(server_default="")  # of start and moves, once finished


class MoveRow(Base):
    __tablename__ = "moves"
    __table_args__ = ({"sqlite_with_rowid": False},)

    game_id: Mapped[int] = mapped_column(ForeignKey("games.id"), primary_key=True)
    ply: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    side: Mapped[int]
    player: Mapped[str]
    uci: Mapped[str]
    san: Mapped[str]
    fen: Mapped[str]  # after the move
    seconds: Mapped[float]
    queue_s: Mapped[float | None]
    prefill_s: Mapped[float | None]
    decode_s: Mapped[float | None]
    ttft_s: Mapped[float | None]
    prompt_tokens: Mapped[int]
    cached_tokens: Mapped[int]
    completion_tokens: Mapped[int]
    chosen: Mapped[float | None]  # raw probability of the move played
    legal_mass: Mapped[float | None]  # raw probability of all legal moves together
    terminator: Mapped[str | None]
    greedy: Mapped[str | None]  # what a masked greedy walk plays
    disagreement: Mapped[bool | None]  # whether that is another move
    top: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))  # [[uci, probability]]
    random_move: Mapped[bool]
    score_cp: Mapped[int | None]
    clock_s: Mapped[float | None]


class PromptRow(Base):
    __tablename__ = "prompts"

    hash: Mapped[str] = mapped_column(primary_key=True)  # SHA-256 of the text
    text: Mapped[str]


class AttemptRow(Base):
    __tablename__ = "attempts"

    game_id: Mapped[int] = mapped_column(ForeignKey("games.id"), primary_key=True)
    ply: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    player: Mapped[str]
    kind: Mapped[str]
    answer: Mapped[str]
    thinking: Mapped[str]
    uci: Mapped[str | None]
    span_start: Mapped[int | None]
    span_end: Mapped[int | None]
    detail: Mapped[str]
    prompt_hash: Mapped[str]  # as the agent gave it
    prompt: Mapped[str | None] = mapped_column(ForeignKey("prompts.hash"))
    seed: Mapped[int | None] = mapped_column(BigInteger)
    total_s: Mapped[float | None]
    queue_s: Mapped[float | None]
    prefill_s: Mapped[float | None]
    decode_s: Mapped[float | None]
    ttft_s: Mapped[float | None]
    prompt_tokens: Mapped[int]
    cached_tokens: Mapped[int]
    completion_tokens: Mapped[int]


class TelemetryRow(Base):
    __tablename__ = "telemetry"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    at: Mapped[float]
    model: Mapped[str]
    loading: Mapped[bool]
    num_requests_waiting: Mapped[int]
    num_requests_running: Mapped[int]
    kv_cache_usage_perc: Mapped[float]
    steps: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int] = mapped_column(BigInteger)
    sequences: Mapped[int] = mapped_column(BigInteger)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    prefix_cache_queries: Mapped[int] = mapped_column(BigInteger)
    prefix_cache_hits: Mapped[int] = mapped_column(BigInteger)
    num_preemptions: Mapped[int] = mapped_column(BigInteger)
    busy_seconds: Mapped[float]


class EventRow(Base):
    __tablename__ = "events"
    __table_args__ = ({"sqlite_with_rowid": False},)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    at: Mapped[float]
    kind: Mapped[str]
    game_id: Mapped[int | None] = mapped_column(ForeignKey("games.id"))
    payload: Mapped[dict[str, Any]]
