"""What clients may send, and what they are told where they may not."""

import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import engine.server
from engine.config import EngineConfig
from engine.engine import Engine
from engine.server_answer import Served
from engine.server_ask import Room, ask_of
from engine.server_wire import ChatBody
from engine.tokenizer import Tokenizer

from .fake_runner import EOS, FakeRunner
from .model_kit import chatml_dir
from .server_kit import assert_free, client, serving, tiny

KEY = "a-key-of-the-test"
JSON = {"Content-Type": "application/json"}
CHAT: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "e2"}],
    "max_tokens": 2,
}
TEXT: dict[str, Any] = {"model": "tiny", "prompt": "e2", "max_tokens": 2}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with tiny(tmp_path_factory.mktemp("tiny"), max_model_len=256) as (_, where):
        yield where


def refusal(answer: httpx.Response) -> tuple[int, dict[str, Any]]:
    """Status and error; the body has OpenAI's shape and nothing else."""
    found = answer.json()
    assert set(found) == {"error"}
    assert set(found["error"]) == {"message", "type", "param", "code"}
    assert "\n" not in found["error"]["message"]
    return answer.status_code, found["error"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"temprature": 1}, "temprature: this server knows no such parameter"),
        ({"n": 2}, "n: one answer a request"),
        ({"temperature": -0.1}, "temperature: Input should be greater"),
        ({"temperature": float("nan")}, "temperature: Input should be a finite number"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": "many"}, "top_k: Input should be a valid integer"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 999_999_999, "messages": CHAT["messages"] * 99}, "max_model_len"),
        ({"stop": ""}, "stop: an empty string"),
        ({"stop": ["x"] * 33}, "stop: List should have at most 32"),
        ({"stop": ["x" * 257]}, "stop.0: String should have at most 256"),
        ({"frequency_penalty": 0.5}, "frequency_penalty: not supported: use repetition_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias: not supported"),
        ({"tools": [{"type": "function"}]}, "tools: tool calls are not supported"),
        ({"response_format": {"type": "json_object"}}, "response_format: only type text"),
        ({"top_logprobs": 3}, "top_logprobs: needs logprobs true"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"messages": []}, "messages: List should have at least 1"),
        ({"messages": [{"content": "a"}]}, "messages.0.role: is missing"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "only parts of type text are understood, not 'image_url'",
        ),
        ({"chat_template_kwargs": {"messages": []}}, "'messages' is not a switch"),
        ({"choices": []}, "choices: List should have at least 1"),
        ({"choices": ["a", ""]}, "choices: one of them is empty"),
        ({"choices": ["a"] * 1025}, "choices: List should have at most 1024"),
        ({"choices": ["a" * 17_000, "b" * 17_000]}, "more than 32768 characters"),
        ({"choices": ["a", "a"]}, "choices must be distinct"),
        ({"choices": ["a"], "guided_choice": ["b"]}, "choices: given twice"),
        ({"choices": ["a"], "logprobs": True}, "logprobs: an answer held to choices has none"),
        ({"choices": ["a"], "terminator": "comma"}, "terminator: Input should be 'none'"),
        ({"mode": "walk"}, "mode: needs choices"),
        ({"terminator": "eos"}, "terminator: needs choices"),
        ({"structured_outputs": {"regex": "a+"}}, "structured_outputs: only choice"),
    ],
)
def test_a_wrong_parameter_is_named(address: str, more: dict[str, Any], words: str) -> None:
    data = json.dumps(CHAT | more)
    answer = httpx.post(f"{address}/v1/chat/completions", content=data, headers=JSON)
    status, error = refusal(answer)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert words in error["message"]
    streamed = json.dumps(CHAT | more | {"stream": True})
    again = httpx.post(f"{address}/v1/chat/completions", content=streamed, headers=JSON)
    assert refusal(again) == (status, error), "an error before the first text is a status"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"prompt": ["a", "b"]}, "one prompt a request"),
        ({"prompt": []}, "the prompt is empty"),
        ({"prompt": [9999]}, "token 9999 is outside"),
        ({"prompt": [5, 6], "choices": ["a"]}, "choices need a text"),
        ({"echo": True}, "echo: not supported"),
        ({"best_of": 3}, "best_of: one answer"),
    ],
)
def test_plain_completions_too(address: str, more: dict[str, Any], words: str) -> None:
    status, error = refusal(httpx.post(f"{address}/v1/completions", json=TEXT | more))
    assert status == 400
    assert words in error["message"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"[" * 100_000, b'{"a": "\\ud800"}', b"\xff"])
