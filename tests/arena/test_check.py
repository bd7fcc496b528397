"""`arena check`: what is found of players of every kind, and how it ends."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.mqtt_wire import connection, correlation_of, properties
from agents.spec import load_spec, parse_spec
from agents.uci_client import find_binary
from arena.check import Options, Report, check_player
from arena.cli import app
from tests.agents.broker import running_broker
from tests.agents.endpoint_double import Reply, serving
from tests.agents.test_mqtt import running

HOSTILE = Path(__file__).resolve().parents[1] / "agents" / "hostile_uci.py"
SHORT = Options(plies=4, move_s=20)


def checked(text: str, options: Options = SHORT) -> Report:
    return asyncio.run(check_player(parse_spec(text), options))


def found(report: Report) -> dict[str, tuple[str, str]]:
    return {check.name: (check.state, check.detail) for check in report.checks}


def arena(*args: str, code: int) -> str:
    result = CliRunner().invoke(app, ["check", *args])
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_good_player_plays_both_sides_of_both_games() -> None:
    report = checked("material")
    assert report.fit
    assert [(game.game, game.side, game.record.plies) for game in report.games] == [
        ("chess", "white", 4),
        ("chess", "black", 4),
        ("janggi", "cho", 4),
        ("janggi", "han", 4),
    ]
    assert found(report)["faults"] == ("ok", "none")


@pytest.mark.parametrize(
    ("behaviour", "end"),
    [("illegal", "illegal"), ("flood", "unparsable"), ("crash", "bug"), ("stall", "stall")],
)
def test_what_would_cost_games_fails(behaviour: str, end: str) -> None:
    options = Options(("chess",), plies=4, move_s=0.2)
    report = checked(f"scripted:{behaviour}", options)
    assert not report.fit
    assert {game.record.termination for game in report.games} == {end}
    assert f"games ended by {end}: 2" in found(report)["faults"][1]


def test_a_player_that_cannot_start_is_told_in_one_line() -> None:
    report = checked("uci:/no/such/engine")
    assert not report.fit
    (start,) = report.checks
    assert (start.name, start.state) == ("start", "fail")
    assert "no engine binary" in start.detail


def test_an_engine_is_checked_in_the_games_it_plays() -> None:
    if find_binary("stockfish") is None:
        pytest.skip("skipped: no stockfish (Debian: apt install stockfish)")
    report = checked("stockfish?nodes=20")
    assert report.fit
    assert found(report)["janggi"][0] == "warn"
    assert not checked("stockfish?nodes=20", Options(("janggi",), 4)).fit


def test_a_dying_engine_is_counted() -> None:
    spec = load_spec({"kind": "uci", "path": sys.executable, "args": (str(HOSTILE), "crash")})
    report = asyncio.run(check_player(spec, Options(("chess",), 4)))
    assert not report.fit
    state, words = found(report)["faults"]
    assert state == "warn"
    assert "processes that crashed or stalled: 2" in words
    assert "games ended by crash: 2" in words


def endpoint(url: str, **more: Any) -> Report:
    data = {"kind": "endpoint", "model": "m", "base_url": f"{url}/v1", "retries": 0, **more}
    return asyncio.run(check_player(load_spec(data), Options(("chess",), 2, 20, 200)))


def test_an_endpoint_that_obeys_and_one_that_lies() -> None:
    def obeys(path: str, body: Any) -> Reply:
        held = body.get("structured_outputs")
        return Reply((held["choice"][0] if held else "no idea",))

    more = {"mode": "constrained", "constraint": "structured_outputs"}
    with serving(obeys) as double:
        good, free = endpoint(double.url, **more), endpoint(double.url)
    assert good.fit
    assert found(good)["context"][0] == found(good)["constraint"][0] == "ok"
    assert free.fit, "a model that answers unreadably plays badly, but it plays"
    assert found(free)["chess as white"][0] == "warn"
    assert "unparsable: 6" in found(free)["faults"][1]
    with serving(lambda path, body: Reply(("Paris",), context=90)) as double:
        bad = endpoint(double.url, **more)
    assert not bad.fit
    assert found(bad)["context"][0] == found(bad)["constraint"][0] == "fail"
    ends = {game.record.termination for game in bad.games}
    assert ends <= {"constraint_ignored", "prompt_truncated"}


def test_a_remote_player_is_checked_with_its_strays(tmp_path: Path) -> None:
    async def answers(url: str, *, strays: int) -> None:
        """Plays the first legal move, and answers questions that nobody asked."""
        async with connection(url) as client:
            await client.subscribe("madang/agents/lab/request", qos=1)
            await client.publish("madang/agents/lab/status", "online", qos=1, retain=True)
            async for message in client.messages:
                assert isinstance(message.payload, bytes)
                move = json.loads(message.payload)["legal"][0]
                for number in range(strays):
                    stray = properties(f"nobody.{number}".encode())
                    await client.publish("madang/agents/lab/answer", move, qos=1, properties=stray)
                right = properties(correlation_of(message))
                await client.publish("madang/agents/lab/answer", move, qos=1, properties=right)

    async def both(url: str) -> tuple[Report, Report]:
        spec = load_spec({"kind": "mqtt", "broker": url, "agent": "lab", "stall_timeout": 60})
        reports = []
        for strays in (0, 2):
            async with running(answers(url, strays=strays)):
                reports.append(await check_player(spec, SHORT))
        return reports[0], reports[1]

    with running_broker(tmp_path) as broker:
        good, noisy = asyncio.run(asyncio.wait_for(both(broker.url), 100))
    assert good.fit
    assert noisy.fit
    assert found(good)["faults"] == ("ok", "none")
    assert found(noisy)["faults"] == ("warn", "answers to no open request: 16")


def test_on_the_command_line(tmp_path: Path) -> None:
    out = arena("random", "--plies", "4", code=0)
    assert "  ok  chess as black: 4 plies, cut_short\n" in out
    assert out.endswith("random is fit to play.\n")
    report = json.loads(arena("scripted:illegal", "-g", "janggi", "--json", code=4))
    assert report["fit"] is False
    assert [game["termination"] for game in report["games"]] == ["illegal", "illegal"]
    config = tmp_path / "cup.toml"
    config.write_text(
        '[[games]]\ngame = "chess"\n[[players]]\nkind = "random"\nname = "lab"\n'
        '[[players]]\nkind = "material"\n'
    )
    assert "lab is fit" in arena("lab", "--config", str(config), "--plies", "2", code=0)
    result = CliRunner().invoke(app, ["check", "lob", "--config", str(config)])
    assert "has no player 'lob' (did you mean 'lab'?): lab, material" in str(result.exception)
