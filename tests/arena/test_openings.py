"""Books as the field has them. What the outside data taught is here in small."""

import gzip
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import chess.engine
import pytest

from agents.uci_client import find_binary
from arena.openings import BookError, builtin_book, pick, read_book
from games.registry import get_game

CHESS = get_game("chess")
SHARED = Path(os.environ.get("MADANG_SHARED", Path(__file__).resolve().parents[3] / "shared"))
OUTSIDE = SHARED / "data" / "openings"
E4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
D4 = "rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 3 7"


def write(folder: Path, data: str | bytes, name: str = "book.epd") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def fens(path: Path) -> list[str]:
    return [opening.fen for opening in read_book(path, CHESS).openings]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_marks(tmp_path: Path, end: str, mark: bytes) -> None:
    text = end.join([E4, "", "# a comment", f"  {D4}  "])
    assert fens(write(tmp_path, mark + text.encode())) == [E4, D4]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16(tmp_path: Path, encoding: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    assert fens(write(tmp_path, mark + E4.encode(encoding))) == [E4]


@pytest.mark.parametrize(
    ("line", "fen", "name"),
    [
        (D4, D4, ""),
        (D4.removesuffix(" 3 7"), D4.replace(" 3 7", " 0 1"), ""),
        (D4.replace(" 3 7", ' hmvc 3; fmvn 7; id "a; b";'), D4, "a; b"),
        (D4.replace(" 3 7", ' fmvn 7; hmvc 3; id "x"'), D4, "x"),
        (D4 + '; id "after six fields";', D4, "after six fields"),
        (D4.replace(" ", "\t", 2).replace(" 3", "  3"), D4, ""),
        (json.dumps({"fen": D4, "name": "N"}), D4, "N"),
    ],
)
def test_forms_of_one_line(tmp_path: Path, line: str, fen: str, name: str) -> None:
    (opening,) = read_book(write(tmp_path, line), CHESS).openings
    assert (opening.fen, opening.name, opening.line) == (fen, name, 1)


def test_latin1_names(tmp_path: Path) -> None:
    line = E4.replace(" 0 1", ' id "Königsindisch";').encode("latin-1")
    assert read_book(write(tmp_path, line), CHESS).openings[0].name == "Königsindisch"


def test_packed_by_content_not_by_name(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner.epd", E4)
    assert fens(write(tmp_path, packed.getvalue(), "a.epd")) == [E4]
    assert fens(write(tmp_path, gzip.compress(D4.encode()), "b.epd")) == [D4]
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("other.epd", D4)
    with pytest.raises(BookError, match="holds 2 files"):
        read_book(write(tmp_path, packed.getvalue(), "c.zip"), CHESS)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rnbqkbnr/ppp w", "fewer than four fields"),
        (E4.replace("PPPP1PPP", "PPPP1PP"), "8 columns"),
        (E4.replace("k", "q", 1), "no black king"),
        ("4k3/8/8/8/8/8/4R3/4K3 w - - 0 1", "opposite check"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "over here already"),
        (E4.replace(" 0 1", " hmvc x; fmvn 1;"), "whole numbers"),
        (E4 + "\x00", "control byte 0x00"),
        ('{"name": "x"}', "needs the key 'fen'"),
    ],
)
def test_broken_line_is_named_with_its_number(tmp_path: Path, line: str, reason: str) -> None:
    path = write(tmp_path, f"{E4}\n\n{line}\n{D4}\n")
    with pytest.raises(BookError) as caught:
        read_book(path, CHESS)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no positions"),
        (b"# nothing\n", "no positions"),
        (gzip.compress(E4.encode())[:-9], "damaged or cut"),
        (b"PK\x03\x04" + bytes(100), "damaged or cut"),
    ],
)
def test_broken_file(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(BookError, match=reason):
        read_book(write(tmp_path, data), CHESS)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BookError, match="No such file"):
        read_book(tmp_path / "none.epd", CHESS)


def test_pgn_starts_from_the_last_move_or_an_earlier_ply(tmp_path: Path) -> None:
    text = '[Event "one"]\r\n\r\n1. e4 e5 2. Nf3 *\r\n\r\n[Event "two"]\r\n\r\n1. d4 1-0\r\n'
    path = write(tmp_path, text, "book.pgn")
    whole = read_book(path, CHESS).openings
    assert [opening.fen.split()[1] for opening in whole] == ["b", "b"]
    assert [(opening.name, opening.line) for opening in whole] == [("one", 1), ("two", 5)]
    assert read_book(path, CHESS, plies=1).openings[0].fen == E4


