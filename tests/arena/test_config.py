"""What a person may write wrongly in a TOML file, and the one line that each fault gets."""

from pathlib import Path
from typing import Any

import pytest

from arena.config import Config, ConfigError, build_config, load_config, resolved, restore

TWO: list[dict[str, Any]] = [{"kind": "random"}, {"kind": "material"}]
HALF = {"kind": "llm", "model": "m", "name": "half", "engine": {"kv_fraction": 0.5}}


def build(
    run: dict[str, Any] | None = None,
    players: Any = TWO,
    engine: Any = None,
    memory: Any = None,
    **game: Any,
) -> Config:
    table: dict[str, Any] = {"games": [{"game": "chess", **game}], "players": players}
    if run is not None:
        table["run"] = run
    if engine is not None:
        table["engine"] = engine
    if memory is not None:
        table["memory"] = memory
    return build_config(table)


def test_defaults() -> None:
    config = build()
    assert [spec.name for spec in config.players] == ["random", "material"]
    assert config.section_players(config.games[0]) == ("random", "material")


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ({"run": {"concurency": 3}}, ("run.concurency", "did you mean 'concurrency'")),
        ({"run": {"seed": -1}}, ("run.seed", "not -1")),
        ({"run": {"concurrency": 0}}, ("run.concurrency", "not 0")),
        ({"run": {"name": "a\x1bb"}}, ("run.name", "control character")),
        ({"game": "ches"}, ("unknown game 'ches'", "did you mean 'chess'")),
        ({"formatt": "match"}, ("games[1].formatt", "did you mean 'format'")),
        ({"format": "swis"}, ("games[1].format",)),
        ({"rules": "fairy"}, ("unknown rules of chess", "standard")),
        ({"setups": ["nbbn/nbbn"]}, ("unknown set-up of chess", "none")),
        ({"at_cap": "material"}, ("needs max_plies",)),
        ({"at_cap": "points", "max_plies": 9}, ("chess has no points",)),
        ({"rounds": 3}, ("rounds belongs to format = 'swiss'",)),
        ({"tc": "fast"}, ("time control 'fast'", "10+0.1")),
        ({"draw": {"movecout": 3}}, ("games[1].draw.movecout", "did you mean 'movecount'")),
        ({"draw": {"movecount": 0}}, ("games[1].draw", "movecount is 1 or more")),
        ({"resign": {"score": 0}}, ("games[1].resign", "1 or more")),
        ({"openings": {"file": "x", "odrer": "random"}}, ("odrer", "did you mean 'order'")),
        ({"players": []}, ("[[players]]", "at least one")),
        ({"players": [{"kind": "random"}]}, ("one player (random) cannot play alone",)),
        ({"players": [{"kind": "randm"}]}, ("players[1]", "did you mean 'random'")),
        ({"players": [*TWO, {"kind": "uci"}]}, ("players[3]", "path")),
        ({"players": [{"kind": "random", "nme": "x"}]}, ("players[1]", "did you mean 'name'")),
        ({"engine": {"max_num_seq": 4}}, ("engine", "did you mean 'max_num_seqs'")),
        ({"memory": {"weight_bytes": 4}}, ("memory.weight_bytes", "did you mean 'weights_bytes'")),
        ({"memory": {"weights_bytes": 0}}, ("memory.weights_bytes", "not 0")),
        ({"players": [*TWO, HALF]}, ("half: kv_fraction is a part of [memory] kv_cache_bytes",)),
    ],
)
def test_one_line_names_the_key_and_the_fix(table: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        build(**table)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_unknown_table_at_the_top() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'playrs' \(did you mean 'players'\?\)"):
        build_config({"games": [{"game": "chess"}], "players": TWO, "playrs": []})


def test_players_of_a_section_must_exist_once_and_be_two() -> None:
    with pytest.raises(ConfigError, match="unknown player 'randon'"):
        build_config(
            {"games": [{"game": "chess", "players": ["randon", "material"]}], "players": TWO}
        )
    with pytest.raises(ConfigError, match="named twice"):
        build_config(
            {"games": [{"game": "chess", "players": ["random", "random"]}], "players": TWO}
        )
    with pytest.raises(ConfigError, match="a match has two players, not 3"):
        build(players=[*TWO, {"kind": "random", "name": "third"}], format="match")


def test_openings_and_setups_contradict() -> None:
    with pytest.raises(ConfigError, match="keep one of them"):
        build_config(
            {
                "games": [{"game": "janggi", "setups": ["nbbn/nbbn"], "openings": "x.epd"}],
                "players": TWO,
            }
        )


def test_two_players_of_one_name_also_in_another_unicode_form() -> None:
    with pytest.raises(ConfigError, match="two players are called 'é'"):
        build(players=[{"kind": "random", "name": "é"}, {"kind": "random", "name": "e\u0301"}])


@pytest.mark.parametrize("name", ["마당 😀", "שלום", "a'b\"c", "x" * 80, "[bold]no[/bold]"])
def test_any_printable_name_is_a_name(name: str) -> None:
    config = build(players=[{"kind": "random", "name": name}, {"kind": "material"}])
    assert config.players[0].name == name


def test_engine_defaults_go_under_a_players_own() -> None:
    model = {"kind": "llm", "model": "m", "engine": {"max_num_seqs": 2}}
    config = build(
        players=[model, {"kind": "random"}], engine={"max_num_seqs": 8, "block_size": 32}
    )
    spec = config.players[0]
    assert spec.kind == "llm"
    assert (spec.engine.max_num_seqs, spec.engine.block_size) == (2, 32)


def test_resolved_configuration_comes_back_equal() -> None:
    config = build(
        run={"seed": 7, "name": "이름"},
        max_plies=40,
        at_cap="material",
        draw={"movecount": 4},
        openings={"file": "b.epd", "order": "random"},
        engine={"max_num_seqs": 4, "kv_fraction": 0.5},
        memory={"weights_bytes": 10**9, "kv_cache_bytes": 10**8},
        players=[{"kind": "llm", "model": "m"}, {"kind": "llm", "model": "m", "mode": "choice"}],
    )
    assert restore(resolved(config)) == config


def test_file_faults(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: no such file; `arena init"):
        load_config(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[run\n")
    with pytest.raises(ConfigError, match=r"bad\.toml: not TOML"):
        load_config(bad)
    bad.write_bytes(b"\xff\xfe[run]")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(bad)
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(tmp_path)


def test_a_relative_book_lies_beside_its_config(tmp_path: Path) -> None:
    file = tmp_path / "cup.toml"
    file.write_text(
        '[[games]]\ngame = "chess"\nopenings = "book.epd"\n'
        '[[players]]\nkind = "random"\n[[players]]\nkind = "material"\n'
    )
    openings = load_config(file).games[0].openings
    assert openings is not None
    assert openings.file == str(tmp_path / "book.epd")


def test_overrides_win(tmp_path: Path) -> None:
    file = tmp_path / "cup.toml"
    file.write_text(
        '[run]\nseed = 1\n[[games]]\ngame = "chess"\n'
        '[[players]]\nkind = "random"\n[[players]]\nkind = "material"\n'
    )
    assert load_config(file, {"seed": 9}).run.seed == 9


def test_the_demo_is_twelve_games_and_a_warm_up() -> None:
    from arena.plan import make_plan

    demo = Path(__file__).resolve().parents[2] / "examples" / "demo.toml"
    config = load_config(demo)
    slots = make_plan(config).slots
    warm_up = [slot for slot in slots if "random" in (slot.first, slot.second)]
    assert (len(slots), len(warm_up)) == (16, 4)
    assert all("material" in (slot.first, slot.second) for slot in warm_up)
    assert config.run.concurrency >= len(slots)
    assert {section.max_plies for section in config.games} == {40}
    assert {(section.game, section.at_cap) for section in config.games} == {
        ("chess", "material"),
        ("janggi", "points"),
    }
