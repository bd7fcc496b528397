"""The referee alone, on real games: every way a game can end, and who is blamed."""

import asyncio
import logging
from typing import Any

import pytest

from agents.base import AgentError, Attempt, Decision, Timing, Turn, Usage, derive_seed
from arena import match
from arena.adjudicate import DrawRule, ResignRule
from arena.clock import TimeControl
from arena.match import Limits
from arena.records import GameRecord, MoveRecord, Slot, Status, Termination
from games.base import Game, Move, Side
from games.registry import get_game

from .kit import Player, broken, failed, first_move, never, scored, script, stubborn

FOOLS_MATE = (("f2f3", "g2g4"), ("e7e5", "d8h4"))


def referee(
    first: Player,
    second: Player,
    game: str = "chess",
    fen: str | None = None,
    **limits: Any,
) -> tuple[GameRecord, list[MoveRecord]]:
    """Play one game to its end; the record and the moves as they were handed over."""
    start = get_game(game).start(fen=fen)
    slot = Slot(7, game, start.rules, first.info.name, second.info.name, pair=1)
    moves: list[MoveRecord] = []

    async def on_move(move: MoveRecord) -> None:
        moves.append(move)

    record = asyncio.run(
        match.play("g7", slot, start, (first, second), Limits(**limits), 42, on_move)
    )
    assert not first.open_games | second.open_games
    assert record.slot == slot
    assert record.plies == len(moves)
    return record, moves


def end(record: GameRecord) -> tuple[str, str, str]:
    return (record.result, record.termination, record.status)


def test_mate_ends_on_the_board_with_every_move_recorded() -> None:
    white, black = (
        Player(name, script(*moves)) for name, moves in zip("wb", FOOLS_MATE, strict=True)
    )
    record, moves = referee(white, black)
    assert end(record) == ("0-1", "checkmate", Status.FINISHED)
    assert record.detail == "Black mates"
    assert [move.uci for move in moves] == ["f2f3", "e7e5", "g2g4", "d8h4"]
    assert [move.san for move in moves] == ["f3", "e5", "g4", "Qh4#"]
    assert [move.ply for move in moves] == [1, 2, 3, 4]
    assert [move.player for move in moves] == ["w", "b", "w", "b"]
    assert moves[-1].fen.startswith("rnb1kbnr/")


def test_seeds_depend_on_run_slot_ply_and_player_alone() -> None:
    white, black = (
        Player(name, script(*moves)) for name, moves in zip("wb", FOOLS_MATE, strict=True)
    )
    referee(white, black)
    assert [turn.seed for turn in white.turns] == [derive_seed(42, 7, ply, "w") for ply in (1, 3)]
    assert [turn.seed for turn in black.turns] == [derive_seed(42, 7, ply, "b") for ply in (2, 4)]


@pytest.mark.parametrize(
    "reason",
    ["unparsable", "illegal", "ambiguous", "truncated", "empty", "refused", "time", "budget",
     "crash", "stall"],
)  # fmt: skip
@pytest.mark.parametrize("side", [0, 1])
def test_a_protocol_failure_loses_with_its_kind_and_its_answers(reason: Any, side: Side) -> None:
    lost = script(Decision("forfeit", reason=reason, attempts=(failed("??"),), detail="why"))
    players = [Player("good"), Player("good")]
    players[side] = Player("bad", lost)
    record, _ = referee(players[0], players[1])
    assert end(record) == ("1-0" if side else "0-1", reason, Status.FINISHED)
    assert record.failed_player == "bad"
    assert [attempt.answer for attempt in record.failed_attempts] == ["??"]
    assert record.rated
    assert record.detail == f"{('White', 'Black')[side]} why"


def test_the_referee_checks_legality_itself() -> None:
    record, moves = referee(Player("cheat", script("e2e5")), Player("b"))
    assert end(record) == ("0-1", Termination.ILLEGAL, Status.FINISHED)
    assert record.detail == "White plays the illegal move e2e5"
    assert moves == []


@pytest.mark.parametrize("null", ["0000", "--", "Z0", "e2e2", ""])
def test_null_moves_are_illegal_in_chess(null: str) -> None:
    record, _ = referee(Player("cheat", script(null)), Player("b"))
    assert end(record) == ("0-1", Termination.ILLEGAL, Status.FINISHED)


def test_resigning_loses() -> None:
    record, _ = referee(Player("a"), Player("b", script(Decision("resign"))))
    assert end(record) == ("1-0", Termination.RESIGNED, Status.FINISHED)


OFFER = Decision("draw_offer")


def test_a_draw_offer_stands_for_the_opponents_next_turn() -> None:
    white, black = Player("w", script(OFFER, "e2e4")), Player("b", script(OFFER))
    record, moves = referee(white, black)
    assert end(record) == ("1/2-1/2", Termination.DRAW_AGREED, Status.FINISHED)
    assert [move.uci for move in moves] == ["e2e4"]
    assert [turn.draw_offered for turn in black.turns] == [True]


