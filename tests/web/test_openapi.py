"""Every operation of the OpenAPI description, fuzzed: no answer is a fault of ours."""

from typing import Any

import pytest

from arena.store import Store

pytest.importorskip("fastapi", reason="no fastapi here (pip install madang[web])")
pytest.importorskip("schemathesis", reason="no schemathesis here (pip install madang[test])")
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from starlette.testclient import TestClient

from arena.web.app import create_app

EXAMPLES = 5  # of each operation
STREAM = "/api/runs/{run_id}/events"  # never ends: fuzzed below, on runs that are not there


@pytest.fixture(scope="module")
def client(store: Store) -> TestClient:
    app = create_app(store)
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


def operations(client: TestClient) -> list[Any]:
    schema = schemathesis.openapi.from_dict(client.get("/api/openapi.json").json())
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    assert len(found) > 10
    return [one for one in found if one.path != STREAM]


@pytest.mark.parametrize("valid", [True, False])
def test_no_operation_ends_in_a_fault_of_ours(client: TestClient, valid: bool) -> None:
    fuzz(client, valid, EXAMPLES)


@pytest.mark.drill
@pytest.mark.parametrize("valid", [True, False])
def test_no_operation_ends_in_a_fault_of_ours_at_length(client: TestClient, valid: bool) -> None:
    fuzz(client, valid, 200)


def fuzz(client: TestClient, valid: bool, examples: int) -> None:
    mode = schemathesis.GenerationMode.POSITIVE if valid else schemathesis.GenerationMode.NEGATIVE
    quick = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seen: set[int] = set()
    for operation in operations(client):
        if not valid and "{" not in operation.path:
            continue  # takes nothing that could be wrong

        @quick
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
            kept = {name: sent[name] for name in ("params", "headers") if sent.get(name)}
            answer = client.request(sent["method"], sent["url"], **kept)
            assert answer.status_code < 500, f"{sent}: {answer.text[:300]}"
            seen.add(answer.status_code)

        one()
    assert seen & {200, 404, 422}


@pytest.mark.parametrize("after", ["0", "-1", "x", "99999999999999999999", ""])
@pytest.mark.parametrize("last", ["", "x", "-1", "९", "9" * 40])
def test_a_stream_of_a_missing_run_is_refused_whatever_is_asked(
    client: TestClient, after: str, last: str
) -> None:
    headers = [(b"last-event-id", last.encode())]
    answer = client.get("/api/runs/77/events", params={"after": after}, headers=headers)
    assert answer.status_code in (404, 422)
