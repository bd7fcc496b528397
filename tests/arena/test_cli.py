"""The command line: exit codes, one-line faults, JSON, and how little it imports at the start."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arena import cli
from arena.cli import app, exit_code
from arena.config import ConfigError, load_config
from arena.store import Store, queries

ROOT = Path(__file__).resolve().parents[2]
CAPPED = ("--max-plies", "8", "--at-cap", "material")


def arena(*args: str, code: int = 0, text: str | None = None) -> str:
    """Standard output of a command in this process; its exit code is checked."""
    result = CliRunner().invoke(app, list(args), input=text)
    found = result.exit_code
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        assert isinstance(result.exception, Exception)
        given = exit_code(result.exception)
        if given is None:
            raise result.exception
        assert "\n" not in str(result.exception)
        found = given
    assert found == code, result.output
    return result.stdout


def fault(*args: str, code: int = 2) -> str:
    """The one line of a fault."""
    result = CliRunner().invoke(app, list(args))
    assert isinstance(result.exception, Exception), result.output
    assert exit_code(result.exception) == code
    return str(result.exception)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small finished run of both kinds of movers."""
    path = str(tmp_path_factory.mktemp("cli") / "small.db")
    arena("play", "random", "material", "--pairs", "2", "--db", path, "-q", *CAPPED)
    return path


def test_play_prints_lines_and_standings(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    out = arena("play", "random", "material", "-g", "janggi", "--db", path,
                "--max-plies", "6", "--at-cap", "points")  # fmt: skip
    assert "Started game 1 of 2 (random vs material)" in out
    assert re.search(r"Finished game 1 \(random vs material\): 0-1 \{Han wins by points .*\}", out)
    assert "janggi" in out
    assert "rating" in out


def test_standings_json_has_the_documented_shape(db: str) -> None:
    found = json.loads(arena("standings", "--db", db, "--json"))
    (game,) = found["games"]
    assert game["game"] == "chess"
    for player in game["players"]:
        wanted = {"name", "games", "score", "rating", "low", "high", "forfeits", "legality"}
        assert wanted <= player.keys()
        assert player["games"] == 4
    assert sum(player["score"] for player in game["players"]) == 4


def test_play_json_is_one_document(tmp_path: Path) -> None:
    out = arena("play", "random", "random", "--db", str(tmp_path / "a.db"), "--json", *CAPPED)
    assert json.loads(out)


def test_status_show_and_export(db: str, tmp_path: Path) -> None:
    assert "4 of 4 games finished" in arena("status", "--db", db)
    (run,) = json.loads(arena("status", "--db", db, "--json"))["runs"]
    assert (run["status"], run["open"], run["slots"]) == ("finished", 0, 4)
    assert len(arena("show", "--db", db).splitlines()) == 4
    one = arena("show", "1", "--db", db)
    assert "after ply 8: " in one
    assert "termination adjudicated_material" in one
    start = arena("show", "1", "--db", db, "--ply", "0")
    assert "8 r n b q k b n r" in start
    assert len(json.loads(arena("show", "1", "--db", db, "--json"))["moves"]) == 8
    pgn = tmp_path / "games.pgn"
    assert f"Wrote 4 games to {pgn}" in arena("export", str(pgn), "--db", db)
    assert pgn.read_text().count('[Result "') == 4


def test_faults_of_looking(db: str, tmp_path: Path) -> None:
    assert "no game 99" in fault("show", "99", "--db", db)
    assert "has 8 plies" in fault("show", "1", "--db", db, "--ply", "9")
    assert "no run 7" in fault("standings", "--db", db, "--run", "7")
    missing = str(tmp_path / "none.db")
    assert missing in fault("status", "--db", missing)
    assert not Path(missing).exists()
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be read as one" * 40)
    assert "is not a madang database" in fault("status", "--db", str(text))


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "new.db"
    with Store.open(path):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = path.read_bytes()
    assert "newer" in fault("status", "--db", str(path))
    assert path.read_bytes() == before


def test_faults_of_playing(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    assert "did you mean 'random'" in fault("play", "randm", "material", "--db", database)
    assert "unknown game 'go'" in fault("play", "random", "material", "-g", "go", "--db", database)
    assert "needs max_plies" in fault(
        "play", "random", "material", "--at-cap", "material", "--db", database
    )
    assert "no such file" in fault("run", str(tmp_path / "none.toml"))
    assert "No such file" in fault("play", "random", "material", "--openings", "x.epd")
    unwritable = str(tmp_path / "no" / "folder" / "a.db")
    assert unwritable in fault("play", "random", "material", "--db", unwritable)


def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["play", "uci:/no/such/fish", "random", "--db", str(tmp_path / "a.db"), *CAPPED]
    )
    assert result.exit_code == 4
    lines = [line for line in result.stderr.splitlines() if "/no/such/fish" in line]
    assert len(lines) == 1
    assert "arena resume 1" in result.stderr


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["play", "llm:/no/such/model:constrained", "random", "--db", str(tmp_path / "a.db")]
    )
    assert result.exit_code == 4
    assert "/no/such/model" in result.stderr


