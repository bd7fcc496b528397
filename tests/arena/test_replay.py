"""Recorded games judged again: another policy, another reader, and what nobody can know."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.base import Attempt, Usage, derive_seed
from arena import report
from arena.cli import app
from arena.records import Slot, Termination
from arena.store import Store, StoreError, queries
from games.registry import get_game

from .report_kit import agent, new_run, pair_slots, record

FREE = {"mode": "free", "notation": "uci", "max_tokens": 32, "policy": {"attempts": 3}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "a.db") as opened:
        yield opened


def attempt(number: int, kind: Any, answer: str, **words: Any) -> Attempt:
    return Attempt(number, kind, answer=answer, usage=Usage(100, 0, 5), **words)


def run(store: Store, games: Sequence[dict[str, Any]], **config: Any) -> list[Slot]:
    """One pair of ann (random) and bob (free) for each two games, recorded as told."""
    slots = pair_slots("ann", "bob", -(-len(games) // 2))
    players = [agent("ann"), agent("bob", "llm", **(FREE | config))]
    run_id = new_run(store, players, slots)
    for slot, words in zip(slots, games, strict=False):
        asyncio.run(record(store, run_id, slot, **{"plies": 4, **words}))
    return slots


ILLEGAL = (attempt(1, "illegal", "e2e5", uci="e2e5"), attempt(2, "illegal", "e1e3", uci="e1e3"))


def test_nothing_changes_under_the_same_reader_and_policy(store: Store) -> None:
    failed = (*ILLEGAL, attempt(3, "illegal", "a1a1"))
    forfeit = {"result": "0-1", "termination": Termination.ILLEGAL, "failed": failed}
    run(store, [{"result": "1-0", "refused": ILLEGAL}, {"result": "0-1"}, forfeit])
    found = report.replay(store, 1)
    assert found["counts"] == {"same": 3, "changed": 0, "open": 0}
    assert found["standings"] == report.standings(store, 1)
    assert all(row["before"] == row["after"] for row in found["readings"])


def test_fewer_attempts_end_a_game_at_the_turn_that_needed_them(store: Store) -> None:
    run(store, [{"result": "0-1", "refused": ILLEGAL}, {"result": "1-0"}])
    found = report.replay(store, 1, policy={"attempts": 2})
    (row,) = found["games"]
    assert (row["how"], row["ply"]) == ("changed", 2)  # bob is second: his first move
    assert (row["before"], row["after"]) == ("0-1 checkmate", "1-0 illegal")
    (table,) = found["standings"]["games"]
    bob = next(player for player in table["players"] if player["name"] == "bob")
    assert (bob["score"], bob["forfeits"]) == (1.0, 1)
    text = report.replay_text(found, 80)
    assert "1 games as before, 1 with another end, 0 open" in text
    assert "game 1: 0-1 checkmate before, now 1-0 illegal at ply 2" in text


def test_more_attempts_leave_a_forfeit_open(store: Store) -> None:
    failed = (*ILLEGAL, attempt(3, "illegal", "a1a1"))
    run(store, [{"result": "1-0", "plies": 5, "termination": "illegal", "failed": failed}])
    found = report.replay(store, 1, policy={"attempts": 4})
    (row,) = found["games"]
    assert (row["how"], row["ply"], row["after"]) == ("open", 6, "* open")
    assert "would be asked again" in row["detail"]
    assert found["standings"]["games"][0]["players"][0]["games"] == 0


def test_an_answer_that_is_read_otherwise_today(store: Store) -> None:
    """As if an older reader had taken a clear resignation and a clear move for nothing."""
    blind = (attempt(1, "unparsable", "I resign."),)
    other = (attempt(1, "unparsable", "a7a5"),)
    games = [{"refused": blind}, {}, {"refused": other}]
    run(store, [{"result": "0-1", **words} for words in games])
    stored = report.replay(store, 1, parser="stored")
    assert stored["counts"]["same"] == 3
    found = report.replay(store, 1)
    first = found["games"][0]
    assert (first["how"], first["after"]) == ("changed", "1-0 resigned")
    resigned = {"player": "bob", "before": "unparsable", "after": "resign", "answers": 1}
    assert resigned in found["readings"]
    third = queries.game(store, 3).moves[1].uci
    assert found["counts"]["open"] == (third != "a7a5")
    kept = report.replay(store, 1, policy={"allow_resign": False})
    assert all(row["after"] != "1-0 resigned" for row in kept["games"])


def test_a_random_move_that_would_have_been_another_is_open(store: Store) -> None:
    run(store, [{"result": "1-0", "refused": ILLEGAL}])
    game = queries.game(store, 1)
    state = get_game("chess").start()
    state = state.apply(state.parse_move(game.moves[0].uci))
    legal = state.legal_moves()
    drawn = legal[derive_seed(derive_seed(1, 0, 2, "bob"), "fallback") % len(legal)]
    found = report.replay(store, 1, policy={"attempts": 1, "then": "random_move"})
    first = found["games"][0]["ply"] if found["games"] else None
    assert (first == 2) == (drawn.uci != game.moves[1].uci)


def test_a_cut_answer_stays_cut(store: Store) -> None:
    cut = Attempt(1, "truncated", answer="I think that", usage=Usage(100, 0, 32))
    run(store, [{"result": "1-0", "refused": (cut,)}])
    readings = report.replay(store, 1)["readings"]
    assert {"player": "bob", "before": "truncated", "after": "truncated", "answers": 2} in readings


def test_time_losses_are_not_the_readers_business(store: Store) -> None:
    late = (attempt(1, "move", "e7e5", uci="e7e5"),)
    run(store, [{"result": "1-0", "plies": 1, "termination": Termination.TIME, "failed": late}])
    assert report.replay(store, 1)["counts"]["same"] == 1


def test_the_command_and_its_faults(store: Store, tmp_path: Path) -> None:
    run(store, [{"result": "0-1", "refused": ILLEGAL}, {"result": "1-0"}])
    db = str(tmp_path / "a.db")
    words = ["replay", "--db", db, "--parser", "stored", "--policy", "attempts=1", "--json"]
    assert json.loads(CliRunner().invoke(app, words).stdout)["counts"]["changed"] == 1
    with pytest.raises(StoreError, match=r"unknown key 'attempt' .did you mean 'attempts'"):
        report.replay(store, 1, policy={"attempt": 1})
    with pytest.raises(StoreError, match="--policy: attempts: "):
        report.replay(store, 1, policy={"attempts": 0})
    slots = pair_slots("ann", "cat", 1)
    run_id = new_run(store, [agent("ann"), agent("cat")], slots)
    with pytest.raises(StoreError, match="no player of it is in mode free"):
        report.replay(store, run_id)
