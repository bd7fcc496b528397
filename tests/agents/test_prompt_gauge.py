"""The gauge of cut prompts: real prompts by a real tokenizer, whole and cut."""

import random
from pathlib import Path

import pytest

from agents.local import load_tokenizer
from agents.prompt import Message, render_prompt
from agents.prompt_gauge import GROWN, PromptGauge
from agents.templates import TEMPLATES

from .test_prompt import walk

FLOOR = 0.232  # tokens a byte of English prose, as SmolLM2's tokenizer counts it


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_whole_prompts_pass_in_any_order(smollm2_dir: Path, game: str) -> None:
    tokenizer = load_tokenizer(str(smollm2_dir))
    asked = []
    for number in range(2):
        for ply, state in enumerate(walk(game, 90, seed=number)[::15]):
            for name in TEMPLATES:
                notation = state.game.notations[ply % len(state.game.notations)]
                messages = render_prompt(name, state, notation=notation).messages
                sent = [{"role": m.role, "content": m.content} for m in messages]
                course = f"{number} {name} {notation}"
                asked.append((messages, course, len(tokenizer.encode_prompt(sent))))
    for seed in range(20):
        random.Random(seed).shuffle(asked)
        gauge = PromptGauge(FLOOR)
        cut = [one[2] for one in asked if gauge.expected(*one) is not None]
        assert cut == [], seed


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message("user", text) for text in texts)


def test_a_prompt_of_fewer_tokens_than_prose_is_cut() -> None:
    gauge = PromptGauge(0.25)
    text = said("x" * 1000)
    assert gauge.expected(text, "", 250) is None
    assert gauge.expected(text, "", 188) is None
    assert gauge.expected(text, "", 187) == 250
    assert gauge.expected(text, "", 0) is None  # nothing was reported
    assert gauge.expected((), "", 9) is None


def test_the_shortest_of_a_kind_raises_the_bar_for_longer_ones() -> None:
    gauge = PromptGauge(0.25)
    assert gauge.expected(said("rules", "UCI\n" + "x" * 391), "", 200) is None
    assert gauge.expected(said("rules", "UCI\n" + "x" * 791), "", 299) == 400
    assert gauge.expected(said("rules", "SAN\n" + "x" * 791), "", 299) is None, "another kind"
    assert gauge.expected(said("rules", "UCI\n" + "x" * 191), "", 60) is None, "a shorter one"


@pytest.mark.parametrize("game", ["chess", "janggi"])
@pytest.mark.parametrize("name", ["history", "position-es", "fen", "board"])
def test_no_whole_game_is_called_cut_and_a_cut_one_is_seen(
    smollm2_dir: Path, game: str, name: str
) -> None:
    """Ply after ply; a cut that comes after some growth is seen before three tenths are lost."""
    tokenizer = load_tokenizer(str(smollm2_dir))
    prompts = []
    for state in walk(game, 200)[::4]:
        messages = render_prompt(name, state, plies_left=400).messages
        sent = [{"role": m.role, "content": m.content} for m in messages]
        prompts.append((messages, len(tokenizer.encode_prompt(sent))))
    whole = PromptGauge(FLOOR)
    assert not [1 for messages, tokens in prompts if whole.expected(messages, "1", tokens)]
    sizes = [sum(len(m.content.encode()) for m in messages) for messages, _ in prompts]
    grown = next(i for i, size in enumerate(sizes) if size >= sizes[0] + GROWN + 30)
    limit, gauge = prompts[grown][1], PromptGauge(FLOOR)
    assert limit < 0.7 * prompts[-1][1]
    seen = next(n for m, n in prompts if gauge.expected(m, "1", min(n, limit)) is not None)
    assert 0.7 < limit / seen < 1


def test_a_game_whose_prompts_stop_growing_is_cut() -> None:
    """Growth of one token a byte; no more than 300 tokens are read."""

    def asked(size: int) -> tuple[Message, ...]:
        return said("rules", "UCI\n" + "x" * (size - 9))

    gauge = PromptGauge(0.25)
    found = None
    for size in range(400, 900, 20):
        whole = 100 + (size - 400)
        if found := gauge.expected(asked(size), "1", min(whole, 300)):
            break
    assert found == whole == 420, "where 300 are under three quarters"
    other = PromptGauge(0.25)
    assert other.expected(asked(400), "1", 100) is None
    assert other.expected(asked(400 + GROWN - 1), "1", 103) is None, "too little to tell"
    assert other.expected(asked(400 + GROWN), "2", 104) is None, "another game"
    assert other.expected(asked(400 + GROWN), "1", 400) is None


def test_answers_in_the_conversation_may_be_of_any_density() -> None:
    gauge = PromptGauge(0.25)
    asked = said("rules", "x" * 395)
    assert gauge.expected(asked, "1", 120) is None
    talk = (*asked, Message("assistant", " " * 4000), Message("user", "again"))
    assert gauge.expected(talk, "1", 130) is None
