"""Each check tells the truth of a made-up machine; none raises."""

import asyncio
import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.mqtt_wire import connection
from arena import doctor
from arena.cli import app
from arena.config import build_config
from arena.doctor import Check, check_all, clashes
from arena.doctor_players import check_players
from tests.agents.broker import running_broker
from tests.agents.endpoint_double import Reply, serving


def by_name() -> dict[str, Check]:
    return {check.name: check for check in check_all()}


def answers(monkeypatch: pytest.MonkeyPatch, **found: object) -> None:
    """What the other process says of torch, GPUs and models."""
    done = subprocess.CompletedProcess([], 0, json.dumps(found), "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


@pytest.fixture(autouse=True)
def no_torch_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing torch takes seconds; one test below asks it for real."""
    answers(monkeypatch, torch="2.13.0", threads=2, gpus=[], models={"smollm2-135m": 652_000_000})


def test_this_machine_is_told() -> None:
    checks = by_name()
    assert checks["python"].state == "ok"
    assert checks["packages"].state == "ok"
    assert checks["import names"].state == "ok"
    assert checks["torch"].detail == "2.13.0, 2 threads, no GPU"
    assert checks["memory"].detail.endswith(" available")
    assert {"endpoints", "MQTT", "broker", "stockfish", "disk"} <= checks.keys()


def test_a_gpu_is_told_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [["Some GPU", 130_000_000_000, 150_000_000_000]]
    answers(monkeypatch, torch="2.13.0", threads=2, gpus=gpus, models={})
    checks = by_name()
    assert checks["GPU"].detail == "Some GPU, 130.0 GB of 150.0 GB free"
    assert checks["torch"].detail == "2.13.0, 2 threads"


def test_models_are_told_with_their_memory(
    monkeypatch: pytest.MonkeyPatch, smollm2_dir: Path
) -> None:
    checks = by_name()
    assert checks["model smollm2-135m"].state == "ok"
    assert checks["model smollm2-135m"].detail.endswith("0.7 GB of memory for its weights")
    monkeypatch.setattr(doctor, "available_memory", lambda: (100_000_000, 2_000_000_000))
    small = by_name()["model smollm2-135m"]
    assert small.state == "warn"
    assert small.detail.endswith("more than the 0.1 GB available")


def test_the_real_process_tells_torch_and_the_model(
    monkeypatch: pytest.MonkeyPatch, smollm2_dir: Path
) -> None:
    monkeypatch.undo()
    found = doctor._probe(["smollm2-135m"])
    assert isinstance(found, dict), found
    assert found["models"]["smollm2-135m"] > 538_000_000  # its weights in float32, and the head
    assert found["threads"] >= 1


def configured(*players: dict[str, object]) -> dict[str, Check]:
    sections = [{"game": "chess"}]
    config = build_config({"games": sections, "players": [*players, {"kind": "random"}]})
    found = check_players(config)
    return {check.name: Check(check.name, check.state, check.detail) for check in found}


def test_the_players_of_a_configuration_are_looked_for(tmp_path: Path) -> None:
    page = json.dumps({"object": "list", "data": [{"id": "m"}]})
    with (
        serving(lambda path, body: Reply(("x",)), metrics=page) as double,
        running_broker(tmp_path) as broker,
    ):
        server = {"kind": "endpoint", "base_url": f"{double.url}/v1"}
        checks = configured(
            {"kind": "uci", "name": "fish", "path": "/no/such/fish"},
            {"kind": "llm", "name": "local", "model": "/no/such/model"},
            {**server, "name": "there", "model": "m"},
            {**server, "name": "other", "model": "n"},
            {**server, "name": "keyed", "model": "m", "api_key_env": "NO_SUCH_KEY"},
            {"kind": "mqtt", "name": "lab", "agent": "lab", "broker": broker.url},
        )
    assert "no engine binary '/no/such/fish'" in checks["player fish"].detail
    assert "/no/such/model" in checks["player local"].detail
    assert checks["player there"].state == "ok"
    assert "has no model 'n' in its list: m" in checks["player other"].detail
    assert "NO_SUCH_KEY is not set" in checks["player keyed"].detail
    assert "lab is not online: arena agent connect mqtt://" in checks["player lab"].detail
    assert "player random" not in checks
    gone = configured(
        {**server, "name": "there", "model": "m"},
        {"kind": "mqtt", "name": "lab", "agent": "lab", "broker": broker.url},
    )
    assert [check.state for check in gone.values()] == ["warn", "warn"]


def test_a_player_that_is_online_is_told(tmp_path: Path) -> None:
    async def announce(url: str) -> None:
        async with connection(url) as client:
            await client.publish("madang/agents/lab/status", "online", qos=1, retain=True)

    with running_broker(tmp_path) as broker:
        asyncio.run(announce(broker.url))
        checks = configured({"kind": "mqtt", "name": "lab", "agent": "lab", "broker": broker.url})
    assert checks["player lab"].detail.endswith("answers, lab is online")


def test_the_command_asks_for_a_configuration_s_players(tmp_path: Path) -> None:
    config = tmp_path / "cup.toml"
    config.write_text(
        '[[games]]\ngame = "chess"\n[[players]]\nkind = "random"\n'
        '[[players]]\nkind = "uci"\nname = "fish"\npath = "/no/such/fish"\n'
    )
    done = CliRunner().invoke(app, ["doctor", str(config), "--json"])
    assert done.exit_code == 0
    names = {check["name"]: check["state"] for check in json.loads(done.stdout)["checks"]}
    assert names["player fish"] == "warn"
    assert "python" in names


def test_a_missing_package_is_named_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("chess", "no-such-package"))
    monkeypatch.setattr(doctor, "LOCAL", ("no-such-engine",))
    checks = by_name()
    assert checks["packages"] == Check(
        "packages", "fail", "missing no-such-package: pip install madang"
    )
    assert checks["local engine"].state == "warn"
    assert "madang[local]" in checks["local engine"].detail


def test_a_missing_engine_names_its_debian_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ENGINES", ("no-such-fish",))
    assert by_name()["no-such-fish"].detail == "not here: apt-get install no-such-fish"


def test_a_broken_torch_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = subprocess.CompletedProcess([], 1, "", "Traceback\nOSError: libx.so is missing")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: broken)
    assert by_name()["torch"].detail == "cannot be imported: OSError: libx.so is missing"


def test_a_check_that_breaks_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(path: Path) -> Any:
        raise OSError("no such disk")

    monkeypatch.setattr(shutil, "disk_usage", breaks)
    assert "no such disk" in by_name()["space"].detail


def test_no_clash_here() -> None:
    assert clashes() == []


def test_a_foreign_package_of_our_name_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        if name == "agents":
            return ModuleSpec(name, None, origin=str(tmp_path / "agents" / "__init__.py"))
        return real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    (sentence,) = clashes()
    assert sentence.startswith("the import name 'agents' belongs to ")
    assert "\n" not in sentence


def test_a_known_namesake_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.distribution
    monkeypatch.setattr(
        importlib.metadata,
        "distribution",
        lambda name: real("chess") if name == "openai-agents" else real(name),
    )
    assert any("pip uninstall openai-agents" in sentence for sentence in clashes())
