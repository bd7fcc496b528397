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
                asked.append((messages, f"{number}", len(tokenizer.encode_prompt(sent))))
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


def test_a_game_whose_prompts_stop_growing_is_cut() -> None:
    """From 100 tokens on, of which no more than 150 are read."""

    def asked(size: int) -> tuple[Message, ...]:
        return said("rules", "UCI\n" + "x" * (size - 9))

    gauge = PromptGauge(0.25)
    assert gauge.expected(asked(400), "1", 100) is None
    first = next(size for size in range(420, 900, 20) if gauge.expected(asked(size), "1", 150))
    assert first == 680, "where it is three quarters of 50 short of prose"
    assert gauge.expected(asked(400 + GROWN - 1), "1", 104) is None, "too little to tell"
    assert gauge.expected(asked(400 + GROWN), "1", 104) is not None
    assert gauge.expected(asked(660), "2", 150) is None, "another game"


def test_answers_in_the_conversation_may_be_of_any_density() -> None:
    gauge = PromptGauge(0.25)
    asked = said("rules", "x" * 395)
    assert gauge.expected(asked, "1", 120) is None
    talk = (*asked, Message("assistant", " " * 4000), Message("user", "again"))
    assert gauge.expected(talk, "1", 130) is None