def test_the_answer_that_offered_is_kept_with_the_move() -> None:
    offer = Decision("draw_offer", attempts=(Attempt(1, "draw_offer", answer="Draw?"),))
    answered = Decision("move", Move("e2e4"), attempts=(Attempt(1, "move", answer="e4"),))
    _, moves = referee(Player("w", script(offer, answered)), Player("b"), max_plies=1)
    kept = [(attempt.number, attempt.answer) for attempt in moves[0].attempts]
    assert kept == [(1, "Draw?"), (2, "e4")]


def test_a_move_declines_an_offer() -> None:
    white, black = Player("w", script(OFFER, "e2e4")), Player("b", script("e7e5", OFFER, "a7a6"))
    record, _ = referee(white, black, max_plies=4)
    assert record.termination == Termination.CUT_SHORT
    assert [turn.draw_offered for turn in black.turns] == [True, False, False]
    assert [turn.draw_offered for turn in white.turns] == [False, False, False]


def test_offering_again_instead_of_moving_loses() -> None:
    record, _ = referee(Player("w", script(OFFER, OFFER)), Player("b"))
    assert end(record) == ("0-1", Termination.EMPTY, Status.FINISHED)


@pytest.mark.parametrize("reason", ["engine_error", "endpoint_error", "constraint_ignored",
                                    "prompt_truncated", "overloaded"])  # fmt: skip
def test_our_failures_score_nobody(reason: Any) -> None:
    failure = Decision("no_result", reason=reason, attempts=(failed("x"),), detail="HTTP 429")
    record, _ = referee(Player("a"), Player("b", script("e7e5", failure)))
    assert end(record) == ("*", reason, Status.ABORTED)
    assert not record.rated
    assert record.failed_player == "b"
    assert record.plies == 3


def test_an_exception_is_our_bug_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        record, _ = referee(Player("a"), Player("b", broken))
    assert end(record) == ("*", Termination.BUG, Status.ABORTED)
    assert "ZeroDivisionError: broken on purpose" in caplog.text
    assert "please report" in caplog.text


@pytest.mark.parametrize(
    "nonsense",
    [Decision("move"), Decision("forfeit"), Decision("no_result"),
     Decision("forfeit", reason="nonsense")],  # type: ignore[arg-type]
)  # fmt: skip
def test_a_decision_that_makes_no_sense_is_our_bug(nonsense: Decision) -> None:
    record, _ = referee(Player("a", script(nonsense)), Player("b"))
    assert end(record) == ("*", Termination.BUG, Status.ABORTED)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("uci", ("0-1", Termination.STALL, Status.FINISHED)),
        ("llm", ("*", Termination.ENGINE_ERROR, Status.ABORTED)),
    ],
)
@pytest.mark.parametrize("choose", [never, stubborn])
def test_the_watchdog_blames_who_answers_for_itself(
    kind: str, expected: Any, choose: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "GRACE_S", 0.01)
    record, _ = referee(Player("a", choose, kind=kind), Player("b"), watchdog_s=0.02)
    assert end(record) == expected


class Refuses(Player):
    """Cannot be seated."""

    def __init__(self, error: Exception, kind: str) -> None:
        super().__init__("refuses", kind=kind)
        self._error = error

    async def new_game(self, game_id: str, game: Game, side: Side) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "kind", "termination"),
    [
        (AgentError("gone"), "uci", Termination.CRASH),
        (AgentError("gone"), "llm", Termination.ENGINE_ERROR),
        (RuntimeError("ours"), "uci", Termination.BUG),
    ],
)
def test_an_agent_that_cannot_be_seated(error: Exception, kind: str, termination: str) -> None:
    record, _ = referee(Refuses(error, kind), Player("b"))
    assert record.termination == termination


class Leaves(Player):
    """Fails when the game is over."""

    async def end_game(self, game_id: str) -> None:
        await super().end_game(game_id)
        raise RuntimeError("in end_game")


def test_a_fault_after_the_end_changes_no_result() -> None:
    record, _ = referee(Leaves("a", script(Decision("resign"))), Leaves("b"))
    assert end(record) == ("0-1", Termination.RESIGNED, Status.FINISHED)


def test_the_board_is_asked_before_the_cap() -> None:
    white, black = (
        Player(name, script(*moves)) for name, moves in zip("wb", FOOLS_MATE, strict=True)
    )
    record, _ = referee(white, black, max_plies=4, at_cap="material")
    assert record.termination == "checkmate"


