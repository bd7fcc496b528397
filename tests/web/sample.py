"""A record with all that a page must show: both games, beliefs, refusals, hostile text, an engine.

Moves are real (the games' own rules decide), the figures beside them are invented for the tests.
"""

import asyncio
import random
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from agents.base import AgentInfo, Attempt, Belief, Telemetry, Timing, Usage
from arena.records import GameRecord, MoveRecord, Result, Slot, Status, Termination
from arena.store import Store
from games.base import GameState
from games.registry import get_game

T = TypeVar("T")
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</pre></main> ‮txet desrever‬ 한글 漢字 👩‍👩‍👧 <b>bold</b> {{ 7 * 7 }} &amp; \u200f"
)
LONG = "I think the best move is Nf3. " * 3_500  # over 100 kB
PLAYERS = (
    AgentInfo("alpha:choice", "llm", {"model": "alpha", "mode": "choice"}, deterministic=True),
    AgentInfo('beta<i>"한국어"</i>', "llm", {"note": HOSTILE}, deterministic=False),
)
PLIES = 24


def finish(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns; in a thread, since a browser's driver holds this one's loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def slots() -> list[Slot]:
    """Two pairs of chess, two of janggi, and one more game of each that stays open."""
    names = [one.name for one in PLAYERS]
    found: list[Slot] = []
    for game, rules in (("chess", "standard"), ("janggi", "fairy")):
        for index in range(5):
            first, second = names if index % 2 == 0 else names[::-1]
            number = len(found) + 1
            found.append(Slot(number, game, rules, first, second, pair=index // 2 + 1))
    return found


async def build(store: Store, plies: int = PLIES) -> int:
    """Record a run of ten slots, eight of them played; its id.

    Games 1 and 6 end by protocol after hostile answers, 5 and 10 are still running.
    """
    planned = slots()
    run_id = await store.create_run(
        name="sample <run>", seed=7, config={}, players=PLAYERS, slots=planned
    )
    for step in range(12):
        await store.append_telemetry(run_id, telemetry(step))
    for slot in planned:
        state = get_game(slot.game).start(rules=slot.rules)
        game_id = await store.start_game(run_id, slot, state.fen())
        draw = random.Random(slot.id)
        for _ in range(plies):
            move = choose(state, draw, goes_on=slot.id % 5 == 0)
            await store.append_move(game_id, move_record(state, slot, move, draw))
            state = state.apply(state.parse_move(move))
            if state.outcome() is not None:
                break
        if slot.id % 5:
            await store.finish_game(game_id, ending(slot, state))
    return run_id


def choose(state: GameState, draw: random.Random, goes_on: bool = False) -> str:
    """A move drawn evenly, in UCI; a quarter of janggi's are passes where one is legal.

    `goes_on`: no pass, and nothing that ends the game.
    """
    legal = [move.uci for move in state.legal_moves()]
    passes = [uci for uci in legal if uci[: len(uci) // 2] == uci[len(uci) // 2 :]]
    if goes_on:
        others = [uci for uci in legal if uci not in passes]
        draw.shuffle(others)
        return next(m for m in others if state.apply(state.parse_move(m)).outcome() is None)
    return passes[0] if passes and draw.random() < 0.25 else draw.choice(legal)


def move_record(state: GameState, slot: Slot, uci: str, draw: random.Random) -> MoveRecord:
    """One ply with its figures; every third move of the first player was refused twice before."""
    move = state.parse_move(uci)
    ply = len(state.moves) + 1
    after = state.apply(move)
    legal = [one.uci for one in state.legal_moves()]
    notation = state.game.notations[1]
    timing = Timing(total=0.2 + draw.random(), queue=0.05 * draw.random(), decode=0.1, ttft=0.15)
    usage = Usage(prompt=300 + 9 * ply, cached=250 + 9 * ply, completion=4)
    good = Attempt(
        1, "move", f"<think>{uci}?</think> {uci}", HOSTILE, uci, timing=timing, usage=usage
    )
    tries = (good,) if ply % 3 else (*refusals(slot), replace(good, number=3))
    shares = sorted((draw.random() for _ in range(min(6, len(legal)))), reverse=True)
    mass = 0.95 if ply % 4 else 0.3
    others = [one for one in legal if one != uci][: len(shares) - 1]
    scale = mass / sum(shares)
    top = tuple((one, share * scale) for one, share in zip([uci, *others], shares, strict=False))
    name = slot.first if state.turn == 0 else slot.second
    return MoveRecord(
        ply=ply,
        side=state.turn,
        player=name,
        uci=uci,
        san=state.format_move(move, notation),
        fen=after.fen(),
        seconds=timing.total,
        queue_s=timing.queue,
        decode_s=timing.decode,
        ttft_s=timing.ttft,
        prompt_tokens=usage.prompt,
        cached_tokens=usage.cached,
        completion_tokens=usage.completion,
        attempts=tries,
        belief=Belief(top[0][1], mass, "\n", uci, top),
        clock_s=300.0 - ply,
        score_cp=draw.randint(-80, 120),
    )


def refusals(slot: Slot) -> tuple[Attempt, ...]:
    """Two answers that were no legal move: one illegal, one hostile."""
    wrong = "e1e5" if slot.game == "chess" else "e2e7"
    return (
        Attempt(1, "illegal", wrong, uci=wrong, span=(0, 4), detail=f"{wrong} is not legal here"),
        Attempt(2, "unparsable", HOSTILE, detail=f"no move in {HOSTILE}", prompt="<prompt> & more"),
    )


def ending(slot: Slot, state: GameState) -> GameRecord:
    """Slots 1 and 6 forfeit by their answers; the rest is adjudicated by turns."""
    base = GameRecord(slot, Status.FINISHED, state.start_fen, plies=len(state.moves))
    if slot.id % 5 == 1:
        lost: Result = "0-1" if state.turn == 0 else "1-0"
        failed = (
            *refusals(slot),
            Attempt(3, "truncated", LONG, thinking=LONG, detail="no answer within the budget"),
        )
        detail = f"forfeit: {HOSTILE}"
        return replace(
            base,
            result=lost,
            termination=Termination.TRUNCATED,
            detail=detail,
            failed_attempts=failed,
        )
    results: tuple[Result, ...] = ("1-0", "1/2-1/2", "0-1")
    result = results[slot.id % 3]
    return replace(
        base, result=result, termination=Termination.ADJUDICATED_MATERIAL, detail="material"
    )


def telemetry(step: int) -> Telemetry:
    """An engine under steady load; counters only grow."""
    return Telemetry(
        model="alpha",
        loading=False,
        num_requests_waiting=(step * 5) % 7,
        num_requests_running=4 + step % 3,
        kv_cache_usage_perc=0.05 * step,
        steps=40 * step,
        rows=400 * step,
        sequences=200 * step,
        prompt_tokens=9_000 * step,
        completion_tokens=350 * step,
        prefix_cache_queries=9_000 * step,
        prefix_cache_hits=7_000 * step,
        num_preemptions=step // 5,
        busy_seconds=0.001 * step,
    )
