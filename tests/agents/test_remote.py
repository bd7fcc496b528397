"""Models behind HTTP, against a real server: each API's documented wire format, and each fault."""

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import agents.endpoint_stream
import agents.remote
import tests.agents.endpoint_double
from agents.base import AgentError, Decision
from agents.endpoint_metrics import read_metrics, told
from agents.endpoint_stream import retry_after
from agents.endpoint_wire import chosen
from agents.factory import create_agents
from agents.local import load_tokenizer
from agents.spec import EndpointSpec, SpecError, load_spec, parse_spec

from .endpoint_double import Double, Reply, serving
from .kit import position, turn
from .test_prompt import walk


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents.remote, "BACKOFF_S", 0.001)


def spec(double: Double, **more: Any) -> EndpointSpec:
    made = load_spec({"kind": "endpoint", "model": "m", "base_url": f"{double.url}/v1", **more})
    assert isinstance(made, EndpointSpec)
    return made


def ollama(double: Double, **more: Any) -> EndpointSpec:
    return spec(double, **{"base_url": double.url, "api": "ollama", **more})


async def _ask(players: tuple[EndpointSpec, ...], game: str, count: int) -> list[Decision]:
    made = create_agents(players)
    try:
        await made.start()
        asks = [
            player.choose(turn(position(game), game_id=str(number)))
            for player in made.values()
            for number in range(count)
        ]
        return list(await asyncio.gather(*asks))
    finally:
        await made.close()


def ask(*players: EndpointSpec, game: str = "chess", count: int = 1) -> list[Decision]:
    return asyncio.run(_ask(players, game, count))


def says(*pieces: str, **more: Any) -> Any:
    return lambda path, body: Reply(pieces, **more)


def after_probes(*replies: Reply) -> Any:
    """The probes are answered; then the replies in turn, the last again and again."""
    left = [Reply(("x",)), Reply(("x",)), *replies]

    def answer(path: str, body: Mapping[str, Any]) -> Reply:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def test_a_streamed_answer_is_read_and_timed() -> None:
    with serving(says("I play ", "e2", "e4.")) as double:
        (decision,) = ask(spec(double, temperature=0.5))
    assert decision.move is not None
    assert decision.move.uci == "e2e4"
    (attempt,) = decision.attempts
    assert attempt.answer == "I play e2e4."
    assert (attempt.usage.completion, attempt.usage.cached) == (3, 3)
    assert attempt.timing is not None
    assert attempt.timing.ttft is not None
    assert attempt.timing.queue is not None
    assert attempt.timing.queue <= attempt.timing.ttft <= attempt.timing.total
    path, _, body = double.seen[-1]
    assert path == "/v1/chat/completions"
    assert body["stream"]
    assert body["stream_options"] == {"include_usage": True}
    assert 0 <= body["seed"] < 2**31
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_reasoning_beside_the_answer_is_kept_and_not_read() -> None:
    with serving(says("e2e4", thinking=("d2d4 ", "or e2e4?"))) as double:
        (decision,) = ask(spec(double))
    assert decision.move is not None
    assert decision.move.uci == "e2e4"
    assert decision.attempts[0].answer == "<think>\nd2d4 or e2e4?\n</think>\ne2e4"
    with serving(says(thinking=("d2d4 wins",), finish="length")) as double:
        (decision,) = ask(spec(double, policy={"attempts": 1}))
    assert decision.reason == "truncated"


@pytest.mark.parametrize(
    ("constraint", "key", "made"),
    [
        ("structured_outputs", "structured_outputs", "d2d4"),
        ("guided_choice", "guided_choice", "d2d4"),
        ("regex", "regex", "d2d4"),
        ("grammar", "grammar", "d2d4"),
        ("json_schema", "response_format", '{"move": "d2d4"}'),
    ],
)
def test_legal_moves_are_sent_in_the_servers_own_words(
    constraint: str, key: str, made: str
) -> None:
    with serving(says(made)) as double:
        (decision,) = ask(spec(double, mode="constrained", constraint=constraint))
    assert decision.move is not None
    assert decision.move.uci == "d2d4"
    sent = json.dumps(double.asked[0][key])
    assert all(move.uci in sent for move in position("chess").legal_moves())


