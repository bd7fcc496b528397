"""Games of other programs: they arrive move for move, and what cannot be read is named."""

import io
from pathlib import Path

import chess.pgn
import pytest
from typer.testing import CliRunner

from arena.cli import app
from arena.importing import import_games
from arena.records import Termination
from arena.report import export, standings, summary_text
from arena.store import Store, StoreError, queries
from arena.store.maintenance import check

PGN = """\
[Event "Club"]
[White "Ann"]
[Black "Bob"]
[Result "0-1"]

1. f3 {[%clk 0:05:00] [%emt 0:00:01.500]} e5 {[%eval -0.80]} 2. g4 {[%eval -3.10]} Qh4# 0-1

[Event "Club"]
[White "Bob"]
[Black "Ann"]
[Result "1-0"]
[Termination "time forfeit"]

1. e4 e5 1-0

[White "Bob"]
[Black "Ann"]
[Result "*"]

1. e4 e9 *

[White "Ann"]
[Black "Cat"]
[Result "*"]

1. d4 *
"""


def test_a_pgn_file_becomes_a_run(tmp_path: Path) -> None:
    file = tmp_path / "club.pgn"
    file.write_text(PGN)
    with Store.open(tmp_path / "a.db") as store:
        found = import_games(store, file)
        assert (found.games, len(found.faults)) == (3, 1)
        assert "e9" in str(found.faults[0])
        mate, flag, open_ = queries.games_with_moves(store, found.run_id)
        assert (mate.first, mate.result, mate.termination, mate.ending) == (
            "Ann", "0-1", "checkmate", "board",
        )  # fmt: skip
        assert [move.san for move in mate.moves] == ["f3", "e5", "g4", "Qh4#"]
        assert [move.score_cp for move in mate.moves] == [None, 80, -310, None]
        assert (mate.moves[0].seconds, mate.moves[0].clock_s) == (1.5, 300.0)
        assert (flag.result, flag.termination) == ("1-0", Termination.IMPORTED)
        assert (flag.ending, flag.detail) == ("imported", "time forfeit")
        assert (open_.result, open_.rated) == ("*", False)
        (table,) = standings(store, found.run_id)["games"]
        assert {row["name"]: row["games"] for row in table["players"]} == {
            "Bob": 2,
            "Ann": 2,
            "Cat": 0,
        }
        assert "time forfeit" not in summary_text(store, found.run_id)
        assert check(store) == []
        export(store, found.run_id, tmp_path / "again.pgn")
    again = chess.pgn.read_game(io.StringIO((tmp_path / "again.pgn").read_text()))
    assert again is not None
    assert [move.uci() for move in again.mainline_moves()] == ["f2f3", "e7e5", "g2g4", "d8h4"]


def test_gib_comes_back_as_it_went_out(tmp_path: Path) -> None:
    words = ["play", "random", "material", "-g", "janggi", "--setup", "bnnb/nbnb", "-q"]
    db = str(tmp_path / "a.db")
    CliRunner().invoke(app, [*words, "--max-plies", "40", "--at-cap", "points", "--db", db])
    file = tmp_path / "games.gib"
    with Store.open(db) as store:
        export(store, 1, file)
    done = CliRunner().invoke(app, ["import", str(file), "--db", db])
    assert done.stdout == f"Wrote 2 games of {file} as run 2 of {db}.\n"
    with Store.open(db) as store:
        ours, theirs = (queries.games_with_moves(store, run_id) for run_id in (1, 2))
    for mine, other in zip(ours, theirs, strict=True):
        assert [m.uci for m in other.moves] == [m.uci for m in mine.moves]
        assert [m.fen for m in other.moves] == [m.fen for m in mine.moves]
        assert (other.first, other.second, other.result) == (mine.first, mine.second, mine.result)
    shown = CliRunner().invoke(app, ["show", "3", "--db", db])
    assert shown.exit_code == 0
    assert "rules" in shown.stdout


def test_faults_are_one_line(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pgn"
    empty.write_text("")
    with Store.open(tmp_path / "a.db") as store:
        for file, words in (
            (tmp_path / "none.pgn", "No such file"),
            (empty, "no game can be read"),
            (tmp_path / "games.txt", "import takes .pgn and .gib files"),
        ):
            with pytest.raises(StoreError, match=words):
                import_games(store, file)
        assert queries.runs(store) == []


def test_an_imported_run_is_not_resumed(tmp_path: Path) -> None:
    file = tmp_path / "club.pgn"
    file.write_text(PGN)
    db = str(tmp_path / "a.db")
    CliRunner().invoke(app, ["import", str(file), "--db", db])
    done = CliRunner().invoke(app, ["resume", "--db", db])
    assert "holds games of club.pgn" in str(done.exception)
    for command in ("watch", "stats", "crosstable", "standings", "status", "show"):
        assert CliRunner().invoke(app, [command, "--db", db]).exit_code == 0, command
