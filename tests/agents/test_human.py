"""A person at the terminal: lines on a real pipe, and an event loop that goes on meanwhile."""

import asyncio
import io
import os
import threading
from typing import TextIO

import pytest

from agents.base import AgentError, Decision
from agents.human import HumanAgent
from agents.spec import HumanSpec
from games.registry import get_game

from .kit import position, turn


def play(typed: str, game: str = "chess", count: int = 1) -> tuple[list[Decision], str]:
    """The decisions of a person who types this, and what was shown."""
    shown = io.StringIO()

    async def ask() -> list[Decision]:
        agent = HumanAgent(HumanSpec(), typed=io.StringIO(typed), shown=shown)
        return [await agent.choose(turn(position(game))) for _ in range(count)]

    return asyncio.run(ask()), shown.getvalue()


def piped() -> tuple[TextIO, int]:
    """A terminal, and the end that somebody types at."""
    read, write = os.pipe()
    return os.fdopen(read), write


def hung_up(typed: TextIO, write: int) -> None:
    """End the input, and wait for the thread that reads it."""
    os.close(write)
    for thread in threading.enumerate():
        if thread.name == "stdin":
            thread.join(10)
    typed.close()


def test_any_form_of_a_move_is_read() -> None:
    decisions, shown = play("e4\ng1f3\nd2-d4\n", count=3)
    assert [decision.move and decision.move.uci for decision in decisions] == [
        "e2e4",
        "g1f3",
        "d2d4",
    ]
    assert "White to move:" in shown
    assert position("chess").board_text() in shown
    (decision,), shown = play("79졸78\n", "janggi")
    assert decision.kind == "move"
    assert "Cho to move" in shown


def test_what_cannot_be_read_is_said_and_asked_again() -> None:
    (decision,), shown = play("e5\n\nhello there\ne2e4\n")
    assert decision.move is not None
    assert "e5 is not legal in this position." in shown
    assert [attempt.kind for attempt in decision.attempts] == ["illegal", "unparsable", "move"]


def test_a_question_mark_lists_the_legal_moves() -> None:
    (decision,), shown = play("?\ne2e4\n")
    assert all(move.uci in shown for move in position("chess").legal_moves())
    assert len(decision.attempts) == 1


def test_resigning_offering_and_leaving() -> None:
    assert play("resign\n")[0][0].kind == "resign"
    offer, after = play("draw\ndraw\ne2e4\n", count=2)[0]
    assert (offer.kind, after.kind) == ("draw_offer", "move")
    (left,), _ = play("")
    assert (left.kind, left.reason) == ("forfeit", "crash")


def test_a_wrong_notation_is_refused_before_the_game() -> None:
    agent = HumanAgent(HumanSpec(notation="korean"), typed=io.StringIO(), shown=io.StringIO())
    with pytest.raises(AgentError, match="no notation 'korean'"):
        asyncio.run(agent.new_game("1", get_game("chess"), 0))


def test_waiting_for_a_person_stops_nobody_and_can_be_cancelled() -> None:
    typed, write = piped()

    async def wait() -> Decision:
        agent = HumanAgent(HumanSpec(), typed=typed, shown=io.StringIO())
        given_up = asyncio.create_task(agent.choose(turn(position("chess"))))
        for _ in range(100):
            await asyncio.sleep(0)  # the loop turns while nothing is typed
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        asked = asyncio.create_task(agent.choose(turn(position("chess"))))
        os.write(write, b"e2e4\n")
        return await asyncio.wait_for(asked, 20)

    decision = asyncio.run(wait())
    hung_up(typed, write)
    assert decision.move is not None


def test_another_game_at_this_terminal_is_queue_and_not_thinking() -> None:
    typed, write = piped()

    async def two() -> tuple[Decision, Decision]:
        agent = HumanAgent(HumanSpec(), typed=typed, shown=io.StringIO())
        asked = [asyncio.create_task(agent.choose(turn(position("chess")))) for _ in range(2)]
        await asyncio.sleep(0.1)
        os.write(write, b"e2e4\n")
        await asyncio.wait_for(asked[0], 20)
        os.write(write, b"d2d4\n")
        first, second = await asyncio.wait_for(asyncio.gather(*asked), 20)
        return first, second

    first, second = asyncio.run(two())
    hung_up(typed, write)
    waits = [d.attempts[-1].timing.queue or 0 for d in (first, second) if d.attempts[-1].timing]
    assert waits[1] >= 0.09
    assert waits[0] < waits[1]