def test_ollama_speaks_its_own_protocol() -> None:
    """Documented traffic only: Ollama itself is not run here."""
    with serving(says('{"move"', ': "e2e4"}')) as double:
        player = ollama(double, mode="constrained", constraint="ollama_format", num_ctx=8192)
        (decision,) = ask(player)
    assert decision.move is not None
    assert decision.move.uci == "e2e4"
    usage = decision.attempts[0].usage
    assert (usage.completion, usage.cached) == (2, 3)
    path, _, body = double.seen[-1]
    assert path == "/api/chat"
    assert body["options"]["num_ctx"] == 8192
    assert body["options"]["num_predict"] == 64
    assert "e2e4" in body["format"]["properties"]["move"]["enum"]
    with serving(says("e2", thinking=("hm",), finish="length")) as double:
        (decision,) = ask(ollama(double, thinking=True, policy={"attempts": 1}))
    assert decision.reason == "truncated"
    assert double.asked[0]["think"] is True


def test_an_illegal_answer_to_a_constrained_request_is_no_result() -> None:
    with serving(says("e2e5")) as double:
        (decision,) = ask(spec(double, mode="constrained", constraint="guided_choice"))
    assert (decision.kind, decision.reason) == ("no_result", "constraint_ignored")
    assert chosen("json_schema", '["e2e4"]', ("e2e4",)) is None
    assert chosen("json_schema", '{"move": ["e2e4"]}', ("e2e4",)) is None
    assert chosen("json_schema", "{" * 9, ("e2e4",)) is None


@pytest.mark.parametrize("api", ["openai", "ollama"])
def test_a_cut_prompt_is_no_result_and_stops_the_agent(api: str) -> None:
    with serving(says("e2e4", context=101)) as double:
        make = ollama if api == "ollama" else spec
        decisions = ask(make(double, max_concurrency=1, template="fen"), count=3)
    assert [decision.reason for decision in decisions] == ["prompt_truncated"] * 3
    assert "larger context" in decisions[0].detail
    assert len(double.asked) == 1, "the server was asked again after it had cut a prompt"


def test_a_whole_prompt_is_never_called_cut() -> None:
    with serving(says("a4b4", "")) as double:
        for game, template in (("chess", "history"), ("janggi", "board")):
            (decision,) = ask(spec(double, template=template), game=game)
            assert decision.reason != "prompt_truncated"