def test_unresolved_games_exit_with_three(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["play", "scripted:crash", "random", "--db", str(tmp_path / "a.db"), *CAPPED]
    )
    assert result.exit_code == 3
    assert "2 open. Go on with: arena resume 1" in result.stderr


def test_resume_of_a_finished_run_plays_nothing(db: str) -> None:
    assert "Every game of this run" in arena("resume", "--db", db)


def test_extend_adds_only_the_new_players_games(tmp_path: Path) -> None:
    config = tmp_path / "cup.toml"
    config.write_text(
        '[[games]]\ngame = "chess"\nmax_plies = 4\nat_cap = "draw"\n'
        '[[players]]\nkind = "random"\n[[players]]\nkind = "material"\n'
    )
    database = str(tmp_path / "a.db")
    arena("run", str(config), "--db", database, "-q")
    with Store.open(database) as store:
        before = queries.games_with_moves(store, 1)
    arena("extend", "1", "--add", "random?name=new", "--db", database, "-q")
    with Store.open(database) as store:
        after = queries.games_with_moves(store, 1)
        slots = queries.slots(store, 1)
        assert not store.open_slots(1)
    assert after[: len(before)] == before
    assert len(after) == 6
    assert all("new" in (game.first, game.second) for game in after[len(before) :])
    assert len({slot.pair for slot in slots}) == 3
    assert "two players are called 'new'" in fault(
        "extend", "1", "--add", "random?name=new", "--db", database
    )


def test_care_of_a_database(db: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    arena("db", "backup", str(copy), "--db", db)
    assert "is sound" in arena("db", "check", "--db", str(copy))
    arena("db", "vacuum", "--db", str(copy))
    assert "is there already" in fault("db", "backup", str(copy), "--db", db)


def test_a_shared_game_is_verified(db: str, tmp_path: Path) -> None:
    file = tmp_path / "game.html"
    arena("share", "1", str(file), "--db", db)
    assert "identical: 8 plies" in arena("verify", str(file))
    assert "4 games" in arena("publish", str(tmp_path / "site"), "--db", db)
    assert "no game 99" in fault("share", "99", str(file), "--db", db)


def test_dry_run_plays_nothing(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    out = arena("play", "random", "material", "--dry-run", "--db", str(database))
    assert "2 games" in out
    assert not database.exists()
    slots = json.loads(arena("play", "random", "material", "--dry-run", "--json"))["slots"]
    assert [slot["id"] for slot in slots] == [1, 2]


def test_dry_run_warns_of_games_that_would_repeat(tmp_path: Path) -> None:
    words = ["play", "scripted:d2d4", "scripted:e2e4", "--pairs", "3", "--dry-run"]
    done = CliRunner().invoke(app, [*words, "--db", str(tmp_path / "a.db")])
    assert "their games will repeat; add openings" in done.stderr
    done = CliRunner().invoke(app, [*words, "--openings", "builtin"])
    assert "repeat" not in done.stderr


def test_init_writes_what_run_can_play(tmp_path: Path) -> None:
    file = tmp_path / "cup.toml"
    arena("init", str(file), "--yes")
    config = load_config(file)
    assert [section.game for section in config.games] == ["chess", "janggi"]
    assert "exists already" in fault("init", str(file), "--yes")
    arena("init", str(file), "--yes", "--force")


def test_fresh_keeps_the_old_database(tmp_path: Path) -> None:
    config = tmp_path / "cup.toml"
    config.write_text(
        '[[games]]\ngame = "chess"\nmax_plies = 4\nat_cap = "draw"\n'
        '[[players]]\nkind = "random"\n[[players]]\nkind = "material"\n'
    )
    database = str(tmp_path / "a.db")
    for _ in range(3):
        arena("run", str(config), "--db", database, "--fresh", "-q")
    for path in (database, f"{database}.old-1", f"{database}.old-2"):
        with Store.open(path) as store:
            assert [len(queries.games(store, run.id)) for run in queries.runs(store)] == [2]
    with Store.open(database) as store:
        assert len(queries.runs(store)) == 1
    arena("run", str(config), "--db", database, "-q")
    with Store.open(database) as store:
        assert len(queries.runs(store)) == 2


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("perft", "chess", "--depth", "2"), "400"),
        (("perft", "janggi", "-d", "1", "--divide"), "a1a2: 1"),
        (("legal", "-m", "e2e4"), "20 legal moves: a7a5"),
        (("legal", "janggi", "--setup", "nbbn/nbbn"), "legal moves: "),
        (("legal", "janggi", "--board", "hanja"), "(漢)"),
        (("prompt", "-m", "e2e4"), "Moves: e2e4"),
        (("prompt", "--list"), "history"),
    ],
)
def test_commands_on_positions(args: tuple[str, ...], expected: str) -> None:
    assert expected in arena(*args)


