"""`.gib` files: dialects, starts, comments, stray bytes, results, faults with their lines."""

import pytest

from games.base import Move
from games.janggi import JANGGI, RECORDS, read_gib, write_gib
from games.janggi.gib import board_header, read_board, result_of
from games.transcript import Transcript

HEAD = '[초차림 "마상상마"]\n[한차림 "상마마상"]\n'
START = JANGGI.start(setup="nbbn/bnnb").fen()


def moves(text: str) -> list[str]:
    reading = read_gib(HEAD + text)
    assert reading.faults == ()
    return [move.uci for move in reading.games[0].moves]


def test_dialects() -> None:
    assert moves("1. 79졸78 2. 49병48") == ["i4h4", "i7h7"]
    assert moves("1. 79卒78 2. 49兵48") == ["i4h4", "i7h7"]
    assert moves("1. 79楚卒78 2. 49漢兵48\n3.한수쉼 4 . 48병49") == ["i4h4", "i7h7", "e2e2", "h7i7"]
    assert moves("1. 79졸78 <0> 2. 49병48 <1:03>") == ["i4h4", "i7h7"]
    assert moves("") == []


def test_two_passes_and_ignored_bikjang_are_read_on() -> None:
    assert moves("1. 한수쉼 2. 한수쉼 3. 79졸78") == ["e2e2", "e9e9", "i4h4"]
    assert moves("1. 75졸74 2. 45병44 3. 79졸78") == ["e4d4", "e7d7", "i4h4"]


def test_comments_keep_their_ply() -> None:
    text = HEAD + '{처음}1. 79졸78 {두\n줄 79졸78} 2. 49병48 {[판 "x"]} {끝'
    transcript = read_gib(text).games[0]
    assert transcript.comments == ((0, "처음"), (1, "두 줄 79졸78"), (2, '[판 "x"]'), (2, "끝"))


def test_bytes_of_old_programs() -> None:
    data = (HEAD + "1. 79졸78 2. 49병48\n").replace("\n", "\r\n").encode("cp949")
    stray = data.replace(b"2.", b"\xff2.\xff") + b"\x1a"
    for version in (data, stray, (HEAD + "1. 79졸78 2. 49병48").encode()):
        assert [m.uci for m in read_gib(version).games[0].moves] == ["i4h4", "i7h7"]
    assert read_gib("\ufeff".encode() + HEAD.encode()).faults == ()


def test_a_bad_game_is_reported_with_its_line_and_the_rest_is_read() -> None:
    good = HEAD + "\n1. 79졸78\n\n"
    text = (
        good
        + HEAD
        + "\n1. 79졸78 2. 49병48\n3. 79졸78\n\n"
        + good
        + '[초차림 "마상상마"]\n\n1. 79졸78\n\n'
        + HEAD
        + "\n1. 79졸78 무엇\n\n"
        + good
    )
    reading = read_gib(text)
    assert len(reading.games) == 3
    assert [str(fault) for fault in reading.faults] == [
        "line 10: move 3: 79졸78: no 졸 of the side to move stands on 79",
        "line 17: no set-ups: 초차림 and 한차림, or 판, must name them",
        "line 24: move 2: '무엇' is no move",
    ]
    assert [game.line for game in reading.games] == [1, 12, 26]


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("초 완승", "1-0"),
        ("한 기권승", "0-1"),
        ("한 시간승", "0-1"),
        ("초 점수승", "1-0"),
        ("무승부", "1/2-1/2"),
        ("무승부(동의)", "1/2-1/2"),
        ("한 접속 끊김 패", "1-0"),
        ("초승(외통수)", "1-0"),
        ("漢 완승", "0-1"),
        ("미상", "*"),
        ("", "*"),
        ("승", "*"),
    ],
)
def test_results(words: str, result: str) -> None:
    assert result_of(words) == result


def test_puzzle_starts() -> None:
    board = (
        "차마상사1사마상차/4장/1포5포/졸1졸1졸1졸1졸///"
        "兵1兵1兵1兵/1包5包/4將/車馬象士1士象馬車 한 접장기"
    )
    fen = read_board(board)
    assert fen == ("rnba1abnr/4k4/1c5c1/p1p1p1p2/9/9/P1P1P1P1P/1C5C1/4K4/RNBA1ANBR b - - 0 1")
    reading = read_gib(f'[판 "{board}"]\n[대국결과 "한 완승"]\n\n1. 18마37 2. 71졸72')
    assert reading.faults == ()
    assert [move.uci for move in reading.games[0].moves] == ["h10g8", "a4b4"]
    assert read_board(board_header(fen)) == fen


@pytest.mark.parametrize(
    ("board", "reason"),
    [
        ("4장/4將", "2 ranks"),
        ("x/////////", "no piece and no count"),
        ("9차/////////", "10 points"),
        ("4장/////////", "Han has no general"),
    ],
)
def test_bad_puzzle_starts(board: str, reason: str) -> None:
    reading = read_gib(f'[판 "{board} 초"]\n1. 79졸78')
    assert reading.games == ()
    assert reason in reading.faults[0].reason


def test_what_is_written_is_read_again() -> None:
    state = RECORDS.start(fen=START)
    for text in ("79졸78", "49병48", "78졸48병", "한수쉼"):
        if text.startswith("78"):
            state = state.apply(state.parse_move("75졸74", "korean"))
            continue
        state = state.apply(state.parse_move(text, "korean"))
    transcript = Transcript(
        "janggi",
        START,
        state.moves,
        "0-1",
        {"Event": "시험", "White": "갑", "Black": "을", "Termination": "한 기권승", "비고": "x"},
        ((0, "처음"), (2, "[둘]")),
    )
    for notation in ("korean", "hanja"):
        again = read_gib(write_gib((transcript, transcript), notation))
        assert again.faults == ()
        assert len(again.games) == 2
        for game in again.games:
            assert game.moves == transcript.moves
            assert game.start_fen == START
            assert game.result == "0-1"
            assert game.comments == transcript.comments
            assert dict(game.tags) == dict(transcript.tags)


def test_hostile_tags_cannot_break_a_file() -> None:
    tags = {"Event": 'x"]\n[초차림 "y', "White": "{", "Black": "☃" * 3, "판": "x", "a b": "c"}
    transcript = Transcript("janggi", START, (Move("i4h4"),), "*", tags, ((1, "a}b{c"),))
    again = read_gib(write_gib((transcript,)))
    assert again.faults == ()
    assert again.games[0].moves == transcript.moves
    assert again.games[0].tags["Event"] == "x') (초차림 'y"
    assert again.games[0].tags["Black"] == "???"
    assert again.games[0].comments == ((1, "a)b(c"),)
    assert "a b" not in again.games[0].tags


def test_words_and_result_never_disagree() -> None:
    transcript = Transcript("janggi", START, (), "1-0", {"Termination": "White mates"})
    again = read_gib(write_gib((transcript,)))
    assert again.games[0].result == "1-0"


def test_a_start_with_more_than_a_set_is_written_again() -> None:
    fen = "3k5/9/9/9/9/9/PPPPPP3/9/4K4/9 w - - 0 1"
    again = read_gib(write_gib((Transcript("janggi", fen),)))
    assert again.faults == ()
    assert again.games[0].start_fen == fen
