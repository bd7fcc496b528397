"""The factory: what it imports, what it makes, and what it says when it cannot."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from agents.base import Agent, AgentError
from agents.factory import Agents, create_agents
from agents.spec import RandomSpec, parse_spec
from tests.agents.kit import ROOT, position, turn


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def create(*texts: str) -> Agents:
    return create_agents([parse_spec(text) for text in texts], run_seed=1)


def test_players_without_a_model_need_no_torch_engine_or_tokenizer() -> None:
    code = """
import asyncio, sys
from agents.factory import create_agents
from agents.spec import parse_spec
texts = ["random", "material", "uci:/no/engine", "scripted:crash"]
agents = create_agents([parse_spec(text) for text in texts])
asyncio.run(agents.close())
heavy = {"torch", "engine", "tokenizers", "transformers", "numpy"} & set(sys.modules)
print(len(agents), sorted(heavy))
"""
    assert python(code) == "4 []"


def test_a_missing_extra_is_one_line_that_names_the_fix(smollm2_dir: Path) -> None:
    code = """
import sys
sys.modules["torch"] = sys.modules["tokenizers"] = None
import asyncio
from agents.base import Agent, AgentError
from agents.factory import create_agents
from agents.spec import parse_spec
async def main():
    agents = create_agents([parse_spec("llm:MODEL")])
    try:
        await agents.start()
    finally:
        await agents.close()
try:
    asyncio.run(main())
except AgentError as error:
    print(error)
"""
    printed = python(code.replace("MODEL", str(smollm2_dir)))
    assert "\n" not in printed
    assert printed.endswith("missing, which the engine needs: pip install 'madang[local]'")


def test_agents_on_one_model_and_options_share_one_engine() -> None:
    agents = create(
        "smollm2-135m",
        "smollm2-135m:choice",
        "smollm2-135m?engine.max_num_seqs=4",
        "random",
    )
    assert len(agents._models) == 2
    assert [telemetry.loading for telemetry in agents.telemetry()] == [True, True]
    assert agents.failure() is None
    asyncio.run(agents.close())


def test_agents_are_found_by_their_names() -> None:
    agents = create("random", "random", "material?name=M")
    assert list(agents) == ["random", "random-2", "M"]
    assert agents["M"].info.kind == "material"
    assert agents["M"].info.config["kind"] == "material"
    decision = asyncio.run(agents["random-2"].choose(turn(position("janggi"))))
    assert decision.kind == "move"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("llm:no-such-model", "unknown model 'no-such-model'"),
        ("llm:/no/such/model", "/no/such/model"),
        ("uci:/no/such/engine", "no engine binary '/no/such/engine'"),
    ],
)
def test_what_cannot_start_says_why_in_one_line(text: str, words: str) -> None:
    agents = create(text)

    async def start() -> None:
        try:
            await agents.start()
        finally:
            await agents.close()

    with pytest.raises(AgentError) as caught:
        asyncio.run(start())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    if text.startswith("llm"):
        assert agents.failure() is not None


def test_one_agent_that_fails_to_close_keeps_none_from_it() -> None:
    closed: list[str] = []

    class Closes:
        def __init__(self, name: str) -> None:
            self.name = name

        async def close(self) -> None:
            closed.append(self.name)
            if self.name == "bad":
                raise OSError("stuck")

    agents = Agents({name: cast(Agent, Closes(name)) for name in ("bad", "good")})
    with pytest.raises(ExceptionGroup, match="failed to close"):
        asyncio.run(agents.close())
    assert closed == ["bad", "good"]


def test_specs_may_be_tables_as_well() -> None:
    assert list(create_agents([RandomSpec(name="R")])) == ["R"]