def test_perft_and_legal_as_data() -> None:
    found = json.loads(arena("perft", "janggi", "--setup", "nbbn/bnnb", "-d", "2", "--json"))
    assert found["nodes"] == 1024
    found = json.loads(arena("legal", "chess", "--moves", "f2f3 e7e5 g2g4 d8h4", "--json"))
    assert found["side"] == "white"
    assert found["legal_moves"] == []
    assert found["in_check"] is True
    assert found["outcome"]["termination"] == "checkmate"


def test_convert_between_formats(tmp_path: Path) -> None:
    line = "startpos moves a4b4 i7h7\n"
    record = arena("convert", "-", "--from", "uci", "--to", "gib", "-g", "janggi", "-o",
                   str(tmp_path / "games.gib"), text=line)  # fmt: skip
    assert record == ""
    assert "a4b4 i7h7" in arena("convert", str(tmp_path / "games.gib"))
    pgn = arena("convert", "-", "--from", "uci", "--to", "pgn", text="startpos moves e2e4 e7e5")
    assert "1. e4 e5" in pgn


def test_parse_reads_as_the_referee(tmp_path: Path) -> None:
    assert arena("parse", "chess", text="I play **Nf3**.").strip() == "move g1f3"
    assert arena("parse", text="Ke5").startswith("illegal")
    cut = json.loads(arena("parse", "chess", "--truncated", "--json", text="<think>e4 or"))
    assert cut["kind"] == "truncated"
    answer = tmp_path / "answer.txt"
    answer.write_text("e4")
    found = json.loads(arena("parse", "chess", "--file", str(answer), "--json"))
    assert (found["kind"], found["uci"], found["span"]) == ("move", "e2e4", [0, 2])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("legal", "go"), "unknown game 'go'"),
        (("legal", "--fen", "nonsense"), "FEN"),
        (("legal", "-m", "e2e5"), "e2e5"),
        (("legal", "--board", "morse"), "morse"),
        (("convert", "games.gib"), "No such file"),
        (("convert", "games.pgn", "--to", "morse"), "--to morse: known are"),
        (("convert", "games"), "--from is missing"),
        (("prompt", "--template", "histori"), "did you mean 'history'"),
        (("perft", "--rules", "fairy"), "unknown chess rules"),
        (("parse", "--file", "/no/such/file"), "No such file"),
        (("model", "show", "smollm2-135n"), "smollm2-135m"),
        (("model", "path", "/no/such/model"), "/no/such/model"),
    ],
)
def test_faults_of_positions_are_one_line(args: tuple[str, ...], words: str) -> None:
    assert words in fault(*args)


def test_every_command_has_an_example_in_its_help() -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]
    assert len(names) >= 14
    for name in names:
        out = arena(name, "--help")
        assert f"arena {name}" in out.replace("Usage: arena", ""), name


def test_usage_faults_exit_with_two() -> None:
    assert CliRunner().invoke(app, ["run", "--bogus"]).exit_code == 2
    assert CliRunner().invoke(app, ["perft", "chess", "-d", "many"]).exit_code == 2


def test_errors_and_their_codes() -> None:
    from agents.base import AgentError

    assert exit_code(ConfigError("x")) == 2
    assert exit_code(AgentError("x")) == 4
    assert exit_code(RuntimeError("x")) is None


def run_main(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "arena.cli", *args],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )


def test_a_bug_is_a_trace_and_a_plea(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def breaks() -> None:
        raise ZeroDivisionError("broken on purpose")

    monkeypatch.setattr(cli, "app", breaks)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    err = capsys.readouterr().err
    assert "ZeroDivisionError: broken on purpose" in err
    assert "a bug of ours" in err


def test_a_busy_thread_does_not_hold_up_the_end() -> None:
    code = (
        "import threading, time; from arena import cli; cli.LINGER_S = 0.01\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print('said'); cli.leave(130)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=30
    )
    assert (done.returncode, done.stdout) == (130, "said\n")


def test_a_users_mistake_is_one_line_on_standard_error() -> None:
    done = run_main("run", "/no/such.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "arena: /no/such.toml: no such file; `arena init /no/such.toml` writes one"
    ]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, arena.cli\n"
        "heavy = {'torch', 'numpy', 'scipy', 'sqlalchemy', 'pydantic', 'tokenizers', 'chess', "
        "'engine', 'agents', 'fastapi'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