def test_what_is_no_json_object_is_400(address: str, data: bytes) -> None:
    answer = httpx.post(f"{address}/v1/chat/completions", content=data, headers=JSON)
    assert refusal(answer)[0] == 400


def test_what_else_is_refused(address: str) -> None:
    url = f"{address}/v1/chat/completions"
    status, error = refusal(httpx.post(url, json=CHAT | {"model": "gpt-4"}))
    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert refusal(httpx.get(f"{address}/v1/nothing"))[0] == 404
    assert refusal(httpx.get(url))[0] == 405
    plain = httpx.post(url, content=json.dumps(CHAT), headers={"Content-Type": "text/plain"})
    assert refusal(plain)[0] == 415, "what a foreign page's form could send"
    large = httpx.post(url, content=b" " * (9 << 20), headers=JSON)
    assert refusal(large)[0] == 413
    assert refusal(httpx.get(f"{address}/health", headers={"Host": "evil.example"}))[0] == 421


def test_a_body_that_does_not_come_is_not_waited_for(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.server, "BODY_S", 0.1)
    host, port = address.removeprefix("http://").split(":")
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as slow:
        slow.sendall(f"{head}Content-Length: 99\r\n\r\n{{".encode())
        assert slow.recv(99).startswith(b"HTTP/1.1 408 ")


def test_habits_of_clients_are_taken(address: str) -> None:
    """Nulls are absent; what changes nothing passes."""
    with client(address) as ai:
        body: dict[str, Any] = CHAT | {"temperature": 0}
        plain = ai.chat.completions.create(**body)
        more: dict[str, Any] = {
            "top_k": -1, "repeat_penalty": 1.0, "guided_choice": None, "n": 1, "user": "me",
            "frequency_penalty": 0.0, "logit_bias": {}, "tools": [], "stop": None, "min_p": 0,
            "response_format": {"type": "text"}, "store": False, "seed": -(2**70), "top_p": 1,
        }  # fmt: skip
        same = ai.chat.completions.create(**body, extra_body=more)
    assert plain.choices[0].message == same.choices[0].message


def test_without_a_seed_each_request_has_its_own(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(chatml_dir(tmp_path))
    body = ChatBody.model_validate_json(json.dumps(CHAT))
    asks = [ask_of("r", body, tokenizer, Room(100, 100)) for _ in range(2)]
    assert asks[0].request.sampling.seed != asks[1].request.sampling.seed
    assert asks[0].request.sampling.temperature == 1.0
    assert asks[0].request.prompt == asks[1].request.prompt


def test_without_a_limit_an_answer_may_fill_the_room(tmp_path: Path) -> None:
    with tiny(tmp_path, max_model_len=96) as (served, address), client(address) as ai:
        body: dict[str, Any] = {**CHAT, "max_tokens": None, "extra_body": {"ignore_eos": True}}
        answer = ai.chat.completions.create(**body)
        assert answer.usage is not None
        assert answer.usage.total_tokens == 96
        assert answer.choices[0].finish_reason == "length"
        assert served.engine.snapshot().finished_requests == 1


def test_a_key_is_asked_of_everyone(tmp_path: Path) -> None:
    with tiny(tmp_path) as (served, _), serving(served, api_key=KEY) as address:
        with client(address, KEY) as ai:
            assert ai.models.list().data[0].id == "tiny"
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY}):
            for path in ("/v1/models", "/metrics"):
                answer = httpx.get(address + path, headers=headers)
                assert refusal(answer)[0] == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                assert KEY not in answer.text
        assert httpx.get(f"{address}/health", headers={"Host": "any.example"}).status_code == 200


