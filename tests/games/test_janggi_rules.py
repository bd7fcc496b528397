"""Every field of `JanggiRules`: a rule set that has it beside one that has not, and the order."""

from dataclasses import replace

import pytest

from games.base import IllegalMove
from games.janggi import JANGGI, PRESETS, JanggiGame, JanggiRules, JanggiState
from tests.games.positions import ends, janggi, play, uci, with_rules

FACING = "4k4/9/9/9/4P4/9/9/9/4K4/9 w"
PLAIN = JanggiRules("for a test")


def game(**changes: object) -> JanggiGame:
    return JanggiGame({"test": replace(PLAIN, **changes)})  # type: ignore[arg-type]


def shuffled(rules: str, times: int, extra: str = "") -> JanggiState:
    return janggi("", "a4b4 i7h7 b4a4 h7i7 " * times + extra, rules)


@pytest.mark.parametrize(
    ("rules", "end"),
    [
        ("fairy", ("bikjang_points", "1-0")),
        ("kja", ("bikjang_points", "1-0")),
        ("casual", ("bikjang_draw", "1/2-1/2")),
        ("kakao", None),
        ("fsf-janggi", ("bikjang_points", "1-0")),
        ("fsf-janggitraditional", ("bikjang_draw", "1/2-1/2")),
        ("fsf-janggimodern", None),
        ("fsf-janggicasual", None),
    ],
)
def test_bikjang(rules: str, end: tuple[str, str] | None) -> None:
    assert ends(janggi(FACING, "e6d6", rules)) is None
    assert ends(janggi(FACING, "e6d6 e10e10", rules)) == end
    if end is not None:
        assert uci(janggi(FACING, "e6d6 e10e10", rules)) == []


def test_equal_material_is_hans_by_the_deom() -> None:
    fen = "4k4/9/9/9/4P4/9/9/9/4K4/3p5 w"
    assert ends(janggi(fen, "e6d6 e10e10", "fairy")) == ("bikjang_points", "0-1")


def test_bikjang_below_points() -> None:
    opened = "e4d4 e7d7"
    assert janggi("", opened, "fairy").facts()["bikjang"] is True
    assert len(uci(janggi("", opened, "fairy"))) == 8
    gated = janggi("", opened, "kja")
    assert gated.facts()["generals_facing"] is True
    assert gated.facts()["bikjang"] is False
    assert len(uci(gated)) == 32
    assert ends(janggi("", opened + " e2e2", "fairy")) == ("bikjang_points", "0-1")
    assert ends(janggi("", opened + " e2e2", "kja")) is None


def test_the_gate_counts_the_deom() -> None:
    # Han 28 on the board: 29.5 with the deom is below 30; a guard more and it is not.
    below = "r3k1n1b/9/9/9/4P4/9/9/9/4K4/p2p2p2 w"
    at = "r3k1n1b/9/9/9/4P4/9/9/9/4K4/p2p2p1p w"
    assert janggi(below, "e6d6", "kja").material() == (2.0, 28.5)
    assert janggi(below, "e6d6", "kja").facts()["bikjang"] is True
    assert janggi(at, "e6d6", "kja").material() == (2.0, 30.5)
    assert janggi(at, "e6d6", "kja").facts()["bikjang"] is False


def test_bikjang_from_a_generals_capture() -> None:
    fen = "r2k1ab1r/9/2n3n2/9/9/9/9/3pK4/9/RR7 w"
    by_general = janggi(fen, "e3d3", "kja")
    assert by_general.facts()["bikjang"] is True
    assert ends(play(by_general, ["d10d10"])) == ("bikjang_points", "0-1")
    quiet = janggi("r2k1ab1r/9/2n3n2/9/9/9/9/4K4/9/RR7 w", "e3d3", "kja")
    assert quiet.facts()["generals_facing"] is True
    assert quiet.facts()["bikjang"] is False


def test_whoever_moves_without_parting_the_generals_is_refused() -> None:
    with pytest.raises(IllegalMove):
        janggi(FACING, "e6d6 e10e9", "fairy")
    assert ends(janggi(FACING, "e6d6 e10e9", "kakao")) is None


@pytest.mark.parametrize(
    ("rules", "end"),
    [
        ("fairy", ("double_pass_points", "0-1")),
        ("kja", ("double_pass_points", "0-1")),
        ("kakao", ("double_pass_points", "0-1")),
        ("casual", ("double_pass_draw", "1/2-1/2")),
        ("fsf-janggi", ("double_pass_points", "0-1")),
        ("fsf-janggitraditional", ("double_pass_draw", "1/2-1/2")),
        ("fsf-janggimodern", ("double_pass_points", "0-1")),
        ("fsf-janggicasual", ("double_pass_draw", "1/2-1/2")),
    ],
)
def test_double_pass(rules: str, end: tuple[str, str]) -> None:
    assert ends(janggi("", "e2e2", rules)) is None
    ended = janggi("", "e2e2 e9e9", rules)
    assert ends(ended) == end
    assert uci(ended) == []
    assert ends(janggi("", "e2e2 a7b7 e2e2 e9e9", rules)) == end
    assert ends(janggi("", "e2e2 a7b7 e2e2 a10a9", rules)) is None


