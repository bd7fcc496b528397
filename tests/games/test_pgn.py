"""PGN in and out for both games, beside python-chess's own reader."""

import io

import chess.pgn
import pytest

from games.base import IllegalMove, Move
from games.chess import CHESS
from games.janggi import JANGGI, RECORDS
from games.pgn import read_pgn, write_pgn
from games.transcript import Transcript
from tests.games.positions import random_game

ITALIAN = """[Event "Café \\"x\\""]
[White "A \\\\ B"]
[Black "C"]
[Result "1-0"]
[WhiteElo "1500"]

{opening} 1. e4 {[%clk 0:05:00]} e5 $1 {[%clk 1:02:03.5] fine} 2. Nf3 (2. f4 exf4
{King's (not) (a} 3. Nf3)
2... Nc6 3. Bc4!? ; the Italian
3... Bc5 1-0
"""


def test_reading() -> None:
    reading = read_pgn(ITALIAN)
    assert reading.faults == ()
    game = reading.games[0]
    assert [move.uci for move in game.moves] == ["e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5"]
    assert game.tags == {
        "Event": 'Café "x"',
        "White": "A \\ B",
        "Black": "C",
        "WhiteElo": "1500",
    }
    assert game.clocks == {1: 300.0, 2: 3723.5}
    assert game.comments == ((0, "opening"), (2, "fine"), (5, "the Italian"))
    assert game.result == "1-0"


def test_what_is_written_is_read_again_and_by_python_chess() -> None:
    game = read_pgn(ITALIAN).games[0]
    text = write_pgn((game, game))
    again = read_pgn(text)
    assert again.faults == ()
    for copy in again.games:
        assert (copy.moves, copy.result, copy.clocks) == (game.moves, game.result, game.clocks)
        assert copy.comments == game.comments
        assert all(copy.tags[name] == value for name, value in game.tags.items())
    other = chess.pgn.read_game(io.StringIO(text))
    assert other is not None
    assert other.errors == []
    assert [move.uci() for move in other.mainline_moves()] == [move.uci for move in game.moves]
    assert other.headers["Black"] == "C"
    assert other.headers["Result"] == "1-0"
    node = other.next()
    assert node is not None
    assert node.clock() == 300.0


@pytest.mark.parametrize("seed", range(4))
def test_random_games_round_trip(seed: int) -> None:
    for game, name in ((CHESS, "chess"), (JANGGI, "janggi")):
        *_, last = random_game(game, seed, 120)
        end = last.outcome()
        transcript = Transcript(
            name,
            last.start_fen,
            last.moves,
            "*" if end is None else end.result,
            {"Event": "round trip", "Termination": "why", "WhiteType": "program"},
            clocks={ply: ply * 1.25 for ply in range(1, len(last.moves) + 1)},
        )
        reading = read_pgn(write_pgn((transcript,)))
        assert reading.faults == ()
        copy = reading.games[0]
        assert (copy.game, copy.start_fen, copy.moves, copy.result) == (
            name,
            transcript.start_fen,
            transcript.moves,
            transcript.result,
        )
        assert copy.clocks == transcript.clocks
        assert copy.tags["WhiteType"] == "program"


def test_janggi_is_written_as_pychess_writes_it() -> None:
    transcript = Transcript(
        "janggi", JANGGI.start(setup="bnbn/nbnb").fen(), (Move("c1d3"), Move("e9e9")), "0-1"
    )
    text = write_pgn((transcript,))
    assert '[Variant "Janggi"]\n[FEN "rnba1anbr/' in text
    assert '[SetUp "1"]' in text
    assert '[Result "0-1"]' in text
    pgn = '[Variant "Janggi"]\n[FEN "' + JANGGI.start().fen() + '"]\n[SetUp "1"]\n\n1. Hc3 Ke9 *\n'
    reading = read_pgn(pgn)
    assert reading.faults == ()
    assert [move.uci for move in reading.games[0].moves] == ["b1c3", "e9e9"]
    assert read_pgn("1. Hc3 *", RECORDS).games[0].game == "janggi"


