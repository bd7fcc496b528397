"""What follows a failed answer."""

import pytest
from pydantic import ValidationError

from agents.base import Attempt, Usage
from agents.policy import Policy, retry_text

from .kit import position, turn

ILLEGAL = Attempt(1, "illegal", answer="I say e2e5!", span=(6, 10), usage=Usage(completion=10))
EMPTY = Attempt(2, "empty", usage=Usage(completion=5))


def test_attempts_are_bounded_and_the_last_failure_is_the_reason() -> None:
    policy = Policy(attempts=2)
    assert policy.stop(()) is None
    assert policy.stop((ILLEGAL,)) is None
    assert policy.stop((ILLEGAL, EMPTY)) == "empty"


def test_tokens_and_seconds_are_budgets() -> None:
    assert Policy(tokens=10).stop((ILLEGAL,)) == "budget"
    assert Policy(tokens=11).stop((ILLEGAL,)) is None
    assert Policy(seconds=2.0).stop((ILLEGAL,), 2.5) == "budget"
    assert Policy(seconds=2.0).stop((ILLEGAL,), 1.5) is None


def test_a_resignation_that_is_not_allowed_is_no_move() -> None:
    policy = Policy(attempts=1, allow_resign=False)
    assert not policy.allows("resign")
    assert policy.allows("draw_offer")
    assert policy.allows("move")
    assert policy.stop((Attempt(1, "resign"),)) == "unparsable"


def test_the_end_is_a_forfeit_or_a_marked_legal_move() -> None:
    asked = turn(position("chess"))
    lost = Policy().end(asked, (ILLEGAL, EMPTY), "empty")
    assert (lost.kind, lost.reason, lost.detail) == ("forfeit", "empty", "empty after 2 attempts")
    drawn = Policy(then="random_move").end(asked, (ILLEGAL,), "illegal")
    assert drawn.random_move
    assert drawn.move in asked.state.legal_moves()
    assert drawn == Policy(then="random_move").end(asked, (ILLEGAL,), "illegal")
    other = turn(position("chess"), seed=8)
    assert drawn.move != Policy(then="random_move").end(other, (ILLEGAL,), "illegal").move


def test_a_policy_is_frozen_and_survives_its_stored_form() -> None:
    policy = Policy(tokens=99, then="random_move")
    assert Policy.model_validate_json(policy.model_dump_json()) == policy
    with pytest.raises(ValidationError):
        policy.attempts = 5


def test_the_retry_says_what_was_wrong_and_lists_what_was_refused() -> None:
    second = Attempt(2, "ambiguous", answer="Rd1", span=(0, 3), detail="a1d1, f1d1")
    assert retry_text((ILLEGAL,)) == (
        "e2e5 is not legal in this position. Already refused: e2e5. "
        "Answer again with one legal move."
    )
    assert retry_text((ILLEGAL, second)) == (
        "Rd1 fits several moves: a1d1, f1d1. Name one of them. Already refused: e2e5, Rd1. "
        "Answer again with one legal move."
    )


@pytest.mark.parametrize("language", ["en", "ko", "es"])
def test_every_failure_has_its_own_text(language: str) -> None:
    kinds = ("unparsable", "illegal", "ambiguous", "truncated", "empty", "refused", "resign")
    attempts = [Attempt(1, kind, answer="x" * 500) for kind in kinds]  # type: ignore[arg-type]
    texts = {retry_text((attempt,), language) for attempt in attempts}
    assert len(texts) == len(kinds)
    assert all(len(text) < 400 and "{" not in text for text in texts)


def test_a_flood_of_refusals_stays_short() -> None:
    attempts = [Attempt(n, "illegal", answer=f"a{n}" * 900) for n in range(1, 20)]
    assert len(retry_text(attempts)) < 1_200