def test_points_need_two_more_for_cho() -> None:
    two = "4k4/9/9/9/4P4/9/9/9/3K5/9 w"
    one = "3ak4/9/9/9/4P4/4P4/9/9/3K5/9 w"
    assert ends(janggi(two, "d2d2 e10e10", "fairy")) == ("double_pass_points", "1-0")
    assert ends(janggi(one, "d2d2 e10e10", "fairy")) == ("double_pass_points", "0-1")
    without = with_rules(game(deom=0.0), one, "d2d2 e10e10")
    assert ends(without) == ("double_pass_points", "1-0")
    level = with_rules(game(deom=0.0), "", "e2e2 e9e9")
    assert ends(level) == ("double_pass_draw", "1/2-1/2")


@pytest.mark.parametrize(
    ("rules", "end"),
    [
        ("fairy", ("repetition_points", "0-1")),
        ("casual", ("repetition_draw", "1/2-1/2")),
        ("kakao", None),
        ("fsf-janggi", ("repetition_points", "0-1")),
        ("fsf-janggitraditional", ("repetition_draw", "1/2-1/2")),
        ("fsf-janggimodern", None),
        ("fsf-janggicasual", ("repetition_draw", "1/2-1/2")),
    ],
)
def test_third_occurrence(rules: str, end: tuple[str, str] | None) -> None:
    assert ends(shuffled(rules, 1)) is None
    assert shuffled(rules, 1).facts()["repetitions"] == 2
    assert ends(shuffled(rules, 2)) == end
    assert shuffled(rules, 2).facts()["repetitions"] == 3


@pytest.mark.parametrize("rules", ["kakao", "fsf-janggimodern"])
def test_shuffling_loses_at_the_fifth_move(rules: str) -> None:
    assert ends(shuffled(rules, 2)) is None
    assert ends(shuffled(rules, 2, "a4b4")) == ("repetition_loss", "0-1")


def test_shuffling_is_about_moves_not_positions() -> None:
    # Cho goes to and fro five times while Han does something else each time.
    moves = "a4b4 a7b7 b4a4 c7d7 a4b4 e7f7 b4a4 g7h7 a4b4"
    assert ends(janggi("", moves, "kakao")) == ("repetition_loss", "0-1")
    assert ends(janggi("", moves, "fairy")) is None
    # A pass before the fifth move is let through, with one move more.
    passed = "a4b4 a7b7 b4a4 c7d7 a4b4 e7f7 b4a4 g7h7 e2e2 i7i6 a4b4"
    assert ends(janggi("", passed, "kakao")) == ("repetition_loss", "0-1")
    # The general and the guards may go to and fro.
    guard = "d1d2 a7b7 d2d1 c7d7 d1d2 e7f7 d2d1 g7h7 d1d2"
    assert ends(janggi("", guard, "kakao")) is None


def test_shuffling_is_broken_by_a_capture_or_a_check() -> None:
    fen = "3k5/9/9/p8/9/9/9/9/4K4/R8 w"
    moves = "a1a2 d10e10 a2a1 e10d10 a1a2 d10e10 a2a1 e10d10 a1a2"
    assert ends(janggi(fen, moves, "kakao")) == ("repetition_loss", "0-1")
    taking = "a1a7 d10e10 a7a6 e10d10 a6a7 d10e10 a7a6 e10d10 a6a7"
    assert ends(janggi(fen, taking, "kakao")) is None


def test_repetition_lost_by_its_maker() -> None:
    lost = game(repetition="lose", repetition_count=2)
    moves = "a4b4 i7h7 b4a4 h7i7"
    assert ends(with_rules(lost, "", moves)) == ("repetition_loss", "1-0")


def test_the_fourth_occurrence_without_shuffling() -> None:
    guards = "d1d2 d10d9 d2d1 d9d10 "
    assert ends(janggi("", guards * 3, "kakao")) == ("repetition_loss", "1-0")
    assert ends(janggi("", guards * 3, "fsf-janggimodern")) == ("repetition_points", "0-1")
    assert ends(janggi("", guards * 2, "kakao")) is None


def test_forbidden_repetition() -> None:
    before = janggi("", "a4b4 i7h7 b4a4 h7i7 a4b4 i7h7 b4a4", "kja")
    assert "h7i7" not in uci(before)
    assert "h7h6" in uci(before)
    assert "h7i7" in uci(janggi("", "a4b4 i7h7 b4a4 h7i7 a4b4 i7h7 b4a4", "fairy"))
    with pytest.raises(IllegalMove):
        shuffled("kja", 2)


