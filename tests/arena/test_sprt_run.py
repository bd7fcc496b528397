"""Sequential tests as tournaments: decided by pairs in their order, resumable, told everywhere."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arena.cli import app
from arena.config import ConfigError, build_config, resolved
from arena.plan import make_plan
from arena.records import Result, Slot
from arena.report import standings, standings_text
from arena.schedule import Base, SectionPlan, bases
from arena.sprt import Sprt
from arena.sprt_rounds import SprtRounds
from arena.store import Store, queries
from arena.tournament import infos

from .test_rounds import play_on
from .test_tournament import configured, moves_by_slot

RESULTS: tuple[Result, ...] = ("1-0", "1/2-1/2", "0-1")
PLAYERS = [{"kind": "material"}, {"kind": "random"}]
TEST = {"elo0": 0, "elo1": 300, "max_pairs": 40}
SECTION = {"game": "chess", "format": "sprt", "sprt": TEST, "max_plies": 30, "at_cap": "material"}


def plan(ahead: int, max_pairs: int = 500) -> SectionPlan:
    test = Sprt(0, 40, max_pairs=max_pairs)
    return SectionPlan("chess", "standard", "sprt", ("a", "b"), sprt=test, ahead=ahead)


def drawn(slot: Slot) -> Result:
    """The result a slot has in every order of play; `a` is the better one."""
    weights = (4, 3, 2) if slot.first == "a" else (2, 3, 4)
    return random.Random(slot.id).choices(RESULTS, weights)[0]


def play(of: SectionPlan, seed: int) -> tuple[SprtRounds, list[Slot]]:
    """Games end in any order, up to `2 · ahead` in flight."""
    rounds = SprtRounds(of, 0, Base(1, 1), [], {})
    slots = flying = rounds.due()
    flying, order = list(slots), random.Random(seed)
    slots = list(slots)
    while flying:
        slot = flying.pop(order.randrange(len(flying)))
        rounds.record(slot, drawn(slot))
        due = rounds.due()
        slots += due
        flying += due
    return rounds, slots


def test_the_decision_does_not_depend_on_the_order_in_which_games_end() -> None:
    alone, few = play(plan(ahead=1), seed=0)
    assert alone.test.verdict == "H1"
    assert len(few) == 2 * alone.test.num_pairs
    for seed in range(5):
        rounds, slots = play(plan(ahead=6), seed)
        assert rounds.test.state() == alone.test.state()
        assert len(few) <= len(slots) <= len(few) + 2 * 6
        assert len({slot.id for slot in slots}) == len(slots)


def test_a_test_goes_on_from_what_is_recorded() -> None:
    whole, slots = play(plan(ahead=1), seed=0)
    for cut in range(0, len(slots), 7):
        results = {slot.id: drawn(slot) for slot in slots[:cut]}
        known = slots[: cut + cut % 2]
        again = SprtRounds(plan(ahead=1), 0, Base(1, 1), known, results)
        for slot in known[cut:]:
            again.record(slot, drawn(slot))
        more = [*known]
        while due := again.due():
            more += due
            for slot in due:
                again.record(slot, drawn(slot))
        assert more == slots
        assert again.test.state() == whole.test.state()


def test_it_ends_undecided_at_its_most_pairs_and_keeps_room_for_them() -> None:
    rounds, slots = play(plan(ahead=3, max_pairs=5), seed=0)
    assert rounds.test.verdict is None
    assert len(slots) == 10
    assert bases([plan(3, max_pairs=5), plan(3)]) == [Base(1, 1), Base(11, 6)]


def test_pairs_that_were_cut_short_count_for_nobody() -> None:
    rounds = SprtRounds(plan(ahead=2), 0, Base(1, 1), [], {})
    one, other, third, fourth = rounds.due()
    rounds.record(one, "1-0")
    rounds.record(third, "1-0")
    rounds.record(fourth, "0-1")
    assert rounds.test.num_pairs == 0
    rounds.record(other, "*")
    assert rounds.test.counts == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("stop_after", [None, 3])
def test_a_run_decides_alike_at_any_concurrency_and_resumed(
    tmp_path: Path, stop_after: int | None
) -> None:
    found = []
    for concurrency, stop in ((6, None), (1, stop_after)):
        config = configured(PLAYERS, SECTION, seed=4, concurrency=concurrency)
        with Store.open(tmp_path / f"{concurrency}.db") as store:
            run_id = asyncio.run(whole(config, store, stop))
            match = standings(store, run_id)["games"][0]["match"]
            found.append((match["a"], match["sprt"], moves_by_slot(store, run_id)))
            assert not store.open_slots(run_id)
            assert "H1 accepted (normalised Elo 300)" in standings_text(store, run_id)
            events = queries.events(store, run_id)
            told = [event.payload for event in events if event.kind == "sprt"]
            assert told[-1]["state"]["verdict"] == "H1"
            assert all(one["state"]["verdict"] is None for one in told[:-1])
    (name, verdict, many), (other, same, alone) = found
    assert (name, other) == ("material", "material")
    assert verdict == same
    assert alone.items() <= many.items()


async def whole(config: Any, store: Store, stop: int | None) -> int:
    from agents.factory import create_agents

    run_id = await store.create_run(
        name="t",
        seed=4,
        config=resolved(config),
        players=infos(config, create_agents(config.players)),
        slots=make_plan(config).slots,
    )
    for _ in range(99):
        if await play_on(config, store, run_id, stop) == "finished":
            return run_id
    raise AssertionError("the run never ends")


def test_on_the_command_line_the_ratio_is_told_live(tmp_path: Path) -> None:
    words = ["play", "material", "random", "--sprt", "0,300", "--pairs", "30", "-c", "2"]
    words += ["--max-plies", "30", "--at-cap", "material", "--db", str(tmp_path / "a.db")]
    out = CliRunner().invoke(app, words).stdout
    live = [line for line in out.splitlines() if line.startswith("LLR ")]
    assert len(live) >= 2
    assert "(-2.94, 2.94) [0, 300], pairs 0 ½ 1 1½ 2: " in live[0]
    assert live[-1].endswith("H1 accepted (normalised Elo 300) (material − random)")
    found = CliRunner().invoke(app, ["standings", "--json", "--db", str(tmp_path / "a.db")])
    assert json.loads(found.stdout)["games"][0]["match"]["sprt"]["decision"] == "H1"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sprt": None}, "go together"),
        ({"format": "match"}, "go together"),
        ({"pairs": 7}, "use sprt.max_pairs"),
        ({"swap": False}, "leave swap out"),
        ({"sprt": {"elo0": 5, "elo1": 5}}, "elo0 < elo1"),
        ({"sprt": {"elo0": 0, "elo1": 5, "max_pair": 3}}, "did you mean 'max_pairs'"),
        ({"sprt": {"elo0": 0}}, "elo1"),
    ],
)
def test_faults_are_one_line(change: dict[str, Any], words: str) -> None:
    table = {key: value for key, value in (SECTION | change).items() if value is not None}
    with pytest.raises(ConfigError, match=words):
        build_config({"games": [table], "players": PLAYERS})


def test_three_players_are_too_many() -> None:
    players = [*PLAYERS, {"kind": "random", "name": "third"}]
    with pytest.raises(ConfigError, match="an SPRT has two players, not 3"):
        build_config({"games": [SECTION], "players": players})
