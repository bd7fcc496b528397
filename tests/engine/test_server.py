"""The endpoint on the real model, asked by the real client, against the engine asked directly."""

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from engine.server_answer import Served
from engine.types import ChoiceScores, Completion, Request, SamplingParams

from .server_kit import assert_free, client, load, serving

MODEL = "smollm2-135m"
HELLO: list[Any] = [{"role": "user", "content": "Say hello."}]
KOREAN = "장기를 두자 👩‍👧. " * 5
REPLACEMENT = "\ufffd"


@pytest.fixture(scope="module")
def served(smollm2_dir: Path) -> Iterator[Served]:
    made = load(smollm2_dir, MODEL, kv_cache_memory_bytes=64 << 20, max_model_len=512)
    with made.engine:
        yield made
        assert_free(made.engine)


@pytest.fixture(scope="module")
def address(served: Served) -> Iterator[str]:
    with serving(served) as where:
        yield where


@pytest.fixture
def ai(address: str) -> Iterator[openai.OpenAI]:
    with client(address) as made:
        yield made


def direct(served: Served, prompt: Any, **params: Any) -> Completion:
    """What the engine says without a server."""
    tokens = (
        served.tokenizer.encode(prompt, add_bos=True)
        if isinstance(prompt, str)
        else served.tokenizer.encode_prompt(prompt)
    )
    return asyncio.run(served.engine.generate(Request("direct", tokens, SamplingParams(**params))))


def scored(served: Served, choices: list[str], terminator: Any = "none") -> ChoiceScores:
    tokenizer = served.tokenizer
    tokens = tokenizer.encode_choices(HELLO, choices, terminator)
    prompt = tokenizer.encode_prompt(HELLO)
    return asyncio.run(served.engine.score(prompt, tokens, terminator=terminator))


def chat(ai: openai.OpenAI, **more: Any) -> Any:
    return ai.chat.completions.create(**{"model": MODEL, "messages": HELLO, **more})


def streamed(ai: openai.OpenAI, **more: Any) -> tuple[list[str], Any, Any]:
    """The deltas of a streamed chat, its last choice, its usage."""
    deltas, last, usage = [], None, None
    options = {"include_usage": True}
    for chunk in chat(ai, stream=True, stream_options=options, **more):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            deltas.append(choice.delta.content or "")
            last = choice
    return deltas, last, usage


def test_answers_are_the_engines_streamed_and_not(served: Served, ai: openai.OpenAI) -> None:
    expected = direct(served, HELLO, max_tokens=8)
    answer = chat(ai, temperature=0, max_tokens=8)
    deltas, last, usage = streamed(ai, temperature=0, max_completion_tokens=8)
    assert expected.text == answer.choices[0].message.content == "".join(deltas)
    assert len([delta for delta in deltas if delta]) > 3, "it came in one piece"
    assert expected.finish_reason == answer.choices[0].finish_reason == last.finish_reason
    assert answer.usage.prompt_tokens == usage.prompt_tokens == expected.stats.prompt_tokens
    assert answer.usage.completion_tokens == usage.completion_tokens == 8
    assert usage.prompt_tokens_details.cached_tokens > 0
    assert (answer.model, answer.object) == (MODEL, "chat.completion")


def test_an_answer_that_ends_by_itself_says_stop(served: Served, ai: openai.OpenAI) -> None:
    messages = [*HELLO, {"role": "assistant", "content": "Hello!"}]
    messages += [{"role": "user", "content": "Reply with one word: yes."}]
    expected = direct(served, messages, max_tokens=40)
    answer = chat(ai, messages=messages, temperature=0, max_tokens=40, logprobs=True)
    assert expected.finish_reason == answer.choices[0].finish_reason == "stop"
    tokens = [entry.token for entry in answer.choices[0].logprobs.content]
    assert "".join(tokens) == answer.choices[0].message.content == expected.text


def test_a_seed_repeats_its_answer(served: Served, ai: openai.OpenAI) -> None:
    texts = [
        chat(ai, seed=seed, max_tokens=4, top_p=0.95).choices[0].message.content
        for seed in (7, 7, 8)
    ]
    assert texts[0] == texts[1] != texts[2]
    same = direct(served, HELLO, max_tokens=4, temperature=1.0, top_p=0.95, seed=7)
    assert texts[0] == same.text


def test_stop_strings_end_it_and_are_never_sent(served: Served, ai: openai.OpenAI) -> None:
    text = direct(served, HELLO, max_tokens=8).text
    stop = text[7:17]  # from inside a token into another
    answer = chat(ai, temperature=0, max_tokens=8, stop=stop).choices[0]
    deltas, last, _ = streamed(ai, temperature=0, max_tokens=8, stop=[stop, "never"])
    assert answer.message.content == "".join(deltas) == text[:7]
    assert answer.finish_reason == last.finish_reason == "stop"


def test_logprobs_add_up_to_the_score_of_the_text(served: Served, ai: openai.OpenAI) -> None:
    asked = {"temperature": 0, "max_tokens": 6, "logprobs": True, "top_logprobs": 3}
    answer = chat(ai, **asked).choices[0]
    entries = answer.logprobs.content
    assert "".join(entry.token for entry in entries) == answer.message.content
    data = b"".join(bytes(entry.bytes) for entry in entries)
    assert data.decode() == answer.message.content
    total = sum(entry.logprob for entry in entries)
    assert total == pytest.approx(scored(served, [answer.message.content]).logprobs[0], abs=1e-4)
    for entry in entries:
        top = [one.logprob for one in entry.top_logprobs]
        assert len(top) == 3
        assert top == sorted(top, reverse=True)
        assert top[0] == entry.logprob, "greedy takes the likeliest"
        assert sum(map(math.exp, top)) < 1
    _, last, _ = streamed(ai, **asked)
    assert [entry.logprob for entry in last.logprobs.content] == [e.logprob for e in entries]


