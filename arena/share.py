"""Games to hand on: one file a game, a site of a whole run, and the check that a file is true.

    share(store, game_id, file)      one self-contained HTML file
    publish(store, run_id, folder)   standings and every game, for any file host
    await verify(file)               play it again with the same players, move by move

A file carries what a replay needs: seeds, the players' settings, the position before the first
move. `verify` trusts nothing in it but runs no more than players of known kinds, and never an
engine by path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.base import AgentError, Decision, Turn, derive_seed
from agents.factory import create_agents
from agents.spec import AgentSpec, SpecError, load_spec
from arena.store import Store, StoreError, queries
from arena.store.queries import reading
from games.base import GameError, GameState, Move
from games.registry import get_game

REPLAYABLE = ("llm", "random", "material")
MAX_BYTES = 200_000_000


class ShareError(Exception):
    """A file that cannot be written, read or replayed; one line that names the thing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`ply` is the first that differs; None: the game is identical (`plies` of them compared)."""

    plies: int
    ply: int | None = None
    why: str = ""

    @property
    def text(self) -> str:
        if self.ply is None:
            return f"identical: {self.plies} plies"
        return f"ply {self.ply} differs: {self.why}"


def share(store: Store, game_id: int, file: str | Path) -> Path:
    """Write one game as one HTML file. Raises ShareError, StoreError."""
    from arena.web import offline

    path = Path(file)
    record = _record(store, game_id)
    with reading(store) as db:
        page = offline.game_page(db, game_id, record)
    _write(path, page)
    return path


def publish(store: Store, run_id: int, folder: str | Path) -> int:
    """Write a run as a site that works from any file host; the number of its games.

    Files of an earlier time are overwritten, others left alone. Raises ShareError, StoreError.
    """
    from arena.web import data, offline, tables

    root = Path(folder)
    queries.run(store, run_id)  # says it when there is none
    tournament = tables.tournament(store, run_id)
    with reading(store) as db:
        run = data.run(db, run_id)
        found = data.library(db, run_id=run_id, status="finished", size=1_000_000).games
        for info in found:
            page = offline.game_page(db, info.id, _record(store, info.id), "../index.html")
            _write(root / "games" / f"{info.id}.html", page)
    _write(root / "index.html", offline.overview_page(run, tournament, found))
    return len(found)


async def verify(file: str | Path) -> Verdict:
    """Play a shared game again and compare every move and answer. Raises ShareError.

    Only players of our own can be replayed: engines and remote models have no seed of ours.
    """
    shared = _read(Path(file))
    try:
        return await _replay(shared["record"], shared["moves"])
    except (AgentError, SpecError, GameError, KeyError, TypeError, ValueError) as error:
        raise ShareError(f"{file} cannot be replayed: {error}") from None


async def _replay(record: Mapping[str, Any], moves: Sequence[Mapping[str, Any]]) -> Verdict:
    names = (str(record["first"]), str(record["second"]))
    agents = create_agents([_spec(name, record) for name in dict.fromkeys(names)])
    try:
        await agents.start()
        state = get_game(record["game"]).start(rules=record["rules"], fen=record["start_fen"])
        for side, name in enumerate(names):
            await agents[name].new_game("verify", state.game, 0 if side == 0 else 1)
        for number, move in enumerate(moves):
            name = names[state.turn]
            decision = await agents[name].choose(_turn(state, record, name))
            why = _difference(move, record["answers"].get(str(move["ply"]), []), decision)
            if why:
                return Verdict(number, int(move["ply"]), f"{name} {why}")
            if move["uci"]:
                state = state.apply(Move(move["uci"]))
        return Verdict(len(moves))
    finally:
        await agents.close()


def _record(store: Store, game_id: int) -> dict[str, Any]:
    """What a replay needs beside the moves."""
    info = queries.game(store, game_id)
    run = queries.run(store, info.run_id)
    players = {one.name: one for one in queries.players(store, info.run_id)}
    tried = {move.ply: move.attempts for move in info.moves}
    tried[info.plies + 1] = info.failed_attempts
    sections = run.config.get("games") or [{}]
    slot = next(one for one in queries.slots(store, info.run_id) if one.id == info.slot_id)
    section = sections[slot.section] if slot.section < len(sections) else {}
    return {
        "madang": run.madang,
        "run_seed": run.seed,
        "slot": info.slot_id,
        "game": info.game,
        "rules": info.rules,
        "start_fen": info.start_fen,
        "first": info.first,
        "second": info.second,
        "max_plies": section.get("max_plies"),
        "players": {
            name: asdict(players[name]) for name in (info.first, info.second) if name in players
        },
        "answers": {
            str(ply): [asdict(one)["answer"] for one in attempts]
            for ply, attempts in tried.items()
            if attempts
        },
    }


def _spec(name: str, record: Mapping[str, Any]) -> AgentSpec:
    known = record["players"].get(name)
    if known is None or known.get("kind") not in REPLAYABLE:
        kind = "unknown" if known is None else known.get("kind")
        raise ShareError(f"{name} is of kind {kind}: only {', '.join(REPLAYABLE)} can be replayed")
    return load_spec({**known["config"], "kind": known["kind"], "name": name})


def _turn(state: GameState, record: Mapping[str, Any], name: str) -> Turn:
    ply, cap = len(state.moves) + 1, record.get("max_plies")
    return Turn(
        game_id="verify",
        state=state,
        seed=derive_seed(int(record["run_seed"]), int(record["slot"]), ply, name),
        plies_left=None if cap is None else int(cap) - ply + 1,
    )


def _difference(recorded: Mapping[str, Any], answers: Sequence[str], decision: Decision) -> str:
    """Why a decision is not the recorded one; empty where it is."""
    played = decision.move.uci if decision.move else ""
    if played != recorded["uci"]:
        return f"plays {played or decision.kind}, the file says {recorded['uci'] or 'no move'}"
    given = [attempt.answer for attempt in decision.attempts]
    for number, (now, then) in enumerate(zip(given, answers, strict=False), 1):
        if now != then:
            return f"answers {now[:60]!r} at attempt {number}, the file says {then[:60]!r}"
    if len(given) != len(answers):
        return f"needs {len(given)} attempts, the file has {len(answers)}"
    return ""


def _read(path: Path) -> dict[str, Any]:
    from arena.web import offline

    try:
        if path.stat().st_size > MAX_BYTES:
            raise ShareError(f"{path} is larger than any shared game")
        found: dict[str, Any] = offline.embedded(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ShareError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ShareError(f"{path} is no shared game: {error}") from None
    return found


def _write(path: Path, text: str) -> None:
    draft = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise ShareError(f"cannot write {path}: {error.strerror}") from None


__all__ = ["ShareError", "StoreError", "Verdict", "publish", "share", "verify"]
