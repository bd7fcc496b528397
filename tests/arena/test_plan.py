"""What is known and said before anything is played."""

from pathlib import Path
from typing import Any

import pytest

from agents.factory import create_agents
from arena.config import Config, ConfigError, build_config, load_config
from arena.plan import make_plan, repeat_warnings, with_positions
from arena.schedule import num_starts
from arena.tournament import infos
from games.registry import get_game

E4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
D4 = "rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1"
FIXED: list[dict[str, Any]] = [
    {"kind": "scripted", "name": "fixed"},
    {"kind": "scripted", "name": "fixed too"},
]


def configured(players: list[dict[str, Any]] = FIXED, **game: Any) -> Config:
    return build_config({"games": [{"game": "chess", **game}], "players": players})


def warned(config: Config) -> list[str]:
    plan = make_plan(config)
    return [*plan.warnings, *repeat_warnings(plan, infos(config, create_agents(config.players)))]


def book(folder: Path, *fens: str) -> str:
    path = folder / "book.epd"
    path.write_text("\n".join(fens))
    return str(path)


def test_deterministic_players_without_a_book_are_warned_of(tmp_path: Path) -> None:
    (warning,) = warned(configured(pairs=3))
    assert warning.startswith("chess: fixed, fixed too always answer alike and 3 pairs start")
    assert warned(configured(pairs=1)) == []
    assert len(warned(configured(pairs=3, openings=book(tmp_path, E4, D4)))) == 1
    assert warned(configured(pairs=2, openings=book(tmp_path, E4, D4))) == []
    random = [{"kind": "random"}, {"kind": "random", "name": "other"}]
    assert warned(configured(random, pairs=3)) == []


def test_what_depends_on_the_machines_speed_is_said() -> None:
    (clock,) = warned(configured(tc="10+0.1"))
    assert clock.endswith("timing-dependent: not reproducible")
    engine = {"kind": "uci", "path": "stockfish", "movetime": 10}
    assert "movetime" in warned(configured([engine, FIXED[0]]))[0]
    hasty = {"policy": {"seconds": 5}}
    asked: list[dict[str, Any]] = [
        {"kind": "llm", "model": "smollm2-135m", "mode": "free", **hasty},
        {"kind": "endpoint", "model": "m", "base_url": "http://host/v1", **hasty},
        {"kind": "mqtt", "agent": "lab", "broker": "mqtt://host", **hasty},
    ]
    for player in asked:
        (warning,) = make_plan(configured([player, FIXED[0]])).warnings
        assert warning.endswith("policy.seconds is timing-dependent: not reproducible")


def test_a_broken_book_is_refused_before_play(tmp_path: Path) -> None:
    path = book(tmp_path, E4, "nonsense")
    with pytest.raises(ConfigError, match=r"book\.epd:2: "):
        make_plan(configured(openings=path))


def test_pairs_start_from_the_book_in_turn(tmp_path: Path) -> None:
    plan = make_plan(configured(pairs=3, openings=book(tmp_path, E4, D4)))
    assert [slot.opening for slot in plan.slots] == [E4, E4, D4, D4, E4, E4]


def test_a_recorded_configuration_needs_its_book_no_more(tmp_path: Path) -> None:
    openings = {"file": book(tmp_path, E4, D4), "order": "random"}
    config = configured(pairs=2, openings=openings)
    plan = make_plan(config)
    recorded = with_positions(config, plan)
    Path(openings["file"]).unlink()
    assert make_plan(recorded).slots == plan.slots


def test_a_position_that_is_none_is_one_line() -> None:
    with pytest.raises(ConfigError, match="positions: not a chess FEN"):
        make_plan(configured(positions=["nonsense"]))


def test_janggi_setups_are_played_in_turn() -> None:
    setups = list(get_game("janggi").setups[:2])
    config = build_config(
        {"games": [{"game": "janggi", "pairs": 2, "setups": setups}], "players": FIXED}
    )
    slots = make_plan(config).slots
    assert [slot.setup for slot in slots] == [setups[0], setups[0], setups[1], setups[1]]


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_our_own_book_is_named_by_one_word(tmp_path: Path, game: str) -> None:
    file = tmp_path / "cup.toml"
    file.write_text(
        f'[[games]]\ngame = "{game}"\nopenings = "builtin"\npairs = 3\n'
        '[[players]]\nkind = "random"\n[[players]]\nkind = "material"\n'
    )
    slots = make_plan(load_config(file)).slots
    assert len({slot.opening for slot in slots}) == 3


@pytest.mark.parametrize(
    "keys",
    [
        {"format": "double_round_robin", "pairs": 3},
        {"format": "sprt", "sprt": {"elo0": 0, "elo1": 5, "max_pairs": 9}},
        {"format": "knockout", "pairs": 2},
        {"format": "gauntlet", "pairs": 4},
    ],
)
def test_a_recorded_configuration_draws_the_same_starts(keys: dict[str, Any]) -> None:
    """Also those that only later rounds, pairs or players use."""
    book = {"file": "builtin", "order": "random"}
    players = [{"kind": "random"}, {"kind": "material"}]
    config = build_config(
        {"games": [{"game": "chess", "openings": book, **keys}], "players": players}
    )
    plan = make_plan(config)
    again = make_plan(with_positions(config, plan))
    needed = max(num_starts(section) for section in plan.sections)
    (before,), (after,) = plan.sections, again.sections
    for cycle in range(needed):
        assert after.starts[cycle % len(after.starts)] == before.starts[cycle % len(before.starts)]