def test_a_game_from_a_position_numbers_its_moves() -> None:
    fen = "4k3/8/8/8/8/8/4p3/K7 b - - 3 41"
    text = write_pgn((Transcript("chess", fen, (Move("e2e1q"), Move("a1a2"))),))
    assert "41... e1=Q+ 42. Ka2 *" in text
    assert f'[FEN "{fen}"]\n[SetUp "1"]' in text
    assert read_pgn(text).games[0].start_fen == fen


BAD = [
    ("1. e4 e5 2. Ke3 *", 1, "move 2: Ke3 is not legal"),
    ("1. e4 Zz9 *", 1, "move 1: 'Zz9' is no move"),
    ('[FEN "rubbish"]\n\n1. e4 *', 1, "not a chess FEN"),
    ('[Variant "Atomic"]\n\n1. e4 *', 1, "variant 'atomic'"),
    ('[Result "1-0"]\n\n1. e4 0-1', 1, "the Result tag says 1-0, the movetext 0-1"),
    ('[Result "won"]\n\n1. e4', 1, "the Result tag is 'won'"),
    ("1. e4 -- 2. d4 *", 1, "'--' is no move"),
    ("\n\n1. e4\ne5\nQh9 *", 5, "'Qh9' is no move"),
    ('[FEN "4k3/8/8/8/8/8/7K/R5R1 w - - 0 1"]\n\n1. Rd1 *', 3, "Rd1 fits a1d1, g1d1"),
]


@pytest.mark.parametrize(("text", "line", "reason"), BAD)
def test_bad_games_are_reported_with_their_line_and_the_rest_is_read(
    text: str, line: int, reason: str
) -> None:
    good = '[Event "good"]\n\n1. d4 d5 *\n\n'
    reading = read_pgn(good + text + "\n\n" + good)
    assert [game.tags.get("Event") for game in reading.games] == ["good", "good"]
    assert len(reading.faults) == 1
    assert reading.faults[0].line == line + 4
    assert reason in reading.faults[0].reason


def test_odd_files() -> None:
    assert read_pgn("") == read_pgn(b"") == read_pgn("\n \n")
    assert read_pgn(b'\xef\xbb\xbf[Event "x"]\r\n\r\n1. e4 *\r\n').games[0].tags == {"Event": "x"}
    assert read_pgn('[White "Jos\xe9"]\n\n*'.encode("latin-1")).games[0].tags == {"White": "José"}
    assert len(read_pgn("1. e4 * 1. d4 1-0 1. c4").games) == 3
    assert len(read_pgn('1. e4 e5 1-0\n[Event "b"]\n\n1. d4 *').games) == 2
    assert read_pgn("1. e4 {open").games[0].comments == ((1, "open"),)
    assert len(read_pgn("1. e4 " + "(" * 50_000 + " e5 *").games) == 1
    assert read_pgn("%escaped line\n1. e4 *").games[0].moves == (Move("e2e4"),)
    assert read_pgn("1.e4 e5 2.Nf3 *").games[0].moves[-1] == Move("g1f3")


def test_hostile_tags_cannot_break_a_file() -> None:
    tags = {"Event": 'a"]\n[Result "1-0', "White": "\\", "Black": "x" * 5000}
    transcript = Transcript("chess", CHESS.start().fen(), (Move("e2e4"),), "*", tags)
    reading = read_pgn(write_pgn((transcript,)))
    assert reading.faults == ()
    assert reading.games[0].tags["Event"] == 'a"] [Result "1-0'
    assert reading.games[0].tags["White"] == "\\"
    assert reading.games[0].result == "*"


def test_clocks_are_written_to_the_millisecond() -> None:
    clocks = {1: 3599.9996, 2: 0.25}
    moves = (Move("e2e4"), Move("e7e5"))
    text = write_pgn((Transcript("chess", CHESS.start().fen(), moves, clocks=clocks),))
    assert "{[%clk 1:00:00]}" in text
    assert "{[%clk 0:00:00.25]}" in text


def test_an_illegal_move_is_never_written() -> None:
    with pytest.raises(IllegalMove):
        write_pgn((Transcript("chess", CHESS.start().fen(), (Move("e2e5"),)),))
