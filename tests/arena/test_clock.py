"""Time controls are read as fastchess reads them; a clock charges what it is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.clock import Clock, TimeControl, parse_tc


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10+0.1", TimeControl(10, 0.1)),
        ("40/60+0.6", TimeControl(60, 0.6, 40)),
        ("1:30", TimeControl(90)),
        ("40/1:30+0.3", TimeControl(90, 0.3, 40)),
        ("9.4+0.4", TimeControl(9.4, 0.4)),
        ("inf", None),
        ("infinite", None),
    ],
)
def test_grammar(text: str, expected: TimeControl | None) -> None:
    assert parse_tc(text) == expected


@pytest.mark.parametrize("text", ["", "0", "10+", "+1", "40/", "0/60", "1:2:3", "ten", "-5", "1e3"])
def test_what_is_no_time_control_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"try 10\+0\.1"):
        parse_tc(text)


def test_increment_is_added_after_the_move_and_the_flag_falls() -> None:
    clock = Clock(TimeControl(1.0, 0.5))
    assert clock.charge(0.75)
    assert clock.remaining == pytest.approx(0.75)
    assert not clock.charge(0.8)
    assert clock.remaining == 0.0


def test_moves_of_a_period_bring_new_time() -> None:
    clock = Clock(TimeControl(10, 0, moves=2))
    assert clock.charge(4)
    assert clock.remaining == 6
    assert clock.charge(4)
    assert clock.remaining == 12


def test_margin_forgives_but_gives_nothing() -> None:
    clock = Clock(TimeControl(1.0), margin_s=0.1)
    assert clock.charge(1.05)
    assert clock.remaining == 0.0
    assert not clock.charge(0.2)


@given(st.lists(st.floats(-1e9, 0), max_size=20))
def test_a_clock_that_goes_backwards_charges_nothing(times: list[float]) -> None:
    clock = Clock(TimeControl(1.0))
    assert all(clock.charge(seconds) for seconds in times)
    assert clock.remaining == 1.0
