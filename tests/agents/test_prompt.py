"""Prompts: what they say, that they only grow, and that nothing in them varies by chance."""

import random
from itertools import pairwise

import pytest

from agents.prompt import PromptReport, get_template, move_texts, render_prompt, report
from agents.templates import LANGUAGES, TEMPLATES
from games.base import GameState, Move
from tests.agents.kit import position


def walk(game: str, plies: int, seed: int = 1) -> list[GameState]:
    states = [position(game)]
    rng = random.Random(seed)
    while len(states) <= plies and states[-1].outcome() is None:
        states.append(states[-1].apply(rng.choice(states[-1].legal_moves())))
    return states


def stable(text: str) -> str:
    """A user message up to the end of its moves."""
    return text[: text.index("\n", text.index(": ", text.index("\n")))]


def test_the_default_prompt_word_for_word() -> None:
    prompt = render_prompt("history", position("chess", "e2e4", "e7e5"), plies_left=38)
    system, user = prompt.messages
    assert system.role == "system"
    assert "Black" not in system.content
    assert user.content == (
        "Write moves in UCI, such as e2e4.\n"
        "Moves: e2e4 e7e5\n"
        "You are White. Points: White 39, Black 39. 38 plies left. Your move:"
    )
    assert prompt.template == "history@1"


@pytest.mark.parametrize("game", ["chess", "janggi"])
@pytest.mark.parametrize("name", list(TEMPLATES))
def test_a_prompt_only_grows_up_to_its_tail(name: str, game: str) -> None:
    states = walk(game, 30)
    prompts = [render_prompt(name, state, plies_left=60) for state in states]
    assert len({prompt.messages[0] for prompt in prompts}) == 1
    for earlier, later in pairwise(prompts[1:]):
        assert later.messages[1].content.startswith(stable(earlier.messages[1].content))


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_modes_sides_and_notations_share_the_system_message(game: str) -> None:
    first, second = walk(game, 1)
    notations = first.game.notations
    systems = {
        render_prompt(name, state, notation=notation).messages[0]
        for name in ("history", "fen", "board")
        for state in (first, second)
        for notation in notations
    }
    assert len(systems) == 1


@pytest.mark.parametrize("code", list(LANGUAGES))
def test_the_notation_lists_history_and_legal_moves(code: str) -> None:
    name = "fen" if code == "en" else f"fen-{code}"
    chess = render_prompt(name, position("chess", "g1f3"), notation="san").messages[1].content
    assert ": Nf3\n" in chess
    assert " Nf6" in chess
    janggi = render_prompt(name, position("janggi", "i4h4"), notation="korean").messages[1].content
    assert ": 79졸78\n" in janggi
    assert " 41병42" in janggi


def test_what_the_state_says_is_said() -> None:
    checked = position("chess", fen="4k3/8/8/8/8/8/8/K3R3 b - - 97 80")
    said = render_prompt("fen", checked, plies_left=9, draw_offered=True).messages[1].content
    for words in (
        "You are in check.",
        "Points: White 5, Black 0.",
        "3 plies until the game ends",
        "9 plies left.",
        "Your opponent offers a draw.",
        "Position (FEN): 4k3/",
        "Start position: 4k3/",
    ):
        assert words in said
    shuffled = position("chess", "g1f3", "g8f6", "f3g1", "f6g8")
    assert "stood 2 times" in render_prompt("history", shuffled).messages[1].content


@pytest.mark.parametrize("code", list(LANGUAGES))
def test_what_the_policy_forbids_is_said_in_the_tail_alone(code: str) -> None:
    name = "history" if code == "en" else f"history-{code}"
    free = render_prompt(name, position("chess"))
    held = render_prompt(name, position("chess"), may_resign=False, may_offer_draw=False)
    words = LANGUAGES[code]
    assert held.messages[0] == free.messages[0]
    tail = f" {words.no_resign} {words.no_draw_offer} {words.ask}"
    assert held.messages[1].content.endswith(tail)
    assert held.messages[1].content.replace(tail, f" {words.ask}") == free.messages[1].content


def test_janggi_s_facts_are_said() -> None:
    facing = position("janggi", fen="4k4/9/9/9/9/9/9/9/4K4/R8 w - - 0 1")
    said = render_prompt("history", facing).messages[1].content
    assert "Points: Cho 13, Han 1.5." in said
    assert "bikjang" in said
    assert "Passing now ends the game and you win." in said
    passed = render_prompt("history", position("janggi", "e2e2")).messages[1].content
    assert "Your opponent passed." in passed
    assert "Passing now ends the game and you win." in passed  # Han has the deom
    assert "200 plies left." in render_prompt("history", position("janggi")).messages[1].content
    checked = position("janggi", fen="3k5/9/3R5/9/9/9/9/9/9/5K3 b - - 0 1")
    assert "You may not pass." in render_prompt("history", checked).messages[1].content


def test_a_history_in_san_is_replayed_only_where_it_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = walk("chess", 20, seed=99)
    move_texts(states[-2], "san")
    calls: list[str] = []
    kind = type(states[0])
    real = kind.format_move

    def counted(state: GameState, move: Move, notation: str = "uci") -> str:
        calls.append(move.uci)
        return real(state, move, notation)

    monkeypatch.setattr(kind, "format_move", counted)
    assert len(move_texts(states[-1], "san")) == len(states) - 1
    assert len(calls) == 1


def test_hashes_change_with_what_they_cover() -> None:
    one = render_prompt("history", position("chess"))
    two = render_prompt("history", position("chess", "e2e4"))
    assert one.hash == render_prompt("history", position("chess")).hash
    assert one.hash != two.hash
    assert one.template_hash == two.template_hash
    assert len({template.hash for template in TEMPLATES.values()}) == len(TEMPLATES)


def test_a_retry_extends_the_conversation() -> None:
    prompt = render_prompt("history", position("chess"))
    longer = prompt.extended("e2e5", "not legal")
    assert longer.messages[:2] == prompt.messages
    assert [message.role for message in longer.messages[2:]] == ["assistant", "user"]


def test_what_is_unknown_is_named() -> None:
    with pytest.raises(ValueError, match=r"unknown template 'histry' \(did you mean 'history'"):
        get_template("histry")
    with pytest.raises(ValueError, match="chess has no notation 'korean': it has uci, san"):
        render_prompt("history", position("chess"), notation="korean")


def test_a_report_counts_what_is_shared_and_keeps_the_last_token_fresh() -> None:
    assert report((1, 2, 3), (1, 2, 4, 5)) == PromptReport(4, 2)
    assert report((1, 2), (1, 2)) == PromptReport(2, 1)
    assert report((), (1, 2)).fresh == 2
