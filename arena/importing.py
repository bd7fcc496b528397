"""Games of PGN and `.gib` files into a store, to be looked at and analysed as our own are.

A file becomes one run, finished from the start; each game a slot of its own. Result and clocks are
the file's, the end is the board's where the board has one, else `imported`. Games that cannot be
read are named, the rest is kept. Times that a file does not tell are 0.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from agents.base import AgentInfo
from arena.records import GameRecord, MoveRecord, Result, Slot, Status, Termination
from arena.store import Store, StoreError
from games.base import Game, GameError, GameState
from games.convert import read_games
from games.janggi import RECORDS
from games.registry import get_game
from games.transcript import Fault, Transcript

SUFFIXES = (".pgn", ".gib")
_EVAL = re.compile(r"\[%eval\s+(-?[0-9]{1,4}(?:\.[0-9]{1,2})?)")
_SPENT = re.compile(r"\[%emt\s+([0-9]{1,4}):([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]{1,6})?)\]")


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file."""

    run_id: int
    games: int
    faults: tuple[Fault, ...]


def import_games(store: Store, file: Path) -> Imported:
    """Record the games of a file as a new run. Raises StoreError where none can be read."""
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise StoreError(f"{file}: import takes {' and '.join(SUFFIXES)} files")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from None
    reading = read_games(data, suffix[1:], "janggi" if suffix == ".gib" else "chess")
    if not reading.games:
        why = f": {reading.faults[0]}" if reading.faults else ""
        raise StoreError(f"{file}: no game can be read{why}")
    digest = hashlib.sha256(data).hexdigest()
    config = {"imported": file.name, "sha256": digest}
    run_id = asyncio.run(_record(store, file.name, config, reading.games))
    return Imported(run_id, len(reading.games), reading.faults)


async def _record(
    store: Store, name: str, config: dict[str, str], games: Sequence[Transcript]
) -> int:
    slots = [_slot(number, transcript) for number, transcript in enumerate(games, 1)]
    names = dict.fromkeys(name for slot in slots for name in (slot.first, slot.second))
    players = [AgentInfo(name, "imported", {"kind": "imported"}, False) for name in names]
    run_id = await store.create_run(name=name, seed=0, config=config, players=players, slots=slots)
    for slot, transcript in zip(slots, games, strict=True):
        await _record_game(store, run_id, slot, transcript)
    await store.finish_run(run_id, str(Status.FINISHED))
    return run_id


def _slot(number: int, transcript: Transcript) -> Slot:
    first, second = (transcript.tags.get(tag, "").strip() or "?" for tag in ("White", "Black"))
    if first == second == "?":
        first, second = "? first", "? second"
    return Slot(
        id=number,
        game=transcript.game,
        rules=_rules(transcript),
        first=first,
        second=second,
        pair=number,
        opening=transcript.start_fen,
    )


def _rules(transcript: Transcript) -> str:
    """The first rule set under which every move was legal; the game's first where none is."""
    game = get_game(transcript.game)
    for rules in game.rule_sets:
        try:
            transcript.replay(game, rules)
        except GameError:
            continue
        return rules
    return next(iter(game.rule_sets))


async def _record_game(store: Store, run_id: int, slot: Slot, transcript: Transcript) -> None:
    game = RECORDS if slot.game == "janggi" else get_game(slot.game)
    state = game.start(fen=transcript.start_fen)
    game_id = await store.start_game(run_id, slot, state.start_fen)
    moves: list[MoveRecord] = []
    texts: dict[int, str] = {}
    for ply, text in transcript.comments:
        texts[ply] = f"{texts.get(ply, '')} {text}"
    for move in transcript.moves:
        before, state = state, state.apply(move)
        moves.append(_move(slot, transcript, before, state, texts))
    await asyncio.gather(*(store.append_move(game_id, move) for move in moves))
    await store.finish_game(game_id, _end(slot, transcript, state, game))


def _move(
    slot: Slot,
    transcript: Transcript,
    before: GameState,
    after: GameState,
    texts: dict[int, str],
) -> MoveRecord:
    move, ply = after.moves[-1], len(after.moves)
    said = texts.get(ply, "")
    score = _EVAL.search(said)
    by_first = round(100 * float(score[1])) if score else None
    second = before.turn == 1
    return MoveRecord(
        ply=ply,
        side=before.turn,
        player=slot.second if second else slot.first,
        uci=move.uci,
        san=before.format_move(move, before.game.notations[1]),
        fen=after.fen(),
        seconds=_seconds(said),
        score_cp=-by_first if by_first is not None and second else by_first,
        clock_s=transcript.clocks.get(ply),
    )


def _seconds(said: str) -> float:
    spent = _SPENT.search(said)
    if spent is None:
        return 0.0
    return int(spent[1]) * 3600 + int(spent[2]) * 60 + float(spent[3])


def _end(slot: Slot, transcript: Transcript, state: GameState, game: Game) -> GameRecord:
    """The file's result; the board's reason where it says the same."""
    result = cast(Result, transcript.result)
    record = GameRecord(
        slot=slot,
        status=Status.FINISHED,
        start_fen=state.start_fen,
        result=result,
        termination=Termination.IMPORTED,
        detail=transcript.tags.get("Termination", ""),
        rated=result != "*" and slot.first != slot.second,
        plies=len(state.moves),
        points=state.material(),
    )
    outcome = state.outcome()
    if outcome is None or outcome.result != result:
        return record
    winner = outcome.winner or 0
    sides = [side.capitalize() for side in game.sides]
    words = game.terminations[outcome.termination]
    detail = words.format(winner=sides[winner], loser=sides[1 - winner])
    return replace(record, termination=outcome.termination, detail=detail)
