"""The set-up phase and the names of set-ups."""

import pytest

from games.janggi import JANGGI, PAIRS, SETUPS, SetupPhase, parse_pair, parse_setup, seeded_pair
from games.janggi.setup import korean_setup, start_fen


def test_han_chooses_first_and_cho_after_seeing_it() -> None:
    phase = SetupPhase()
    assert phase.to_choose == 1
    with pytest.raises(ValueError, match="Han chooses its set-up first"):
        phase.choose(0, "nbbn")
    seen = phase.choose(1, "bnnb")
    assert (seen.to_choose, seen.han, seen.cho) == (0, "bnnb", None)
    with pytest.raises(ValueError, match="neither may change"):
        seen.choose(1, "nbbn")
    with pytest.raises(ValueError, match="not chosen yet"):
        _ = seen.pair
    done = seen.choose(0, "nbnb")
    assert done.to_choose is None
    assert done.pair == "nbnb/bnnb"
    with pytest.raises(ValueError, match="neither may change"):
        done.choose(0, "nbbn")
    state = JANGGI.start(setup=done.pair)
    assert (
        state.fen() == "rbna1anbr/4k4/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/4K4/RNBA1ANBR w - - 0 1"
    )


def test_sixteen_pairs() -> None:
    assert len(PAIRS) == len(set(PAIRS)) == 16
    assert PAIRS[0] == "nbbn/nbbn"
    assert JANGGI.setups == PAIRS


@pytest.mark.parametrize(
    ("text", "setup"),
    [
        ("마상상마", "nbbn"),
        ("상마마상", "bnnb"),
        ("상마상마", "bnbn"),
        ("마상마상", "nbnb"),
        ("馬象象馬", "nbbn"),
        ("HEEH", "nbbn"),
        (" BNBN ", "bnbn"),
    ],
)
def test_names(text: str, setup: str) -> None:
    assert parse_setup(text) == setup
    assert parse_setup(korean_setup(setup)) == setup


@pytest.mark.parametrize("text", ["", "nnbb", "마상", "left elephant", "nbbn/nbbn", "n" * 1000])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nbbn, bnnb, bnbn, nbnb"):
        parse_setup(text)


def test_pairs_are_read_strictly() -> None:
    assert parse_pair("HEEH/상마마상") == ("nbbn", "bnnb")
    for text in ("nbbn", "nbbn/", "a/b/c"):
        with pytest.raises(ValueError, match="nbbn"):
            parse_pair(text)


def test_seeded_pairs_are_reproducible_and_even() -> None:
    drawn = [seeded_pair(seed) for seed in range(1600)]
    assert drawn == [seeded_pair(seed) for seed in range(1600)]
    assert all(60 < drawn.count(pair) < 145 for pair in PAIRS)


def test_every_start_has_its_letters() -> None:
    for cho in SETUPS:
        for han in SETUPS:
            board = start_fen(cho, han).split("/")
            assert board[-1].startswith(f"R{cho[:2].upper()}A1A{cho[2:].upper()}R")
            assert board[0] == f"r{han[:2]}a1a{han[2:]}r"
