"""A referee engine: its scores end games, its failures are nobody's loss."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.base import AgentError
from agents.uci_client import find_binary
from arena.adjudicate import ResignRule, by_referee
from arena.cli import app
from arena.config import ConfigError, build_config
from arena.events import Subscription
from arena.match import Limits
from arena.records import Status, Termination
from arena.referee import Referee, Referees
from arena.running import run_new
from arena.store import Store, queries

from .kit import Choose, Player, broken, first_move, scored
from .test_match import end, referee

QUEEN_UP = "4k3/8/8/8/8/8/8/Q3K3 w - - 0 1"
SIDES = ("white", "black")
PLAYERS = [{"kind": "random"}, {"kind": "material"}]


def judged(choose: Choose, **limits: Any) -> tuple[Any, Any]:
    """A game of two players without scores under a referee that answers as told."""
    judge = Referee(Player("judge", choose, kind="uci"), win_cp=200)
    return referee(Player("w"), Player("b"), referee=judge, **limits)


@pytest.mark.parametrize(
    ("score", "side", "result", "words"),
    [
        (250, 0, "1-0", "White wins by a-fish at the cap of 9 plies (+2.50)"),
        (250, 1, "0-1", "Black wins by a-fish at the cap of 9 plies (−2.50)"),
        (-200, 0, "0-1", "Black wins by a-fish at the cap of 9 plies (−2.00)"),
        (199, 1, "1/2-1/2", "draw by a-fish at the cap of 9 plies (−1.99)"),
    ],
)
def test_the_cap_by_hand(score: int, side: int, result: str, words: str) -> None:
    verdict = by_referee("a-fish", score, 200, side, SIDES, 9)
    assert (verdict.result, verdict.detail) == (result, words)
    assert verdict.termination == Termination.ADJUDICATED_REFEREE


@pytest.mark.parametrize(("plies", "result"), [(3, "0-1"), (4, "1-0")])
def test_at_the_cap_the_side_to_move_is_asked_about(plies: int, result: str) -> None:
    record, moves = judged(scored(300), max_plies=plies, at_cap="referee")
    assert end(record) == (result, Termination.ADJUDICATED_REFEREE, Status.FINISHED)
    assert len(moves) == plies
    assert record.rated


def test_resignation_goes_by_the_referee_where_players_give_no_scores() -> None:
    rule = ResignRule(movecount=2, score=600, twosided=True)
    sides = {0: 700, 1: -700}  # White stands better, whoever is to move

    async def choose(turn: Any) -> Any:
        return await scored(sides[turn.state.turn])(turn)

    record, moves = judged(choose, resign=rule)
    assert end(record) == ("1-0", Termination.ADJUDICATED_RESIGN, Status.FINISHED)
    assert len(moves) == 4


def test_a_referee_that_fails_is_nobodys_loss() -> None:
    record, _ = judged(first_move, max_plies=2, at_cap="referee")  # a move and no score
    assert (record.status, record.termination) == (Status.ABORTED, Termination.ENGINE_ERROR)
    assert "the referee judge: it gave no score" in record.detail


def test_a_referee_without_a_rule_to_judge_by_is_never_asked() -> None:
    record, _ = judged(broken, max_plies=2, at_cap="draw")
    assert record.termination == Termination.ADJUDICATED_DRAW


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"at_cap": "referee", "max_plies": 9}, "needs referee"),
        ({"at_cap": "referee", "referee": {"path": "stockfish"}}, "needs max_plies"),
        ({"referee": {"path": "stockfish"}}, "nothing to judge"),
        (
            {"at_cap": "referee", "max_plies": 9, "referee": {"path": "x", "node": 5}},
            "did you mean 'nodes'",
        ),
    ],
)
def test_faults_are_one_line(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_config({"games": [{"game": "chess", **table}], "players": PLAYERS})


class Silent:
    async def follow(self, events: Subscription) -> None:
        async for _ in events:
            pass


def section(path: str, **words: Any) -> dict[str, Any]:
    rule = {"path": path, "nodes": 2000, **words}
    return {"game": "chess", "positions": [QUEEN_UP], "max_plies": 2, "at_cap": "referee"} | {
        "referee": rule
    }


def test_a_real_engine_sees_a_queen(tmp_path: Path) -> None:
    if find_binary("stockfish") is None:
        pytest.skip("skipped: no stockfish (Debian: apt install stockfish)")
    config = build_config({"games": [section("stockfish")], "players": PLAYERS})
    with Store.open(tmp_path / "a.db") as store:
        result = asyncio.run(run_new(config, store, Silent(), print))
        assert result.exit_code == 0
        games = queries.games(store, 1)
        assert [game.result for game in games] == ["1-0", "1-0"]
        assert {game.ending for game in games} == {"adjudicated"}
        assert "White wins by stockfish:n2000 at the cap of 2 plies (+" in games[0].detail


def test_a_referee_that_cannot_start_stops_the_run_before_it_is_recorded(tmp_path: Path) -> None:
    config = build_config({"games": [section("/no/such/fish")], "players": PLAYERS})
    with Store.open(tmp_path / "a.db") as store:
        with pytest.raises(AgentError, match="/no/such/fish"):
            asyncio.run(run_new(config, store, Silent(), print))
        assert queries.runs(store) == []


def test_sections_share_an_engine() -> None:
    if find_binary("stockfish") is None:
        pytest.skip("skipped: no stockfish (Debian: apt install stockfish)")
    both = [section("stockfish"), section("stockfish", score=50)]
    config = build_config({"games": both, "players": PLAYERS})

    async def open_() -> tuple[Referee | None, Referee | None]:
        async with Referees(config) as referees:
            return referees.get(0), referees.get(1)

    one, other = asyncio.run(open_())
    assert one is not None
    assert other is not None
    assert (one.win_cp, other.win_cp) == (200, 50)
    assert Limits(referee=one).referee is one


def test_on_the_command_line(tmp_path: Path) -> None:
    if find_binary("stockfish") is None:
        pytest.skip("skipped: no stockfish (Debian: apt install stockfish)")
    words = ["play", "random", "material", "--max-plies", "30", "--at-cap", "referee"]
    words += ["--db", str(tmp_path / "a.db"), "-q"]
    judge = ["--referee", "stockfish?nodes=500&option.Hash=4"]
    assert CliRunner().invoke(app, [*words, *judge]).exit_code == 0
    with Store.open(tmp_path / "a.db") as store:
        assert all("by stockfish" in game.detail for game in queries.games(store, 1))
    done = CliRunner().invoke(app, [*words, "--referee", "random"])
    assert "only a UCI engine can judge" in str(done.exception)