def test_the_cap_is_labelled_and_players_are_told_of_it() -> None:
    white, black = Player("w"), Player("b")
    record, _ = referee(white, black, max_plies=6, at_cap="material")
    assert end(record) == ("1/2-1/2", Termination.ADJUDICATED_MATERIAL, Status.FINISHED)
    assert record.rated
    assert [turn.plies_left for turn in white.turns] == [6, 4, 2]
    cut, _ = referee(Player("w"), Player("b"), max_plies=6)
    assert end(cut) == ("*", Termination.CUT_SHORT, Status.FINISHED)
    assert not cut.rated


def test_points_decide_in_janggi() -> None:
    record, moves = referee(
        Player("cho"), Player("han"), game="janggi", max_plies=4, at_cap="points"
    )
    assert end(record) == ("0-1", Termination.ADJUDICATED_POINTS, Status.FINISHED)
    assert record.points == (72.0, 73.5)
    assert len(moves) == 4


def test_scores_adjudicate() -> None:
    drawn, _ = referee(
        Player("a", scored(3)), Player("b", scored(-3)), draw=DrawRule(2, 2, 10), max_plies=50
    )
    assert (drawn.termination, drawn.plies) == (Termination.ADJUDICATED_DRAW, 4)
    lost, _ = referee(
        Player("a", scored(900)), Player("b", scored(-900)), resign=ResignRule(2, 600)
    )
    assert end(lost) == ("1-0", Termination.ADJUDICATED_RESIGN, Status.FINISHED)
    assert lost.plies == 4


def test_a_clock_charges_who_answers_for_itself() -> None:
    async def slow(turn: Turn) -> Decision:
        await asyncio.sleep(0.6 if turn.state.moves else 0.02)
        return await first_move(turn)

    control = TimeControl(0.5)
    record, moves = referee(Player("a", slow, kind="uci"), Player("b"), time_control=control)
    assert end(record) == ("0-1", Termination.TIME, Status.FINISHED)
    assert moves[0].clock_s is not None
    assert 0 < moves[0].clock_s < 0.5
    ours, _ = referee(Player("a", slow, kind="llm"), Player("b"), time_control=control, max_plies=4)
    assert ours.termination == Termination.CUT_SHORT


def test_a_wait_for_a_place_of_ours_is_not_charged() -> None:
    async def waits(turn: Turn) -> Decision:
        await asyncio.sleep(0.06)
        said = Attempt(1, "move", timing=Timing(0.06, queue=0.05))
        return Decision("move", turn.state.legal_moves()[0], attempts=(said,))

    record, moves = referee(
        Player("a", waits, kind="uci"), Player("b"), time_control=TimeControl(60), max_plies=1
    )
    assert record.termination == Termination.CUT_SHORT
    assert moves[0].seconds >= 0.06, "the record keeps the wall time"
    assert moves[0].clock_s == pytest.approx(60 - (moves[0].seconds - 0.05))


def test_a_local_model_pays_by_counted_tokens() -> None:
    async def talks(turn: Turn) -> Decision:
        said = Attempt(1, "move", usage=Usage(completion=4))
        return Decision("move", turn.state.legal_moves()[0], attempts=(said,))

    record, moves = referee(
        Player("a", talks, kind="llm"), Player("b"), time_control=TimeControl(1.0), token_s=0.1
    )
    assert end(record) == ("0-1", Termination.TIME, Status.FINISHED)
    assert [move.clock_s for move in moves if move.player == "a"] == pytest.approx([0.6, 0.2])


def test_cancelling_leaves_both_agents() -> None:
    async def scenario() -> None:
        start = get_game("chess").start()
        asked = asyncio.Event()

        async def waits(turn: Turn) -> Decision:
            asked.set()
            return await never(turn)

        players = (Player("a"), Player("b", waits))
        slot = Slot(1, "chess", start.rules, "a", "b", pair=1)

        async def on_move(move: MoveRecord) -> None: ...

        game = asyncio.create_task(match.play("g", slot, start, players, Limits(), 1, on_move))
        await asked.wait()
        game.cancel()
        with pytest.raises(asyncio.CancelledError):
            await game
        assert not players[0].open_games | players[1].open_games

    asyncio.run(scenario())


def test_a_game_that_is_over_at_its_start_asks_nobody() -> None:
    white = Player("w")
    record, _ = referee(white, Player("b"), fen="7k/5Q2/6K1/8/8/8/8/8 b - - 0 1")
    assert end(record) == ("1/2-1/2", "stalemate", Status.FINISHED)
    assert white.turns == []


def test_a_faulty_writer_is_not_the_agents_fault() -> None:
    async def scenario() -> None:
        start = get_game("chess").start()
        slot = Slot(1, "chess", start.rules, "a", "b", pair=1)

        async def full(move: MoveRecord) -> None:
            raise OSError("disk is full")

        with pytest.raises(OSError, match="disk is full"):
            await match.play("g", slot, start, (Player("a"), Player("b")), Limits(), 1, full)

    asyncio.run(scenario())
