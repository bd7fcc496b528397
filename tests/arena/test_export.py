"""Exports: what other programs read is what the store holds, whatever the names and answers."""

import asyncio
import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import chess.engine
import chess.pgn
import pytest

from agents.base import Attempt
from arena.records import Status, Termination
from arena.report import export
from arena.report.export import ExportError
from arena.store import Store, StoreError, queries
from games.janggi.gib import read_gib
from games.pgn import read_pgn

from .report_kit import agent, new_run, pair_slots, record

HOSTILE = 'e2e5} 1-0 [%clk 9:59:59] "; \n%x {(]\0 <think>' + "가" * 500
BLACK_TO_MOVE = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 3 3"
JANGGI = {"game": "janggi", "rules": "fairy", "setup": "nbbn/bnbn"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One run, read by every test."""
    with Store.open(tmp_path_factory.mktemp("export") / "a.db") as opened:
        write_run(opened)
        yield opened


def write_run(store: Store) -> None:
    name = 'A "quoted\\" {name}\n한국 ]'
    slots = pair_slots(name, "bob", 3)
    slots += pair_slots(name, "bob", 1, start=6, opening=BLACK_TO_MOVE)
    slots += pair_slots(name, "bob", 1, start=8, **JANGGI)
    run_id = new_run(store, [agent(name), agent("bob")], slots)
    refused = (Attempt(1, "illegal", answer=HOSTILE), Attempt(2, "illegal", uci="e2e9"))

    async def play() -> None:
        for number, slot in enumerate(slots[:-1]):
            result = ("1-0", "0-1", "1/2-1/2")[number % 3]
            await record(store, run_id, slot, result, plies=20 + number, refused=refused)  # type: ignore[arg-type]
        await record(
            store, run_id, slots[-1], "0-1", plies=5, failed=refused,
            termination=Termination.ILLEGAL, detail=HOSTILE,
        )  # fmt: skip

    asyncio.run(play())


def test_python_chess_reads_what_the_store_holds(store: Store, tmp_path: Path) -> None:
    assert export(store, 1, tmp_path / "g.pgn") == 10
    text = (tmp_path / "g.pgn").read_text()
    held = [game for game in queries.games_with_moves(store, 1) if game.game == "chess"]
    stream = io.StringIO(text)
    for game in held:
        node = chess.pgn.read_game(stream)
        assert node is not None
        assert node.errors == []
        board = node.board()
        assert board.fen() == game.start_fen
        sans = []
        for move in node.mainline_moves():
            sans.append(board.san(move))
            board.push(move)
        assert [m.uci for m in game.moves] == [m.uci() for m in node.mainline_moves()]
        assert sans == [m.san for m in game.moves]
        assert board.fen() == game.moves[-1].fen
        assert node.headers["Result"] == game.result
        assert node.headers["PlyCount"] == str(len(game.moves))
        third = node.next().next().next()  # type: ignore[union-attr]
        assert third is not None
        assert third.emt() == pytest.approx(3 / 8)
        assert third.clock() == pytest.approx(60 - 3 / 8)
        assert "refused: illegal (e2e5) 1-0 (％clk 9:59:59)" in " ".join(third.comment.split())
        by_white = third.turn() == chess.BLACK
        evaluation = third.eval()
        assert evaluation is not None
        assert evaluation.white() == chess.engine.Cp(20 if by_white else 35)


def test_our_reader_reads_both_games_back(store: Store, tmp_path: Path) -> None:
    export(store, 1, tmp_path / "g.pgn")
    reading = read_pgn((tmp_path / "g.pgn").read_bytes())
    assert reading.faults == ()
    held = queries.games_with_moves(store, 1)
    assert [[m.uci for m in game.moves] for game in reading.games] == [
        [m.uci for m in game.moves] for game in held
    ]
    assert [game.result for game in reading.games] == [game.result for game in held]
    assert [game.game for game in reading.games] == [game.game for game in held]


def test_janggi_goes_out_as_gib(store: Store, tmp_path: Path) -> None:
    assert export(store, 1, tmp_path / "g.gib") == 2
    reading = read_gib((tmp_path / "g.gib").read_bytes())
    assert reading.faults == ()
    held = [game for game in queries.games_with_moves(store, 1) if game.game == "janggi"]
    assert [[m.uci for m in game.moves] for game in reading.games] == [
        [m.uci for m in game.moves] for game in held
    ]
    assert [game.start_fen for game in reading.games] == [game.start_fen for game in held]


def test_csv_holds_every_game_and_every_move(store: Store, tmp_path: Path) -> None:
    export(store, 1, tmp_path / "games.csv")
    export(store, 1, tmp_path / "moves.csv")
    with (tmp_path / "games.csv").open(newline="", encoding="utf-8") as file:
        games = list(csv.DictReader(file))
    with (tmp_path / "moves.csv").open(newline="", encoding="utf-8") as file:
        moves = list(csv.DictReader(file))
    held = queries.games_with_moves(store, 1)
    assert [row["first"] for row in games] == [game.first for game in held]
    assert [row["result"] for row in games] == [game.result for game in held]
    assert [(int(m["game_id"]), m["uci"]) for m in moves] == [
        (game.id, m.uci) for game in held for m in game.moves
    ]


def test_final_and_first_refused_positions(store: Store, tmp_path: Path) -> None:
    export(store, 1, tmp_path / "final.epd")
    export(store, 1, tmp_path / "illegal.epd")
    held = [g for g in queries.games_with_moves(store, 1) if g.game == "chess"]
    final = (tmp_path / "final.epd").read_text().splitlines()
    for line, game in zip(final, held, strict=False):
        board, operations = chess.Board.from_epd(line)
        assert board.fen() == game.moves[-1].fen
        assert operations["id"] == f"game {game.id}"
    refused = (tmp_path / "illegal.epd").read_text().splitlines()
    boards = [chess.Board.from_epd(line) for line in refused[: 2 * len(held)]]
    assert boards[0][0].fen() == held[0].start_fen
    assert boards[0][1]["id"] == f"game {held[0].id} ply 1"
    assert len(refused) == 2 * 9 + 1  # both players of nine games, one of the last


def test_games_without_a_result_go_out_as_such(store: Store, tmp_path: Path) -> None:
    slots = pair_slots("ann", "bob", 1)
    run_id = new_run(store, [agent("ann"), agent("bob")], slots)
    asyncio.run(
        record(store, run_id, slots[0], "*", status=Status.ABORTED, termination="engine_error")
    )
    export(store, run_id, tmp_path / "g.pgn")
    node = chess.pgn.read_game(io.StringIO((tmp_path / "g.pgn").read_text()))
    assert node is not None
    assert (node.headers["Result"], node.headers["Termination"]) == ("*", "engine_error")


def test_files_that_cannot_be_written_are_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"cannot tell the format of 'g.txt': .*\.pgn"):
        export(store, 1, tmp_path / "g.txt")
    with pytest.raises(ExportError, match=r"cannot write .*none"):
        export(store, 1, tmp_path / "none" / "g.pgn")
    assert list(tmp_path.glob("*.part")) == []


def test_parquet_holds_what_the_store_holds(store: Store, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="no duckdb here (pip install madang[parquet])")
    assert export(store, 1, tmp_path / "games.parquet") == 10
    export(store, 1, tmp_path / "moves.parquet")
    held = queries.games_with_moves(store, 1)
    read = duckdb.connect()
    wanted = "SELECT id, first, setup, result, detail, rated, points_first FROM read_parquet(?)"
    games = read.execute(wanted, [str(tmp_path / "games.parquet")]).fetchall()
    assert games == [
        (g.id, g.first, g.setup, g.result, g.detail, g.rated, g.points_first) for g in held
    ]
    wanted = "SELECT game_id, ply, uci, seconds, clock_s, decode_s, ttft_s FROM read_parquet(?)"
    moves = read.execute(wanted, [str(tmp_path / "moves.parquet")]).fetchall()
    assert moves == [
        (g.id, m.ply, m.uci, m.seconds, m.clock_s, m.decode_s, m.ttft_s)
        for g in held
        for m in g.moves
    ]
    assert not list(tmp_path.glob("*.part*"))


def test_parquet_without_its_package_is_one_line(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(StoreError, match=r"pip install 'madang\[parquet\]'"):
        export(store, 1, tmp_path / "games.parquet")
    assert list(tmp_path.iterdir()) == []