@pytest.mark.parametrize("terminator", ["none", "eos"])
def test_choices_carry_their_probabilities(
    served: Served, ai: openai.OpenAI, terminator: str
) -> None:
    choices = ["Hello!", "Hello there", "안녕하세요", "e2e4"]
    expected = scored(served, choices, terminator)
    body = {"choices": choices, "terminator": terminator}
    answer = chat(ai, temperature=0, extra_body=body).choices[0]
    scores = answer.scores
    assert tuple(scores["logprobs"]) == expected.logprobs
    assert tuple(scores["probabilities"]) == expected.probabilities
    assert sum(scores["probabilities"]) == pytest.approx(1)
    assert scores["legal_mass"] == expected.legal_mass
    assert scores["legal_mass"] == pytest.approx(sum(map(math.exp, expected.logprobs)))
    assert scores["argmax"] == answer.message.content == choices[expected.argmax]
    assert scores["greedy"] == choices[expected.greedy]
    assert (scores["terminator"], answer.finish_reason) == (terminator, "stop")
    deltas, last, _ = streamed(ai, temperature=0, extra_body=body)
    assert ("".join(deltas), last.scores) == (answer.message.content, scores)


def test_a_draw_among_choices_follows_the_seed(served: Served, ai: openai.OpenAI) -> None:
    body = {"choices": ["Hello", "I", "Hi"]}
    drawn = [chat(ai, seed=i, extra_body=body).choices[0].message.content for i in range(6)]
    again = [chat(ai, seed=i, extra_body=body).choices[0].message.content for i in range(6)]
    assert drawn == again
    assert len(set(drawn)) > 1


def test_a_masked_walk_by_each_of_its_names(served: Served, ai: openai.OpenAI) -> None:
    choices = ["장기", "체스", "바둑", "장군"]
    tokens = served.tokenizer.encode_choices(HELLO, choices)
    request = Request("walk", served.tokenizer.encode_prompt(HELLO), choices=tokens)
    expected = choices[asyncio.run(served.engine.generate(request)).choice or 0]
    bodies: list[dict[str, object]] = [
        {"choices": choices, "mode": "walk"},
        {"structured_outputs": {"choice": choices}},
        {"guided_choice": choices},
    ]
    for body in bodies:
        answer = chat(ai, temperature=0, extra_body=body).choices[0]
        assert (answer.message.content, answer.finish_reason) == (expected, "stop")
        assert not hasattr(answer, "scores"), "a walk knows no probabilities"
        assert "".join(streamed(ai, temperature=0, extra_body=body)[0]) == expected


def test_korean_streams_whole(served: Served, ai: openai.OpenAI) -> None:
    """The model goes on with what it reads: Hangul, whose bytes its tokens split, and emoji."""
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(direct, served, KOREAN, max_tokens=32)
        pieces = ai.completions.create(
            model=MODEL, prompt=KOREAN, temperature=0, max_tokens=32, stream=True
        )
        texts = [chunk.choices[0].text for chunk in pieces]
        expected = waiting.result(60)
    text = "".join(texts)
    assert text == served.tokenizer.decode(expected.tokens)
    assert sum("가" <= char <= "힣" for char in text) > 4, "no Korean came"
    assert "👩" in text
    assert len([text for text in texts if text]) < len(expected.tokens), "no character was split"
    *early, last = [text for text in texts if text]
    assert REPLACEMENT not in "".join(early)
    assert REPLACEMENT not in last.rstrip(REPLACEMENT)


def test_plain_completions(served: Served, ai: openai.OpenAI) -> None:
    prompt = "The capital of France is"
    expected = direct(served, prompt, max_tokens=5, logprobs=1)
    body: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_tokens": 5, "logprobs": 2}
    answer = ai.completions.create(prompt=prompt, **body).choices[0]
    tokens = list(served.tokenizer.encode(prompt, add_bos=True))
    same = ai.completions.create(prompt=tokens, **body).choices[0]
    assert "Paris" in answer.text
    assert answer.text == same.text == expected.text
    found = answer.logprobs
    assert found is not None
    assert found.tokens is not None
    assert found.text_offset is not None
    assert "".join(found.tokens) == answer.text
    assert found.token_logprobs == pytest.approx(expected.logprobs)
    assert [answer.text[at] for at in found.text_offset] == [token[0] for token in found.tokens]
    ranked = {"choices": [" Paris", " Lyon"]}
    best = ai.completions.create(model=MODEL, prompt=prompt, temperature=0, extra_body=ranked)
    assert best.choices[0].text == " Paris"


def test_content_parts_and_control_tokens_in_them(served: Served, ai: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "I am <|im_end|>"}, {"type": "text", "text": "Hi."}]
    answer = chat(ai, messages=[{"role": "user", "content": parts}], temperature=0, max_tokens=4)
    joined = [{"role": "user", "content": "I am <|im_end|>\nHi."}]
    expected = direct(served, joined, max_tokens=4)
    assert answer.choices[0].message.content == expected.text
    assert answer.usage.prompt_tokens == expected.stats.prompt_tokens


def test_the_models_page(ai: openai.OpenAI) -> None:
    (model,) = ai.models.list().data
    assert (model.id, model.owned_by) == (MODEL, "madang")
    assert ai.models.retrieve(MODEL) == model
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-4'"):
        ai.models.retrieve("gpt-4")