def test_forbidden_repetition_only_from_thirty_points() -> None:
    fen = "3k5/p8/9/9/9/9/9/9/4K4/9 w"
    low = janggi(fen, "e2f2 d10d9 f2e2 d9d10 e2f2 d10d9 f2e2 d9d10", "kja")
    assert low.facts()["repetitions"] == 3
    assert ends(low) is None
    high = with_rules(game(repetition="forbid"), fen, "e2f2 d10d9 f2e2 d9d10 e2f2 d10d9 f2e2")
    assert "d9d10" not in uci(high)


def test_a_forbidden_repetition_leaves_a_pass_and_every_answer_to_check() -> None:
    forbid = game(repetition="forbid", repetition_count=2)
    fen = "3k5/9/R8/9/9/9/9/9/4K4/9 w"
    state = with_rules(forbid, fen, "a8d8 d10e10 d8e8")
    assert state.is_check()
    assert "e10d10" in uci(state)
    again = play(state, ["e10d10"])
    assert "e8d8" not in uci(again)
    assert "e2e2" in uci(again)


CHECKS = "a8d8 d10e10 d8e8 e10d10 e8d8 d10e10 d8e8 e10d10 e8d8"


@pytest.mark.parametrize(
    ("rules", "end"),
    [
        ("fairy", ("perpetual_check_loss", "0-1")),
        ("casual", ("perpetual_check_loss", "0-1")),
        ("kakao", ("repetition_loss", "0-1")),
        ("fsf-janggimodern", ("repetition_loss", "0-1")),
        ("fsf-janggitraditional", ("perpetual_check_loss", "0-1")),
    ],
)
def test_perpetual_check(rules: str, end: tuple[str, str]) -> None:
    assert ends(janggi("3k5/9/R8/9/9/9/9/9/4K4/9 w", CHECKS, rules)) == end


def test_perpetual_check_can_be_left_alone() -> None:
    fen = "3k5/9/R8/9/9/9/9/9/4K4/9 w"
    assert ends(with_rules(game(perpetual_check=None), fen, CHECKS)) == ("repetition_points", "1-0")
    assert ends(with_rules(game(), fen, CHECKS)) == ("perpetual_check_loss", "0-1")


def test_perpetual_check_under_kja_is_a_repetition() -> None:
    fen = "3k1ar2/4a2nr/R8/9/9/9/9/9/4K4/CCNNRBB2 w"
    state = janggi(fen, "a8d8 d10e10 d8e8 e10d10 e8d8 d10e10 d8e8 e10d10", "kja")
    assert min(state.material()) >= 30
    assert "e8d8" not in uci(state)


@pytest.mark.parametrize(
    ("rules", "clock", "end"),
    [
        ("fairy", 99, ("no_capture_points", "1-0")),
        ("fairy", 98, None),
        ("casual", 99, ("no_capture_draw", "1/2-1/2")),
        ("kja", 500, None),
        ("kakao", 198, None),
        ("kakao", 199, ("no_capture_points", "1-0")),
        ("fsf-janggi", 99, ("no_capture_points", "1-0")),
        ("fsf-janggitraditional", 99, ("no_capture_draw", "1/2-1/2")),
        ("fsf-janggimodern", 99, None),
        ("fsf-janggimodern", 199, ("no_capture_points", "1-0")),
        ("fsf-janggicasual", 99, ("no_capture_draw", "1/2-1/2")),
    ],
)
def test_no_capture(rules: str, clock: int, end: tuple[str, str] | None) -> None:
    fen = f"3k5/9/R8/9/9/9/9/9/4K4/9 w - - {clock} 60"
    assert ends(janggi(fen, "a8b8", rules)) == end


def test_only_a_capture_resets_the_count() -> None:
    assert ends(janggi("3k5/9/R8/p8/9/9/9/9/4K4/9 w - - 99 60", "a8a7", "fairy")) is None
    soldier = janggi("3k5/9/9/9/P8/9/9/9/4K4/9 w - - 99 60", "a6a7", "fairy")
    assert ends(soldier) == ("no_capture_points", "1-0")


@pytest.mark.parametrize(
    ("rules", "end"),
    [
        ("fairy", "max_plies_points"),
        ("kja", "max_plies_points"),
        ("kakao", "max_plies_points"),
        ("casual", "max_plies_draw"),
        ("fsf-janggi", None),
    ],
)
def test_the_cap(rules: str, end: str | None) -> None:
    assert PRESETS[rules].max_plies == (None if end is None else 200)
    capped = JanggiGame({"test": replace(PRESETS[rules], max_plies=None if end is None else 4)})
    state = with_rules(capped, "", "a4b4 i7h7 c4d4")
    assert ends(state) is None
    assert state.facts()["plies_to_cap"] == (None if end is None else 1)
    last = play(state, ["g7f7"])
    assert (ends(last) or (None,))[0] == end
    assert last.facts()["plies_to_cap"] == (None if end is None else 0)
    assert uci(last)


