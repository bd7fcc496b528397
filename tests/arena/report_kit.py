"""Recorded runs for the tests of the reports: real games of random legal moves, ends by choice."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

from agents.base import AgentInfo, Attempt
from arena.records import GameRecord, MoveRecord, Result, Slot, Status
from arena.store import Store
from games.registry import get_game


def agent(name: str, kind: str = "random", **config: object) -> AgentInfo:
    return AgentInfo(name, kind, {"kind": kind, **config}, deterministic=False)


def pair_slots(first: str, second: str, count: int, *, start: int = 0, **fields: Any) -> list[Slot]:
    """`count` colour-swapped pairs."""
    common = {"game": "chess", "rules": "standard"} | fields
    return [
        Slot(id=start + 2 * pair + half, first=a, second=b, pair=start // 2 + pair, **common)
        for pair in range(count)
        for half, (a, b) in enumerate(((first, second), (second, first)))
    ]


async def record(
    store: Store,
    run_id: int,
    slot: Slot,
    result: Result = "1-0",
    *,
    plies: int = 6,
    seed: int | None = None,
    refused: Sequence[Attempt] = (),
    failed: Sequence[Attempt] = (),
    **changes: Any,
) -> int:
    """Play `plies` random legal moves in a slot and record the game with that result."""
    state = get_game(slot.game).start(fen=slot.opening or None, setup=slot.setup or None)
    game_id = await store.start_game(run_id, slot, state.start_fen)
    rng = random.Random(slot.id if seed is None else seed)
    for ply in range(1, plies + 1):
        move = rng.choice(state.legal_moves())
        san, side = state.format_move(move, "san"), state.turn
        state = state.apply(move)
        player = (slot.first, slot.second)[side]
        answered = Attempt(len(refused) + 1, "move", answer=san, uci=move.uci)
        await store.append_move(
            game_id,
            MoveRecord(
                ply, side, player, move.uci, san, state.fen(), seconds=ply / 8,
                queue_s=ply / 64, decode_s=0.5, ttft_s=ply / 32, prompt_tokens=100,
                cached_tokens=80, completion_tokens=ply, attempts=(*refused, answered),
                score_cp=-35 if side else 20, clock_s=60.0 - ply / 8,
            ),
        )  # fmt: skip
    values: dict[str, Any] = {"termination": "checkmate", "detail": "mates", **changes}
    await store.finish_game(
        game_id,
        GameRecord(
            slot=slot,
            status=values.pop("status", Status.FINISHED),
            start_fen=state.start_fen,
            result=result,
            plies=plies,
            failed_attempts=tuple(failed),
            **values,
        ),
    )
    return game_id


def new_run(
    store: Store,
    players: Sequence[AgentInfo],
    slots: Sequence[Slot],
    config: Mapping[str, object] | None = None,
) -> int:
    return asyncio.run(
        store.create_run(name="demo", seed=1, config=config or {}, players=players, slots=slots)
    )
