"""Players behind real servers: our own, llama.cpp's through xllamacpp, vLLM on the CPU.

The last two are skipped where the variable that names their Python is not set (`real_servers.py`).
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.base import Decision, Telemetry
from agents.factory import create_agents
from agents.spec import EndpointSpec, load_spec
from arena.check import Options, Report, check_player

from .kit import ROOT, position, turn
from .real_servers import CONTEXT, llama_server, our_server, vllm_server

pytestmark = [pytest.mark.drill, pytest.mark.timeout(1800)]
CONSTRAINTS = {"ours": "structured_outputs", "llama": "grammar", "vllm": "structured_outputs"}
Server = tuple[str, str]  # which, address


@pytest.fixture(scope="module", params=["ours", "llama", "vllm"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    which, folder = request.param, tmp_path_factory.mktemp("server")
    if which == "llama":
        with llama_server(folder) as url:
            yield which, url
        return
    start = our_server if which == "ours" else vllm_server
    with start(folder, request.getfixturevalue("smollm2_dir")) as url:
        yield which, url


def spec(server: Server, mode: str, **more: Any) -> EndpointSpec:
    which, url = server
    held = {"constraint": CONSTRAINTS[which]} if mode == "constrained" else {}
    data = {"kind": "endpoint", "model": "smollm2", "base_url": f"{url}/v1", "mode": mode}
    made = load_spec({**data, "metrics_url": f"{url}/metrics", **held, **more})
    assert isinstance(made, EndpointSpec)
    return made


async def _ask(made: EndpointSpec, count: int) -> tuple[list[Decision], Telemetry]:
    agents = create_agents([made])
    try:
        await agents.start()
        (player,) = agents.values()
        asks = [
            player.choose(turn(position(game), game_id=f"{game}{number}"))
            for game in ("chess", "janggi")
            for number in range(count)
        ]
        decisions = list(await asyncio.gather(*asks))
        await asyncio.sleep(6)  # the metrics page is read every five seconds
        return decisions, agents.telemetry()[0]
    finally:
        await agents.close()


def test_constrained_moves_are_legal_timed_and_metered(server: Server) -> None:
    decisions, telemetry = asyncio.run(_ask(spec(server, "constrained"), 4))
    assert [decision.kind for decision in decisions] == ["move"] * 8
    for decision in decisions:
        (attempt,) = decision.attempts
        assert attempt.usage.prompt > 100
        assert attempt.usage.completion > 0
        assert attempt.timing is not None
        assert attempt.timing.ttft is not None
        assert 0 < attempt.timing.ttft <= attempt.timing.total
    assert telemetry.completion_tokens >= 8
    assert telemetry.prompt_tokens >= 4 * 100
    assert telemetry.prefix_cache_hits > 0


def test_the_same_prompt_is_answered_alike_at_temperature_0(server: Server) -> None:
    decisions, _ = asyncio.run(_ask(spec(server, "constrained"), 3))
    for game in (decisions[:3], decisions[3:]):
        assert len({decision.move for decision in game}) == 1


def test_free_answers_are_read_or_refused_and_never_no_result(server: Server) -> None:
    policy = {"attempts": 2, "tokens": 60}
    decisions, _ = asyncio.run(_ask(spec(server, "free", max_tokens=32, policy=policy), 1))
    assert {decision.kind for decision in decisions} <= {"move", "forfeit", "resign", "draw_offer"}
    assert all(decision.attempts[0].answer for decision in decisions)


def checked(made: EndpointSpec, context: int) -> Report:
    return asyncio.run(check_player(made, Options(plies=4, context=context)))


def test_arena_check_finds_it_fit_and_its_context_limited(server: Server) -> None:
    report = checked(spec(server, "constrained"), CONTEXT // 3)
    found = {check.name: check for check in report.checks}
    assert report.fit, report
    for name in ("context", "constraint", "metrics"):
        assert found[name].state == "ok", found[name]
    assert len(report.games) == 4
    beyond = {check.name: check for check in checked(spec(server, "free"), 2 * CONTEXT).checks}
    assert beyond["context"].state == "warn"
    assert "refuses what is longer" in beyond["context"].detail
    assert CONSTRAINTS[server[0]] in beyond["constraint"].detail


def test_a_tournament_with_it_runs_to_the_end(server: Server, tmp_path: Path) -> None:
    which, url = server
    config = tmp_path / "cup.toml"
    config.write_text(f"""
[run]
seed = 1
concurrency = 6
[[games]]
game = "chess"
max_plies = 6
at_cap = "material"
[[games]]
game = "janggi"
max_plies = 6
at_cap = "points"
[[players]]
kind = "endpoint"
name = "far"
model = "smollm2"
base_url = "{url}/v1"
mode = "constrained"
constraint = "{CONSTRAINTS[which]}"
metrics_url = "{url}/metrics"
[[players]]
kind = "random"
[[players]]
kind = "material"
""")
    done = subprocess.run(
        [sys.executable, "-m", "arena.cli", "run", str(config), "--db", str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Finished game") == 12
