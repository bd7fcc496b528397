"""The tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LIVE = "status IN ('running', 'finished')"
RESULTS = "result IN ('1-0', '0-1', '1/2-1/2', '*')"
UNFINISHED = "result = '*' OR status = 'finished'"


def upgrade() -> None:
    _prompts()
    _runs()
    _players()
    _slots()
    _telemetry()
    _games()
    _attempts()
    _events()
    _moves()


def _prompts() -> None:
    op.create_table(
        "prompts",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_prompts"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("config_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("madang", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )


def _players() -> None:
    op.create_table(
        "players",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("run_id", BIG_ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("deterministic", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_players_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_players"),
        sa.UniqueConstraint("run_id", "name", name="uq_players_run_id_name"),
    )


def _slots() -> None:
    op.create_table(
        "slots",
        sa.Column("run_id", BIG_ID, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("game", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("first", sa.Text(), nullable=False),
        sa.Column("second", sa.Text(), nullable=False),
        sa.Column("pair", sa.BigInteger(), nullable=False),
        sa.Column("opening", sa.Text(), nullable=False),
        sa.Column("setup", sa.Text(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("section", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_slots_run_id"),
        sa.PrimaryKeyConstraint("run_id", "id", name="pk_slots"),
    )


def _telemetry() -> None:
    op.create_table(
        "telemetry",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("run_id", BIG_ID, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("loading", sa.Boolean(), nullable=False),
        sa.Column("num_requests_waiting", sa.Integer(), nullable=False),
        sa.Column("num_requests_running", sa.Integer(), nullable=False),
        sa.Column("kv_cache_usage_perc", sa.Double(), nullable=False),
        sa.Column("steps", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("sequences", sa.BigInteger(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("prefix_cache_queries", sa.BigInteger(), nullable=False),
        sa.Column("prefix_cache_hits", sa.BigInteger(), nullable=False),
        sa.Column("num_preemptions", sa.BigInteger(), nullable=False),
        sa.Column("busy_seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_telemetry_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_telemetry"),
    )
    op.create_index("ix_telemetry_run_id", "telemetry", ["run_id"], unique=False)


def _games() -> None:
    op.create_table(
        "games",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("slot_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("game", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("first", sa.Text(), nullable=False),
        sa.Column("second", sa.Text(), nullable=False),
        sa.Column("pair", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("start_fen", sa.Text(), nullable=False),
        sa.Column("setup", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("termination", sa.Text(), nullable=False),
        sa.Column("ending", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("rated", sa.Boolean(), nullable=False),
        sa.Column("plies", sa.Integer(), nullable=False),
        sa.Column("points_first", sa.Double(), nullable=True),
        sa.Column("points_second", sa.Double(), nullable=True),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.CheckConstraint(UNFINISHED, name="ck_games_no_result_unfinished"),
        sa.CheckConstraint(RESULTS, name="ck_games_result"),
        sa.ForeignKeyConstraint(
            ["run_id", "slot_id"], ["slots.run_id", "slots.id"], name="fk_games_run_id_slot_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_games"),
        sa.UniqueConstraint("run_id", "slot_id", "attempt", name="uq_games_run_id_slot_id_attempt"),
    )
    op.create_index(
        "one_live_game_a_slot",
        "games",
        ["run_id", "slot_id"],
        unique=True,
        sqlite_where=sa.text(LIVE),
        postgresql_where=sa.text(LIVE),
    )


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("game_id", BIG_ID, nullable=False),
        sa.Column("ply", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("player", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("thinking", sa.Text(), nullable=False),
        sa.Column("uci", sa.Text(), nullable=True),
        sa.Column("span_start", sa.Integer(), nullable=True),
        sa.Column("span_end", sa.Integer(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("prompt_hash", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("total_s", sa.Double(), nullable=True),
        sa.Column("queue_s", sa.Double(), nullable=True),
        sa.Column("prefill_s", sa.Double(), nullable=True),
        sa.Column("decode_s", sa.Double(), nullable=True),
        sa.Column("ttft_s", sa.Double(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["game_id"], ["games.id"], name="fk_attempts_game_id"),
        sa.ForeignKeyConstraint(["prompt"], ["prompts.hash"], name="fk_attempts_prompt"),
        sa.PrimaryKeyConstraint("game_id", "ply", "number", name="pk_attempts"),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("run_id", BIG_ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("game_id", BIG_ID, nullable=True),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["game_id"], ["games.id"], name="fk_events_game_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_events_run_id"),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_events"),
        sqlite_with_rowid=False,
    )


def _moves() -> None:
    op.create_table(
        "moves",
        sa.Column("game_id", BIG_ID, nullable=False),
        sa.Column("ply", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("side", sa.Integer(), nullable=False),
        sa.Column("player", sa.Text(), nullable=False),
        sa.Column("uci", sa.Text(), nullable=False),
        sa.Column("san", sa.Text(), nullable=False),
        sa.Column("fen", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("queue_s", sa.Double(), nullable=True),
        sa.Column("prefill_s", sa.Double(), nullable=True),
        sa.Column("decode_s", sa.Double(), nullable=True),
        sa.Column("ttft_s", sa.Double(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("chosen", sa.Double(), nullable=True),
        sa.Column("legal_mass", sa.Double(), nullable=True),
        sa.Column("terminator", sa.Text(), nullable=True),
        sa.Column("greedy", sa.Text(), nullable=True),
        sa.Column("disagreement", sa.Boolean(), nullable=True),
        sa.Column("top", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("random_move", sa.Boolean(), nullable=False),
        sa.Column("score_cp", sa.Integer(), nullable=True),
        sa.Column("clock_s", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["game_id"], ["games.id"], name="fk_moves_game_id"),
        sa.PrimaryKeyConstraint("game_id", "ply", name="pk_moves"),
        sqlite_with_rowid=False,
    )