@pytest.fixture
def counted(smollm2_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server counts by a real tokenizer, whose moves have more tokens a byte than its prose."""
    tokenizer = load_tokenizer(str(smollm2_dir))
    count = lambda body: len(tokenizer.encode_prompt(body["messages"]))  # noqa: E731
    monkeypatch.setattr(tests.agents.endpoint_double, "prompt_tokens", count)


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_no_order_of_prompts_makes_a_whole_one_look_cut(game: str) -> None:
    """Late positions first, players of other templates on the same model, dense and empty talk."""
    states = walk(game, 90)
    talk = [" " * 400, "a" * 400, "..." * 130]

    async def scenario(double: Double) -> list[Decision]:
        notations = states[0].game.notations
        made = create_agents(
            [
                spec(double, name=f"{template} {notation}", template=template, notation=notation)
                for template in ("history", "fen", "board", "fen-ko", "history-es")
                for notation in notations
            ]
        )
        try:
            await made.start()
            plies = [len(states) - 1, 0, 40, 1, 10]
            asked = [turn(states[ply], game_id=str(ply)) for ply in plies]
            return [await agent.choose(one) for one in asked for agent in made.values()]
        finally:
            await made.close()

    def answer(path: str, body: Mapping[str, Any]) -> Reply:
        return Reply((talk[len(body["messages"]) // 2 % len(talk)],))

    with serving(answer) as double:
        decisions = asyncio.run(scenario(double))
    assert not [one.detail for one in decisions if one.kind == "no_result"]
    assert all(len(decision.attempts) == 3 for decision in decisions)


@pytest.mark.usefixtures("counted")
def test_a_prompt_that_outgrows_the_server_is_seen() -> None:
    states = walk("janggi", 90)

    async def scenario(double: Double) -> list[Decision]:
        made = create_agents([spec(double)])
        try:
            await made.start()
            (agent,) = made.values()
            return [await agent.choose(turn(state)) for state in states]
        finally:
            await made.close()

    with serving(says("resign", context=450)) as double:
        decisions = asyncio.run(scenario(double))
    kinds = [decision.kind for decision in decisions]
    first = kinds.index("no_result")
    assert decisions[first].reason == "prompt_truncated"
    assert set(kinds[:first]) == {"resign"}
    assert set(kinds[first:]) == {"no_result"}
    sent = tests.agents.endpoint_double.prompt_tokens(double.asked[first])
    assert 0.6 < 450 / sent < 1, "seen before two fifths are lost"


def test_refusals_are_retried_until_they_pass() -> None:
    refusals = [Reply(status=429, headers={"Retry-After": "0"}, body=b"slow down")]
    refusals += [Reply(status=status, body=b"") for status in (500, 503)]
    broken = Reply(("e2",), finish=None)
    with serving(after_probes(*refusals, broken, Reply(("e2e4",)))) as double:
        (decision,) = ask(spec(double))
    assert decision.kind == "move"
    assert len(double.asked) == 5


@pytest.mark.parametrize(
    ("reply", "tries", "words"),
    [
        (Reply(status=402, body=b"{}"), 1, "HTTP 402 (the account needs credit)"),
        (Reply(status=401, body=b"bad key s3cret-key"), 1, "bad key ***"),
        (Reply(status=429, body=b"later"), 3, "HTTP 429"),
        (Reply(status=500, body=b"oops"), 3, "HTTP 500: oops (3 tries)"),
        (Reply(("e2e4",), finish=None), 3, "broke off"),
        (Reply(body=b'data: {"error": {"message": "out of memory"}}\n\n'), 1, "out of memory"),
        (Reply(body=b"data: no json\n\n"), 1, "no JSON"),
        (Reply(body=b"<html>hello</html>"), 3, "broke off"),
    ],
)
def test_what_the_server_fails_at_is_no_result(
    reply: Reply, tries: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "s3cret-key")
    with serving(after_probes(reply)) as double:
        player = spec(double, retries=2, api_key_env="SOME_KEY")
        (decision,) = ask(player)
    assert (decision.kind, decision.reason) == ("no_result", "endpoint_error")
    assert words in decision.detail
    assert "s3cret" not in decision.detail
    assert len(double.asked) == tries


def test_a_silent_or_endless_server_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    woken = threading.Event()

    def sleep(path: str, body: Mapping[str, Any]) -> Reply:
        if len(double.seen) > 2:
            woken.wait(20)
        return Reply(("e2e4",))

    with serving(sleep) as double:
        (decision,) = ask(spec(double, retries=0, timeout_s=0.3))
        woken.set()
    assert (decision.reason, "no whole answer in 0.3 s" in decision.detail) == (
        "endpoint_error",
        True,
    )
    monkeypatch.setattr(agents.endpoint_stream, "MOST_BYTES", 10_000)
    with serving(after_probes(Reply(body=b"x" * 20_000))) as double:
        (decision,) = ask(spec(double))
    assert "more than 10000 bytes" in decision.detail


def test_the_key_comes_from_the_environment_and_is_kept_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_KEY", "s3cret-key")
    with serving(says("e2e4")) as double:
        player = spec(double, api_key_env="SOME_KEY")
        (made,) = create_agents([player]).values()
        assert "s3cret-key" not in repr(made.info)
        (decision,) = ask(player)
    assert double.seen[-1][1]["Authorization"] == "Bearer s3cret-key"
    assert "s3cret-key" not in repr(decision)
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(AgentError, match="SOME_KEY is not set"):
        ask(player)


def test_a_server_that_is_not_there_cannot_start() -> None:
    with serving(says("e2e4")) as double:
        player = spec(double, retries=0)
    with pytest.raises(AgentError, match="ConnectError"):
        ask(player)


def test_requests_in_flight_are_capped_across_agents() -> None:
    gate = threading.Barrier(2, timeout=20)

    def meet(path: str, body: Mapping[str, Any]) -> Reply:
        if body["max_tokens"] > 1:
            gate.wait()  # passes only where two are in flight at once
        return Reply(("e2e4",))

    with serving(meet) as double:
        one = spec(double, max_concurrency=2)
        two = spec(double, max_concurrency=2, template="board")
        decisions = ask(one, two, count=4)
    assert [decision.kind for decision in decisions] == ["move"] * 8
    assert double.most_in_flight == 2


def test_metrics_of_three_servers() -> None:
    vllm = (
        "# HELP vllm:num_requests_running Number of requests\n"
        'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
        'vllm:num_requests_waiting{engine="0",model_name="m"} 7.0\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25\n'
        'vllm:num_preemptions_total{engine="0",model_name="m"} 2.0\n'
        'vllm:generation_tokens_total{engine="0",model_name="m"} 1e3\n'
        "vllm:prompt_tokens_total nan\nrubbish {{{\n"
    )
    found = read_metrics("m", vllm)
    assert (found.num_requests_running, found.num_requests_waiting) == (3, 7)
    assert (found.kv_cache_usage_perc, found.num_preemptions) == (0.25, 2)
    assert (found.completion_tokens, found.prompt_tokens) == (1000, 0)
    sglang = read_metrics("m", 'sglang:num_queue_reqs{model_name="m"} 4\nsglang:token_usage 0.5\n')
    assert (sglang.num_requests_waiting, sglang.kv_cache_usage_perc) == (4, 0.5)
    llama = read_metrics("m", "llamacpp:requests_processing 2\nllamacpp:n_decode_total 9\n")
    assert (llama.num_requests_running, llama.steps) == (2, 9)


def test_cached_prompt_tokens_are_counted_alike() -> None:
    """llama.cpp leaves them out of its prompt tokens; SGLang and vLLM do not."""
    pages = (
        "llamacpp:prompt_tokens_total 684\nllamacpp:prompt_tokens_cached_total 717\n",
        'sglang:prompt_tokens_total 1401\nsglang:cached_tokens_total{cache_source="device"} 700\n'
        'sglang:cached_tokens_total{cache_source="host"} 17\n',
        "vllm:prompt_tokens_total 1401\nvllm:prefix_cache_queries_total 1401\n"
        "vllm:prefix_cache_hits_total 717\n",
    )
    for page in pages:
        found = read_metrics("m", page)
        assert (found.prompt_tokens, found.prefix_cache_queries) == (1401, 1401)
        assert found.prefix_cache_hits == 717
    assert read_metrics("m", "sglang:num_retracted_requests_total 4\n").num_preemptions == 4
    assert told(pages[0]) == ("prompt_tokens", "prefix_cache_queries", "prefix_cache_hits")


def test_metrics_url_feeds_telemetry() -> None:
    async def watch(player: EndpointSpec) -> int:
        made = create_agents([player])
        try:
            await made.start()
            async with asyncio.timeout(20):
                while not made.telemetry()[0].num_preemptions:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            return made.telemetry()[0].num_preemptions
        finally:
            await made.close()

    with serving(says("e2e4"), metrics="vllm:num_preemptions_total 6\n") as double:
        assert asyncio.run(watch(spec(double, metrics_url=f"{double.url}/metrics"))) == 6


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"mode": "choice"}, "endpoints do not offer"),
        ({"mode": "think"}, "endpoints do not offer"),
        ({"mode": "constrained"}, "go together"),
        ({"constraint": "grammar"}, "go together"),
        ({"api": "ollama", "mode": "constrained", "constraint": "grammar"}, "go together"),
        ({"num_ctx": 4096}, "num_ctx is Ollama's"),
        ({"base_url": "localhost:8000"}, "base_url"),
        ({"base_url": "http://user:word@host/v1"}, "base_url"),
        ({"api_key": "sk-1"}, "unknown key 'api_key' (did you mean 'api_key_env'"),
    ],
)
def test_a_wrong_configuration_is_one_line(more: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec({"kind": "endpoint", "model": "m", "base_url": "http://host/v1", **more})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_on_the_command_line() -> None:
    made = parse_spec("endpoint:qwen:7b?base_url=http://host:8000/v1&policy.attempts=1")
    assert isinstance(made, EndpointSpec)
    assert (made.model, made.policy.attempts) == ("qwen:7b", 1)


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("1.5") == 1.5
    assert retry_after("99999") == 60
    assert retry_after("Wed, 21 Oct 2099 07:28:00 GMT") == 60
    assert [retry_after(text) for text in ("", "soon", "-4", "nan")] == [0, 0, 0, 0]