def test_pgn_with_an_illegal_move_is_refused_and_a_cut_one_warned_of(tmp_path: Path) -> None:
    bad = write(tmp_path, '[Event "x"]\n\n1. e4 e5 2. Ke3 *\n', "bad.pgn")
    with pytest.raises(BookError, match=r"bad\.pgn:1: game 1: illegal san"):
        read_book(bad, CHESS)
    cut = write(tmp_path, '[Event "x"]\n\n1. e4 *\n\n[Event "y"]\n[Si', "cut.pgn")
    book = read_book(cut, CHESS)
    assert len(book.openings) == 1
    assert "ends inside game 2" in book.warnings[0]


def test_repeats_are_told(tmp_path: Path) -> None:
    book = read_book(write(tmp_path, f"{D4}\n{D4.replace('3 7', '0 9')}\n{E4}\n"), CHESS)
    assert "1 of 3 openings repeat" in book.warnings[0]


def test_order_start_and_seed(tmp_path: Path) -> None:
    lines = [E4.replace("0 1", f"0 {number}") for number in range(1, 31)]
    book = read_book(write(tmp_path, "\n".join(lines)), CHESS)
    numbers = [opening.line for opening in pick(book, "sequential", 5, 0)]
    assert numbers == [*range(5, 31), *range(1, 5)]
    drawn = pick(book, "random", 1, 7)
    assert drawn == pick(book, "random", 1, 7)
    assert sorted(opening.line for opening in drawn) == sorted(numbers)
    assert drawn != pick(book, "random", 1, 8)


def test_janggi_lines(tmp_path: Path) -> None:
    fen = get_game("janggi").start(setup="nbnb/bnbn").fen()
    book = read_book(write(tmp_path, fen), get_game("janggi"))
    assert [opening.fen for opening in book.openings] == [fen]


@pytest.mark.skipif(not OUTSIDE.is_dir(), reason="skipped: no outside data")
def test_outside_books() -> None:
    expected: dict[str, dict[str, Any]] = json.loads((OUTSIDE / "expected.json").read_text())
    for name, wanted in expected.items():
        if wanted["outcome"] == "error":
            place = rf":{wanted['line']}: " if "line" in wanted else re.escape(name)
            with pytest.raises(BookError, match=place):
                read_book(OUTSIDE / name, CHESS)
            continue
        book = read_book(OUTSIDE / name, CHESS)
        count = next(wanted[key] for key in COUNTS if key in wanted)
        assert len(book.openings) == count, name
        assert (wanted["outcome"] == "warn" or "duplicates" in name) == bool(book.warnings), name
        if "ids" in wanted:
            assert [opening.name for opening in book.openings] == wanted["ids"]


COUNTS = ("positions", "games", "complete_games", "lines")


@pytest.mark.skipif(not OUTSIDE.is_dir(), reason="skipped: no outside data")
def test_outside_mixed_lines() -> None:
    wanted = json.loads((OUTSIDE / "mixed_fen_epd_ops.expected.json").read_text())
    book = read_book(OUTSIDE / "mixed_fen_epd_ops.epd", CHESS)
    found = [(opening.line, opening.fen) for opening in book.openings]
    assert found == [(row["line"], row["fen"]) for row in wanted]


def test_our_own_chess_book() -> None:
    book = read_book(builtin_book(CHESS), CHESS)
    assert book.warnings == ()
    assert len(book.openings) == 50
    for opening in book.openings:
        board = chess.Board(opening.fen)
        assert board.turn == chess.WHITE
        assert board.fullmove_number == 5
        assert board.is_valid()
        assert opening.name


def test_our_own_janggi_book_is_every_set_up() -> None:
    game = get_game("janggi")
    book = read_book(builtin_book(game), game)
    assert [o.name for o in book.openings] == list(game.setups)
    assert [o.fen for o in book.openings] == [game.start(setup=s).start_fen for s in game.setups]


def test_our_own_book_is_balanced() -> None:
    """As an engine that we did not write sees it, at a fixed number of nodes."""
    path = find_binary("stockfish")
    if path is None:
        pytest.skip("skipped: no stockfish (Debian: apt install stockfish)")
    engine = chess.engine.SimpleEngine.popen_uci(path, timeout=60)
    with engine:
        for opening in read_book(builtin_book(CHESS), CHESS).openings[::5]:
            info = engine.analyse(chess.Board(opening.fen), chess.engine.Limit(nodes=20_000))
            score = info["score"].white().score()
            assert score is not None
            assert -60 <= score <= 110, opening.name
