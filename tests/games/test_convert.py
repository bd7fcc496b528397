"""Between file formats, and the report of one position."""

import pytest

from games.base import IllegalMove
from games.chess import CHESS
from games.convert import FORMATS, convert, read_games, write_games
from games.janggi import JANGGI, read_gib
from games.legal import legal_report
from games.transcript import Transcript
from tests.games.positions import random_game

GIB = (
    '[초차림 "마상상마"]\n[한차림 "상마마상"]\n[대국결과 "초 완승"]\n\n'
    "1. 79졸78 2. 49병48 3. 한수쉼\n"
)


def test_gib_to_pgn_to_gib() -> None:
    pgn, faults = convert(GIB, "gib", "pgn")
    assert faults == ()
    assert b'[Variant "Janggi"]' in pgn
    assert b"1. Pih4 Pih7 2. Ke2 1-0" in pgn
    back, faults = convert(pgn, "pgn", "gib")
    assert faults == ()
    assert read_gib(back).games[0].moves == read_gib(GIB).games[0].moves
    hanja, _ = convert(pgn, "pgn", "gib-hanja")
    assert "79卒78" in hanja.decode("cp949")


def test_uci_lines() -> None:
    text = (
        "# comment\nposition startpos moves e2e4 e7e5\n\nstartpos\n"
        "fen 7k/8/8/8/8/8/8/KR6 w - - 0 1 moves b1b2\n"
    )
    reading = read_games(text, "uci")
    assert reading.faults == ()
    assert [len(game.moves) for game in reading.games] == [2, 0, 1]
    assert [game.line for game in reading.games] == [2, 4, 5]
    again = read_games(write_games(reading.games, "uci"), "uci")
    assert [game.moves for game in again.games] == [game.moves for game in reading.games]
    last = write_games(reading.games, "fen").decode().split("\n")
    assert last[2] == "7k/8/8/8/8/8/1R6/K7 b - - 1 1"
    janggi = read_games("startpos moves e2e2 e9e9 a4b4", "uci", "janggi")
    assert janggi.faults == ()


def test_bad_lines_are_reported() -> None:
    reading = read_games("startpos moves e2e5\nhello\nfen x moves\nstartpos extra moves\n", "uci")
    assert reading.games == ()
    assert [fault.line for fault in reading.faults] == [1, 2, 3, 4]
    assert str(reading.faults[0]) == "line 1: e2e5 is not legal here"
    fens = read_games("3k5/9/9/9/9/9/9/9/9/5K3 b\nrubbish\n", "fen", "janggi")
    assert (len(fens.games), len(fens.faults)) == (1, 1)


def test_every_format_of_a_random_game() -> None:
    *_, last = random_game(JANGGI, 11, 80)
    game = Transcript("janggi", last.start_fen, last.moves)
    for target in FORMATS:
        again = read_games(write_games((game,), target), target, "janggi").games[0]
        if target == "fen":
            assert again.start_fen == last.fen()
        else:
            assert (again.start_fen, again.moves) == (game.start_fen, game.moves)


def test_what_cannot_be_converted() -> None:
    with pytest.raises(ValueError, match="unknown format 'docx'"):
        convert("", "docx", "pgn")
    with pytest.raises(ValueError, match="unknown format 'docx'"):
        convert("", "pgn", "docx")
    with pytest.raises(ValueError, match="unknown game"):
        convert("", "pgn", "pgn", "go")
    with pytest.raises(ValueError, match="janggi only, not chess"):
        convert("1. e4 *", "pgn", "gib")


def test_replay_ends_where_the_game_did() -> None:
    *_, last = random_game(CHESS, 4, 60)
    transcript = Transcript("chess", last.start_fen, last.moves)
    assert transcript.replay(CHESS).fen() == last.fen()


def test_the_report_of_a_position() -> None:
    report = legal_report(CHESS, moves=["f2f3", "e7e5", "g2g4", "d8h4"])
    assert report["side"] == "white"
    assert report["legal_moves"] == []
    assert report["in_check"] is True
    assert report["outcome"] == {
        "winner": "black",
        "termination": "checkmate",
        "result": "0-1",
        "sentence": "Black mates",
    }
    going = legal_report(JANGGI, setup="bnbn/nbnb", rules="kakao")
    assert (going["side"], len(going["legal_moves"]), going["outcome"]) == ("cho", 32, None)
    passed = legal_report(JANGGI, moves=["pass", "pass"], rules="casual")
    assert passed["outcome"] is not None
    assert passed["outcome"]["winner"] is None
    assert passed["outcome"]["sentence"] == "Draw by two passes in a row"
    with pytest.raises(IllegalMove):
        legal_report(CHESS, moves=["e2e5"])
