"""The life of one game's row: started, ended, its attempts. Every function runs in a job.

Statements are built once, with names for what changes.
"""

import time
from collections.abc import Sequence

from sqlalchemy import bindparam, func, insert, select, update

from agents.base import Attempt
from arena.records import GameRecord, Slot, Status

from .errors import StoreError
from .models import AttemptRow, GameRow, MoveRow, table_of
from .rows import attempt_row, finished_values, moves_hash, prompt_key
from .transaction import Transaction

_GAMES = table_of(GameRow)
_OF_SLOT = (GameRow.run_id == bindparam("b_run"), GameRow.slot_id == bindparam("b_slot"))
_RETIRE = (
    update(_GAMES)
    .where(*_OF_SLOT, GameRow.status.in_([str(Status.RUNNING), str(Status.ABORTED)]))
    .values(status=str(Status.SUPERSEDED))
    .returning(GameRow.id)
)
_TRIED = select(func.max(GameRow.attempt)).where(*_OF_SLOT)
_DONE = select(GameRow.id).where(*_OF_SLOT, GameRow.status == str(Status.FINISHED))
_NEW_GAME = insert(_GAMES).returning(GameRow.id)
_STATE = select(GameRow.status, GameRow.plies).where(GameRow.id == bindparam("b_game"))
_PLAYED = select(MoveRow.uci).where(MoveRow.game_id == bindparam("b_game")).order_by(MoveRow.ply)
_END = update(_GAMES).where(GameRow.id == bindparam("b_game"))


def start_game_row(tx: Transaction, run_id: int, slot: Slot, start_fen: str) -> tuple[int, int]:
    """(id of the new game, how often its slot was tried). Unfinished earlier ones are superseded.

    Raises StoreError where the slot has a finished game.
    """
    words = {"b_run": run_id, "b_slot": slot.id}
    for old in tx.connection.execute(_RETIRE, words).scalars().all():
        tx.add_event(run_id, "game_superseded", {"slot": slot.id}, old)
    tried = tx.connection.execute(_TRIED, words).scalar() or 0
    if tried and (finished := tx.connection.execute(_DONE, words).scalar()) is not None:
        raise StoreError(f"slot {slot.id} of run {run_id} is played already: game {finished}")
    values = {
        "run_id": run_id,
        "slot_id": slot.id,
        "attempt": tried + 1,
        "game": slot.game,
        "rules": slot.rules,
        "first": slot.first,
        "second": slot.second,
        "pair": slot.pair,
        "round": slot.round,
        "start_fen": start_fen,
        "setup": slot.setup,
        "status": str(Status.RUNNING),
        "result": "*",
        "termination": "",
        "ending": "",
        "detail": "",
        "rated": True,
        "plies": 0,
        "started": time.time(),
    }
    return tx.connection.execute(_NEW_GAME, values).scalar_one(), tried + 1


def finish_game_row(tx: Transaction, game_id: int, record: GameRecord) -> None:
    """Raises StoreError where the game is not running, or has other moves than the record says."""
    player = _player_to_move(record)
    add_attempts(tx, game_id, record.plies + 1, player, record.failed_attempts)
    tx.flush_moves()
    words = {"b_game": game_id}
    status, plies = tx.connection.execute(_STATE, words).one()
    if status != Status.RUNNING:
        raise StoreError(f"game {game_id} is not running, it is {status}")
    if plies != record.plies:
        raise StoreError(f"game {game_id} has {plies} moves, its record says {record.plies}")
    values = finished_values(record) | {"ended": time.time()}
    played = tx.connection.execute(_PLAYED, words).scalars()
    values["moves_hash"] = moves_hash(record.start_fen, played)
    tx.connection.execute(_END, values | words)


def add_attempts(
    tx: Transaction, game_id: int, ply: int, player: str, attempts: Sequence[Attempt]
) -> None:
    for attempt in attempts:
        tx.add(AttemptRow, attempt_row(game_id, ply, player, attempt))
        if (key := prompt_key(attempt)) is not None:
            tx.add_prompt(key, attempt.prompt)


def _player_to_move(record: GameRecord) -> str:
    """Who was asked last. Every game's FEN names the side to move in its second field."""
    begins = 1 if record.start_fen.split(" ")[1:2] == ["b"] else 0
    return (record.slot.first, record.slot.second)[(begins + record.plies) % 2]
