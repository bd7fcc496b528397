"""What the probes find of servers that cut, refuse, ignore and keep silent, over real HTTP."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from agents.base import Check
from agents.probe import (
    ODD,
    Served,
    find_constraints,
    judge_context,
    probe_constraint,
    probe_context,
    probe_metrics,
)
from agents.remote import RemoteModel
from agents.spec import EndpointSpec, load_spec

from .endpoint_double import Double, Reply, prompt_tokens, serving

Answering = Callable[[str, Mapping[str, Any]], Reply]


def spec(double: Double, **more: Any) -> EndpointSpec:
    data = {"kind": "endpoint", "model": "m", "base_url": f"{double.url}/v1", "retries": 0}
    made = load_spec({**data, **more})
    assert isinstance(made, EndpointSpec)
    return made


def probed(
    answer: Answering, probe: Callable[[RemoteModel], Awaitable[Check]], **more: Any
) -> tuple[Check, Double]:
    async def run(double: Double) -> Check:
        model = RemoteModel(spec(double, **more))
        try:
            await model.ready()
            return await probe(model)
        finally:
            await model.close()

    with serving(answer) as double:
        return asyncio.run(run(double)), double


def context(answer: Answering, tokens: int = 500) -> tuple[Check, Double]:
    return probed(answer, lambda model: probe_context(model, tokens))


def test_a_whole_context_is_told_with_its_counts() -> None:
    check, double = context(lambda path, body: Reply(("x",)))
    assert check.state == "ok"
    assert check.detail.startswith("prompts are read whole: ")
    counts = [int(count) for count in re.findall(r"\d+", check.detail)]
    sent = [prompt_tokens(body) for body in double.asked]
    assert counts == sent
    assert sent[-1] >= 500 > sent[-2]


def test_a_cut_context_fails_and_names_where() -> None:
    check, _ = context(lambda path, body: Reply(("x",), context=300))
    assert check.state == "fail"
    assert "is cut to 300: give the server a larger context" in check.detail


def test_a_refused_context_is_a_warning_with_the_servers_words() -> None:
    def answer(path: str, body: Mapping[str, Any]) -> Reply:
        refused = prompt_tokens(body) > 300
        return Reply(status=400, body=b"too long") if refused else Reply(("x",))

    check, _ = context(answer)
    assert check.state == "warn"
    assert "HTTP 400: too long" in check.detail


def test_a_server_that_counts_nothing_is_a_warning() -> None:
    check, _ = context(lambda path, body: Reply(("x",), context=0))
    assert check.state == "warn"
    assert "reports no prompt tokens" in check.detail


def test_counts_are_judged_by_the_two_shortest() -> None:
    whole = [Served(1, 50), Served(2, 90), Served(4, 170), Served(8, 330)]
    assert judge_context(whole, 300).state == "ok"
    for cut in (169, 247):  # under three quarters of 330
        assert judge_context([*whole[:3], Served(8, cut)], 300).state == "fail"
    assert judge_context([*whole[:3], Served(8, 248)], 300).state == "ok"
    assert judge_context([Served(1, 0, "HTTP 404")], 300).state == "fail"


def obeys(*keys: str) -> Answering:
    """A server that is held by these keys of a request, and else says where Paris is."""

    def answer(path: str, body: Mapping[str, Any]) -> Reply:
        if not any(key in body for key in keys):
            return Reply(("Paris is the ", "capital."))
        made = json.dumps({"move": ODD[1]}) if "response_format" in body else ODD[1]
        return Reply((made,))

    return answer


@pytest.mark.parametrize(
    ("constraint", "key"), [("structured_outputs", "structured_outputs"), ("grammar", "grammar")]
)
def test_a_constraint_is_obeyed_or_ignored(constraint: str, key: str) -> None:
    more = {"mode": "constrained", "constraint": constraint}
    check, double = probed(obeys(key), lambda model: probe_constraint(model, constraint), **more)
    assert check.state == "ok"
    assert all(word in json.dumps(double.asked[-1][key]) for word in ODD)
    check, _ = probed(obeys(), lambda model: probe_constraint(model, constraint), **more)
    assert check.state == "fail"
    assert f"{constraint} is ignored" in check.detail
    assert "Paris" in check.detail


def test_what_a_server_obeys_is_found_for_a_player_that_asks_for_nothing() -> None:
    with serving(obeys("regex", "response_format")) as double:
        check = asyncio.run(find_constraints(spec(double)))
    assert check == Check(
        "constraint", "ok", "not asked for (mode free); the server obeys regex, json_schema"
    )


def test_a_metrics_page_is_read_or_doubted() -> None:
    page = 'vllm:num_requests_waiting{engine="0"} 0.0\nvllm:kv_cache_usage_perc 0\n'
    with serving(lambda path, body: Reply(("x",)), metrics=page) as double:
        made = spec(double, metrics_url=f"{double.url}/metrics")
        check = asyncio.run(probe_metrics(made))
        double.metrics = "other_metric 1\n"
        other = asyncio.run(probe_metrics(made))
    assert check.state == "ok"
    assert check.detail.endswith("tells num_requests_waiting, kv_cache_usage_perc")
    assert (other.state, "none of the metrics" in other.detail) == ("warn", True)
    assert asyncio.run(probe_metrics(made)).state == "warn"  # nobody there any more
