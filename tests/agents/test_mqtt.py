"""Remote players through a real mosquitto, which is killed and restarted in mid-game."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from agents.base import AgentError, Decision, Turn
from agents.material import MaterialAgent
from agents.mqtt import MqttAgent
from agents.mqtt_client import MqttClient
from agents.mqtt_wire import connection, correlation_of, decode_turn, encode_turn, properties
from agents.random_move import RandomAgent
from agents.spec import MaterialSpec, MqttSpec, RandomSpec
from arena.match import Limits, play
from arena.records import GameRecord, MoveRecord, Slot
from games.registry import get_game

from .broker import Broker
from .kit import ROOT, position, turn

PLIES = 12
SLOT = Slot(1, "chess", "fide", "far", "near", 1)


def agent(broker: Broker, **more: object) -> MqttAgent:
    data = {"name": "far", "broker": broker.url, "agent": "lab", **more}
    return MqttAgent(MqttSpec.model_validate(data))


class Counting(MaterialAgent):
    """Counts how often it is asked about each position."""

    def __init__(self) -> None:
        super().__init__(MaterialSpec())
        self.asked: list[int] = []

    async def choose(self, turn: Turn) -> Decision:
        self.asked.append(len(turn.state.moves))
        return await super().choose(turn)


async def game(
    far: MqttAgent, at_ply: dict[int, Callable[[], None]]
) -> tuple[GameRecord, list[MoveRecord]]:
    """A game of the remote player against random moves; `at_ply` is called after those plies."""
    moves: list[MoveRecord] = []

    async def kept(move: MoveRecord) -> None:
        moves.append(move)
        if act := at_ply.get(move.ply):
            act()

    near = RandomAgent(RandomSpec(name="near"))
    limits = Limits(max_plies=PLIES)
    start = get_game("chess").start()
    return await play("1", SLOT, start, (far, near), limits, 1, kept), moves


async def ended(task: "asyncio.Task[None]") -> None:
    while not task.done():
        task.cancel()  # a publish that is just acknowledged swallows one
        await asyncio.wait({task}, timeout=0.1)


@contextlib.asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Something that goes on meanwhile, and is cancelled afterwards."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await ended(task)


def test_a_request_survives_its_json() -> None:
    for name, moves in (("chess", ("e2e4", "c7c5")), ("janggi", ("a4b4",))):
        asked = turn(position(name, *moves), plies_left=7, draw_offered=True)
        got = decode_turn(json.loads(encode_turn(asked, "uci", "")))
        assert (got.state.fen(), got.state.moves) == (asked.state.fen(), asked.state.moves)
        assert (got.seed, got.clocks, got.plies_left) == (asked.seed, asked.clocks, 7)


def test_the_broker_dies_in_mid_game_and_nothing_happens_twice(broker: Broker) -> None:
    async def scenario() -> None:
        far, player = agent(broker), Counting()
        async with running(MqttClient(player, broker.url, "lab").run()):
            await far.start()
            record, moves = await game(far, {2: broker.kill})
        await far.close()
        assert [move.ply for move in moves] == list(range(1, PLIES + 1))
        assert record.plies == PLIES
        assert player.asked == list(range(0, PLIES, 2)), "a position was asked about twice"
        assert far.connections >= 2

    async def with_restart() -> None:
        async def restart() -> None:
            while broker.process.poll() is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)  # both ends find nobody for a while
            broker.start()

        async with running(restart()):
            await asyncio.wait_for(scenario(), 60)

    asyncio.run(with_restart())


def test_a_client_that_comes_back_gets_the_whole_game(broker: Broker) -> None:
    async def scenario() -> None:
        far = agent(broker)
        first = asyncio.create_task(MqttClient(Counting(), broker.url, "lab").run())
        await far.start()
        state = position("chess", "e2e4", "e7e5")
        assert (await far.choose(turn(state))).kind == "move"
        await ended(first)
        asked = asyncio.create_task(far.choose(turn(state)))
        await asyncio.sleep(0.1)  # the request goes to nobody
        fresh = Counting()
        async with running(MqttClient(fresh, broker.url, "lab").run()):
            decision = await asyncio.wait_for(asked, 30)
        await far.close()
        assert decision.kind == "move"
        assert fresh.asked == [2]

    asyncio.run(scenario())


def test_floods_strays_and_bad_answers(broker: Broker) -> None:
    """Answers to nothing are dropped; a bad answer is asked again with a note, then forfeits."""
    notes: list[str] = []

    async def hostile() -> None:
        async with connection(broker.url) as client:
            await client.subscribe("madang/agents/lab/request", qos=1)
            await client.publish("madang/agents/lab/status", "online", qos=1, retain=True)
            async for message in client.messages:
                assert isinstance(message.payload, bytes)
                notes.append(message.payload.decode())
                to = "madang/agents/lab/answer"
                for stray in (b"", b"0", b"\xff" * 9):
                    await client.publish(to, "e2e4", qos=1, properties=properties(stray))
                right = properties(correlation_of(message))
                await client.publish(to, b"\xff\x00" * 50_000, qos=1, properties=right)
                await client.publish(to, "e2e4", qos=1, properties=right)

    async def scenario() -> None:
        far = agent(broker, policy={"attempts": 2})
        async with running(hostile()):
            await far.start()
            decision = await far.choose(turn(position("chess")))
            async with asyncio.timeout(20):
                while far.dropped < 7:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        await far.close()
        assert decision.kind == "forfeit"
        assert decision.reason in ("truncated", "unparsable")
        assert len(decision.attempts) == 2

    asyncio.run(scenario())
    assert '"note": ""' in notes[0]
    assert '"note": ""' not in notes[1]


def test_the_policy_of_a_remote_player_is_kept(broker: Broker) -> None:
    async def says_nothing() -> None:
        async with connection(broker.url) as client:
            await client.subscribe("madang/agents/lab/request", qos=1)
            await client.publish("madang/agents/lab/status", "online", qos=1, retain=True)
            async for message in client.messages:
                right = properties(correlation_of(message))
                await client.publish("madang/agents/lab/answer", "hm", qos=1, properties=right)

    async def scenario() -> None:
        hasty = agent(broker, policy={"seconds": 1e-6, "then": "random_move", "attempts": 9})
        async with running(says_nothing()):
            await hasty.start()
            decision = await hasty.choose(turn(position("chess")))
        await hasty.close()
        assert decision.random_move
        assert decision.move in position("chess").legal_moves()
        assert [attempt.kind for attempt in decision.attempts] == ["unparsable"]

    asyncio.run(scenario())


def test_silence_is_a_stall_and_absence_a_refusal_to_start(broker: Broker) -> None:
    async def scenario() -> None:
        absent = agent(broker, startup_timeout=0.3)
        with pytest.raises(AgentError, match="arena agent connect mqtt://"):
            await absent.start()
        await absent.close()
        silent = agent(broker, stall_timeout=0.3)
        async with connection(broker.url) as client:
            await client.publish("madang/agents/lab/status", "online", qos=1, retain=True)
            await silent.start()
            decision = await silent.choose(turn(position("chess")))
        await silent.close()
        assert (decision.kind, decision.reason) == ("forfeit", "stall")

    asyncio.run(scenario())


def test_no_broker_is_one_line(broker: Broker) -> None:
    broker.kill()

    async def scenario() -> None:
        far = agent(broker, startup_timeout=0.5)
        with pytest.raises(AgentError, match="refused"):
            await far.start()
        await far.close()

    asyncio.run(scenario())


def test_the_reference_client_is_short() -> None:
    source = (ROOT / "agents/mqtt_client.py").read_text("utf-8")
    assert len(source.splitlines()) < 80