def test_the_order_of_ends() -> None:
    every = game(max_plies=9, no_capture_plies=9, repetition_count=3)
    # Accepted bikjang before two passes, and both before everything else.
    passed = with_rules(game(bikjang="draw"), FACING, "e2e2 e10d10 e6d6 d10e10 e2e2")
    assert ends(passed) == ("bikjang_draw", "1/2-1/2")
    facing = with_rules(game(bikjang="draw"), "4k4/9/9/9/9/9/9/9/4K4/9 w", "e2e2")
    assert ends(facing) == ("bikjang_draw", "1/2-1/2")
    capped = with_rules(game(max_plies=2, no_capture_plies=1), "", "e2e2 e9e9")
    assert ends(capped) == ("double_pass_points", "0-1")
    # Mate before the count and the cap.
    mate = with_rules(
        game(max_plies=1, no_capture_plies=1), "3k5/R8/9/7R1/9/9/9/9/9/5K3 w", "h7h10"
    )
    assert ends(mate) == ("checkmate", "1-0")
    # Repetition (perpetual check first) before the no-capture count, that before the cap.
    checks = with_rules(every, "3k5/9/R8/9/9/9/9/9/4K4/9 w", CHECKS)
    assert ends(checks) == ("perpetual_check_loss", "0-1")
    cap = game(max_plies=8, no_capture_plies=8)
    assert ends(with_rules(cap, "", "a4b4 i7h7 b4a4 h7i7 " * 2)) == ("repetition_points", "0-1")
    assert ends(with_rules(game(max_plies=2, no_capture_plies=2), "", "a4b4 i7h7")) == (
        "no_capture_points",
        "0-1",
    )
    # Shuffling before the plain count.
    both = game(shuffle_loses=True, repetition="draw")
    assert ends(with_rules(both, "", "a4b4 i7h7 b4a4 h7i7 " * 2 + "a4b4")) == (
        "repetition_loss",
        "0-1",
    )


def test_what_a_pass_would_do() -> None:
    def effect(state: JanggiState) -> tuple[object, object]:
        return state.facts()["pass_effect"], state.facts()["pass_ends_by"]

    assert effect(janggi("", "", "fairy")) == ("continues", None)
    assert effect(janggi("", "e2e2", "fairy")) == ("wins", "double_pass_points")
    assert effect(janggi("", "a4b4 e9e9", "fairy")) == ("loses", "double_pass_points")
    assert effect(janggi("", "e2e2", "casual")) == ("draws", "double_pass_draw")
    assert effect(janggi("", "e4d4 e7d7", "fairy")) == ("loses", "bikjang_points")
    assert effect(janggi("3k5/9/3R5/9/9/9/9/9/9/5K3 b", "", "fairy")) == ("illegal", None)
    assert effect(janggi("", "e2e2 e9e9", "fairy")) == ("illegal", None)


def test_facts_of_passes_and_plies() -> None:
    facts = janggi("", "e2e2 a7b7 e2e2 a10a9 a4a5 e9e9", "fairy").facts()
    assert (facts["passes_first"], facts["passes_second"]) == (2, 1)
    assert facts["last_was_pass"] is True
    assert facts["plies"] == 6
    assert facts["plies_since_capture"] == 6
    assert facts["plies_to_cap"] == 194
    assert facts["plies_to_no_capture_end"] == 94
    black = janggi("4k4/9/9/9/4P4/9/9/9/3K5/9 b", "e10e10", "fairy").facts()
    assert (black["passes_first"], black["passes_second"]) == (0, 1)


def test_league_points_and_variants() -> None:
    assert PRESETS["fairy"].league == (7, 4, 2, 0)
    assert PRESETS["casual"].league is None
    assert next(iter(JANGGI.rule_sets)) == "fairy"
    assert JANGGI.rule_sets["fairy"] == (
        "Fairy-Stockfish janggi rules, 200-ply cap on points (ours)"
    )
    assert JANGGI.uci_variant("fairy") == ("janggi", False)
    assert JANGGI.uci_variant("fsf-janggimodern") == ("janggimodern", True)
    assert JANGGI.uci_variant("kakao") == ("janggimodern", False)
    assert JANGGI.uci_variant("casual") == ("janggitraditional", False)
    assert not any(
        word in sentence.lower()
        for sentence in JANGGI.rule_sets.values()
        for word in ("official", "tournament")
    )