def failing(tmp_path: Path, good_steps: int) -> Served:
    """A model whose device fails after some steps."""
    tokenizer = Tokenizer.load(chatml_dir(tmp_path))
    runner = FakeRunner(vocab_size=tokenizer.vocab_size, script=lambda context: 70)
    runner.before_step = lambda plan: setattr(runner, "fails", len(runner.plans) > good_steps)
    engine = Engine(runner, EngineConfig(model="fake"), eos_token_ids=[EOS], tokenizer=tokenizer)
    return Served("tiny", engine, tokenizer)


def test_our_own_fault_is_a_500_and_its_trace_is_in_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    served = failing(tmp_path, 0)
    with served.engine, serving(served) as address, caplog.at_level(logging.ERROR):
        for more in ({}, {"stream": True}):
            answer = httpx.post(f"{address}/v1/chat/completions", json=CHAT | more)
            status, error = refusal(answer)
            assert (status, error["type"]) == (500, "server_error")
            assert "device" not in answer.text
        assert "RuntimeError('the device is gone')" in caplog.text
        assert "Traceback" in caplog.text
        assert_free(served.engine)
        assert httpx.get(f"{address}/health").json() == {"status": "ok"}
        served.engine.close()
        assert refusal(httpx.get(f"{address}/health"))[0] == 503


def test_a_fault_inside_a_stream_is_told_in_it(tmp_path: Path) -> None:
    served = failing(tmp_path, 3)
    body: dict[str, Any] = CHAT | {"max_tokens": 9, "stream": True}
    with served.engine, serving(served) as address, client(address) as ai:
        came: list[str | None] = []

        def read() -> None:
            for chunk in ai.chat.completions.create(**body):
                came.append(chunk.choices[0].delta.content)

        with pytest.raises(openai.APIError, match="its log says why"):
            read()
        assert len([text for text in came if text]) == 3
        assert_free(served.engine)


def test_the_metrics_page(tmp_path: Path) -> None:
    with tiny(tmp_path) as (served, address), client(address) as ai:
        for _ in range(2):
            ai.chat.completions.create(**CHAT)
        ai.chat.completions.create(**CHAT, extra_body={"choices": ["e4", "e5"]})
        now = served.engine.snapshot()
        answer = httpx.get(f"{address}/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    values: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for line in answer.text.splitlines():
        if kind := re.fullmatch(r"# TYPE (\S+) (gauge|counter|histogram)", line):
            kinds[kind[1]] = kind[2]
            continue
        match = re.fullmatch(r'([a-z]+:\w+)\{model_name="tiny"(?:,le="([^"]+)")?\} (\S+)', line)
        assert match, line
        values[match[1] + (f"<={match[2]}" if match[2] else "")] = float(match[3])
        assert re.sub("_(bucket|count|sum)$", "", match[1]) in kinds
    assert values["vllm:prompt_tokens_total"] == now.prefix_cache_queries > 0
    assert values["vllm:prefix_cache_hits_total"] == now.prefix_cache_hits > 0
    assert values["madang:finished_requests_total"] == 3
    for name in (
        "time_to_first_token_seconds", "inter_token_latency_seconds", "request_queue_time_seconds",
        "request_prefill_time_seconds", "request_decode_time_seconds",
        "e2e_request_latency_seconds", "iteration_tokens_total",
    ):  # fmt: skip
        found = getattr(now, name)
        buckets = [v for k, v in values.items() if k.startswith(f"vllm:{name}_bucket")]
        assert buckets == sorted(buckets)
        assert buckets[-1] == values[f"vllm:{name}_count"] == found.count > 0
        assert values[f"vllm:{name}_sum"] == pytest.approx(found.total)
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
        assert values[f"vllm:{name}"] == 0
    assert values["vllm:corrupted_requests_total"] == values["vllm:num_preemptions_total"] == 0
