"""`games.moves_hash`: equal for games of the same start and moves, so that copies count once."""

import sqlalchemy as sa
from alembic import op

from arena.store.rows import moves_hash

revision = "0003"
down_revision = "0002"

GAMES = sa.table(
    "games", sa.column("id"), sa.column("start_fen"), sa.column("status"), sa.column("moves_hash")
)
MOVES = sa.table("moves", sa.column("game_id"), sa.column("ply"), sa.column("uci"))


def upgrade() -> None:
    added = sa.Column("moves_hash", sa.Text(), nullable=False, server_default="")
    op.add_column("games", added)
    connection = op.get_bind()
    finished = sa.select(GAMES.c.id, GAMES.c.start_fen).where(GAMES.c.status == "finished")
    for game_id, start_fen in connection.execute(finished).all():
        played = sa.select(MOVES.c.uci).where(MOVES.c.game_id == game_id).order_by(MOVES.c.ply)
        found = moves_hash(start_fen, connection.execute(played).scalars().all())
        update = sa.update(GAMES).where(GAMES.c.id == game_id).values(moves_hash=found)
        connection.execute(update)
