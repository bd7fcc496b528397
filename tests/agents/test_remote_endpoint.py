"""A remote player through our own endpoint: it moves as the same model does in this process."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

import agents.endpoint_stream
import agents.remote
from agents.base import AgentError, Decision
from agents.factory import create_agents
from agents.spec import EndpointSpec, LlmSpec, load_spec
from games.base import Move
from tests.engine.server_kit import tiny

from .kit import position, turn

ENGINE = {"num_gpu_blocks_override": 600, "max_num_seqs": 4}


def remote(address: str, **more: Any) -> EndpointSpec:
    data = {
        "kind": "endpoint",
        "model": "tiny",
        "base_url": f"{address}/v1",
        "metrics_url": f"{address}/metrics",
        **more,
    }
    made = load_spec(data)
    assert isinstance(made, EndpointSpec)
    return made


def local(folder: Path, **more: Any) -> LlmSpec:
    made = load_spec({"kind": "llm", "model": str(folder), "engine": ENGINE, **more})
    assert isinstance(made, LlmSpec)
    return made


async def _decide(spec: EndpointSpec, game: str) -> list[Decision]:
    made = create_agents([spec])
    try:
        await made.start()
        (player,) = made.values()
        return [await player.choose(turn(position(game), game_id="g"))]
    finally:
        await made.close()


async def _moves(spec: EndpointSpec | LlmSpec, game: str, plies: int) -> list[Decision]:
    """The player's own decisions, one after the other, from the start."""
    made = create_agents([spec])
    try:
        await made.start()
        (player,) = made.values()
        state, found = position(game), []
        for _ in range(plies):
            decision = await player.choose(turn(state, game_id="g"))
            found.append(decision)
            assert isinstance(decision.move, Move), decision
            state = state.apply(decision.move)
        return found
    finally:
        await made.close()


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_a_constrained_player_moves_as_in_process(game: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with tiny(folder, max_num_seqs=4) as (served, address):
        far = remote(address, mode="constrained", constraint="structured_outputs")
        decisions = asyncio.run(_moves(far, game, 3))
        assert served.engine.snapshot().forced_tokens > 0, "it was no masked walk"
    expected = asyncio.run(_moves(local(folder, mode="constrained"), game, 3))
    assert [one.move for one in decisions] == [one.move for one in expected]
    for one, same in zip(decisions, expected, strict=True):
        (attempt,) = one.attempts
        assert attempt.kind == "move"
        assert attempt.usage.prompt == same.attempts[0].usage.prompt > 0
    assert decisions[1].attempts[0].usage.cached > 0, "the history was computed again"


def test_a_free_player_reads_what_the_model_says(tmp_path: Path) -> None:
    """A random model says nothing that is a move, and that is the player's own failure."""
    with tiny(tmp_path, max_num_seqs=4) as (_, address):
        far = remote(address, max_tokens=8, policy={"attempts": 2})
        (decision,) = asyncio.run(_decide(far, "chess"))
    assert decision.kind == "forfeit"
    assert len(decision.attempts) == 2
    assert all(attempt.usage.completion > 0 for attempt in decision.attempts)


def test_the_metrics_page_feeds_telemetry(tmp_path: Path) -> None:
    async def watch(spec: EndpointSpec) -> None:
        made = create_agents([spec])
        try:
            await made.start()
            async with asyncio.timeout(20):
                while not made.telemetry()[0].completion_tokens:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            (seen,) = made.telemetry()
            assert (seen.num_requests_running, seen.num_requests_waiting) == (0, 0)
            assert seen.prompt_tokens == seen.prefix_cache_queries > 0
        finally:
            await made.close()

    with tiny(tmp_path) as (_, address):
        asyncio.run(watch(remote(address)))


def test_a_wrong_name_cannot_start(tmp_path: Path) -> None:
    with tiny(tmp_path) as (_, address), pytest.raises(AgentError, match="no model 'other'"):
        asyncio.run(_decide(remote(address, model="other"), "chess"))


def test_a_full_server_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight games through a place for one: each 503 is tried again until it passes."""
    monkeypatch.setattr(agents.remote, "BACKOFF_S", 0.01)
    monkeypatch.setattr(
        agents.endpoint_stream, "retry_after", lambda value: 0.05 * float(value or 0)
    )

    async def crowd(spec: EndpointSpec) -> list[Decision]:
        made = create_agents([spec])
        try:
            await made.start()
            (player,) = made.values()
            asks = [player.choose(turn(position("chess"), game_id=str(i))) for i in range(8)]
            return list(await asyncio.gather(*asks))
        finally:
            await made.close()

    with tiny(tmp_path, max_num_seqs=1, max_num_queued_reqs=0) as (_, address):
        far = remote(address, mode="constrained", constraint="structured_outputs", retries=20)
        decisions = asyncio.run(crowd(far))
        page = httpx.get(f"{address}/metrics").text
    assert [decision.kind for decision in decisions] == ["move"] * 8
    assert 'madang:refused_requests_total{model_name="tiny"} 0' not in page, "none was refused"
