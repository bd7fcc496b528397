"""What `games.base` promises, held against chess, janggi and a third game alike."""

import pytest

from games.base import Game, GameError, IllegalMove, Move, Outcome, describe
from games.perft import divide, perft
from games.registry import GAMES, get_game
from tests.games.positions import random_game
from tests.games.tictactoe import TICTACTOE

ALL: tuple[Game, ...] = (*GAMES.values(), TICTACTOE)
CASES = [(game, rules) for game in ALL for rules in game.rule_sets]
pytestmark = pytest.mark.parametrize(
    ("game", "rules"), CASES, ids=[f"{game.name}-{rules}" for game, rules in CASES]
)


def test_a_state_never_changes(game: Game, rules: str) -> None:
    start = game.start(rules=rules)
    before = (start.fen(), start.legal_moves(), start.moves, start.turn, dict(start.facts()))
    for move in start.legal_moves():
        after = start.apply(move)
        assert after is not start
        assert after.moves == (move,)
        assert after.turn == 1
        assert after.start_fen == start.fen()
    now = (start.fen(), start.legal_moves(), start.moves, start.turn, dict(start.facts()))
    assert now == before


def test_moves_are_sorted_unique_and_only_they_are_taken(game: Game, rules: str) -> None:
    for state in random_game(game, 3, 12, rules):
        names = [move.uci for move in state.legal_moves()]
        assert names == sorted(set(names))
    state = game.start(rules=rules)
    for wrong in ("", "zz", "a1a1", "0000", "e9e1", "a1" * 40, "ﬀ"):
        with pytest.raises(IllegalMove) as caught:
            state.apply(Move(wrong))
        assert caught.value.text == wrong
        assert caught.value.position == state.fen()


def test_every_notation_reads_what_it_writes(game: Game, rules: str) -> None:
    for seed in range(2):
        for state in random_game(game, seed, 60, rules):
            for notation in game.notations:
                for move in state.legal_moves()[::5]:
                    text = state.format_move(move, notation)
                    assert state.parse_move(text, notation) == move
    assert game.notations[0] == "uci"


def test_unknown_names_are_refused_with_the_known_ones(game: Game, rules: str) -> None:
    state = game.start(rules=rules)
    move = state.legal_moves()[0]
    with pytest.raises(ValueError, match="smoke"):
        state.parse_move(move.uci, "smoke")
    with pytest.raises(ValueError, match="smoke"):
        state.format_move(move, "smoke")
    with pytest.raises(ValueError, match="smoke"):
        state.board_text("smoke")
    with pytest.raises(ValueError, match="smoke"):
        game.start(rules="smoke")
    with pytest.raises(ValueError, match="smoke"):
        game.start(setup="smoke")


def test_facts_and_boards_are_there_all_along(game: Game, rules: str) -> None:
    for state in random_game(game, 5, 80, rules):
        facts = state.facts()
        assert facts["check"] is state.is_check()
        assert (facts["points_first"], facts["points_second"]) == state.material()
        assert isinstance(facts["repetitions"], int)
        assert facts["repetitions"] >= 1
        for style in game.board_styles:
            assert state.board_text(style)
        with pytest.raises(ValueError, match=r"position|FEN|nine"):
            game.start(rules=rules, fen="rubbish")


def test_a_fen_gives_the_same_moves_back(game: Game, rules: str) -> None:
    for state in random_game(game, 8, 30, rules):
        again = game.start(rules=rules, fen=state.fen())
        assert again.fen() == state.fen()
        assert again.turn == state.turn
        if rules.startswith("forced") or game.name == "tictactoe":
            assert again.legal_moves() == state.legal_moves()


def test_every_end_has_a_sentence_with_its_sides(game: Game, rules: str) -> None:
    for termination in game.terminations:
        for winner in (0, 1, None):
            sentence = describe(game, Outcome(winner, termination))
            assert "{" not in sentence
    for seed in range(3):
        *_, last = random_game(game, seed, 250, rules)
        outcome = last.outcome()
        if outcome is not None:
            assert outcome.termination in game.terminations


def test_perft_counts_what_divide_divides(game: Game, rules: str) -> None:
    state = game.start(rules=rules)
    assert perft(state, 0) == 1
    assert divide(state, 0) == {}
    parts = divide(state, 2)
    assert list(parts) == [move.uci for move in state.legal_moves()]
    assert sum(parts.values()) == perft(state, 2)
    with pytest.raises(ValueError, match="-1"):
        perft(state, -1)


def test_engine_variants_and_descriptions(game: Game, rules: str) -> None:
    variant, exact = game.uci_variant(rules)
    assert variant.isalnum()
    assert isinstance(exact, bool)
    assert len(game.rule_sets[rules]) > 10
    assert len(game.sides) == 2


def test_errors_are_one_family(game: Game, rules: str) -> None:
    with pytest.raises(GameError) as caught:
        game.start(rules=rules).parse_move("no such move")
    assert caught.value.text == "no such move"
    assert caught.value.position


def test_the_registry_names_its_games(game: Game, rules: str) -> None:
    if game.name in GAMES:
        assert get_game(game.name) is game
    else:
        with pytest.raises(ValueError, match="chess, janggi"):
            get_game(game.name)
