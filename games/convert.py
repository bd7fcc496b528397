"""Games between file formats: PGN, `.gib`, and lines of UCI moves.

`pgn` holds chess and janggi; `gib` and `gib-hanja` janggi only; `uci` is one game a line as an
engine's `position` command has it (`startpos moves e2e4 …`, `fen … moves …`); `fen` is one
position a line (read as a game without moves, written as the last position of each game).
"""

from collections.abc import Callable, Iterator

from .base import Game
from .janggi import RECORDS, read_gib, write_gib
from .pgn import read_pgn, write_pgn
from .registry import get_game
from .transcript import Fault, Reading, Transcript, decode

FORMATS = ("pgn", "gib", "gib-hanja", "uci", "fen")


def _reader(game: str) -> Game:
    return RECORDS if game == "janggi" else get_game(game)


def _lines(data: bytes | str) -> Iterator[tuple[int, str]]:
    for number, text in enumerate(decode(data, "latin-1").split("\n"), 1):
        if (words := text.strip()) and not words.startswith("#"):
            yield number, words


def _uci_game(line: int, text: str, game: str) -> Transcript:
    head, _, moves = f"{text.removeprefix('position ')} ".partition(" moves ")
    kind, _, fen = head.strip().partition(" ")
    if kind not in ("startpos", "fen") or (kind == "startpos") == bool(fen):
        raise ValueError("a line is `startpos moves …` or `fen … moves …`")
    state = _reader(game).start(fen=fen or None)
    for word in moves.split():
        state = state.apply(state.parse_move(word))
    return Transcript(game, state.start_fen, state.moves, line=line)


def _fen_game(line: int, text: str, game: str) -> Transcript:
    return Transcript(game, _reader(game).start(fen=text).start_fen, line=line)


def _read_lines(
    data: bytes | str, game: str, build: Callable[[int, str, str], Transcript]
) -> Reading:
    games: list[Transcript] = []
    faults: list[Fault] = []
    for line, text in _lines(data):
        try:
            games.append(build(line, text, game))
        except ValueError as error:
            faults.append(Fault(line, str(error)))
    return Reading(tuple(games), tuple(faults))


def read_games(data: bytes | str, source: str, game: str = "chess") -> Reading:
    """Every game of a file; `game` names it where the format does not tell.

    Raises ValueError only for an unknown format or game, nothing for any content.
    """
    get_game(game)
    if source == "pgn":
        return read_pgn(data, get_game(game))
    if source in ("gib", "gib-hanja"):
        return read_gib(data)
    if source == "uci":
        return _read_lines(data, game, _uci_game)
    if source == "fen":
        return _read_lines(data, game, _fen_game)
    raise ValueError(f"unknown format {source!r}: there are {', '.join(FORMATS)}")


def _write_line(transcript: Transcript, target: str) -> str:
    if target == "fen":
        return transcript.replay(_reader(transcript.game)).fen()
    moves = "".join(f" {move}" for move in transcript.moves)
    return f"fen {transcript.start_fen} moves{moves}"


def write_games(games: tuple[Transcript, ...], target: str) -> bytes:
    """A file of games: CP949 for `gib`, UTF-8 else.

    Raises ValueError for an unknown format, or for a game that the format cannot hold.
    """
    if target == "pgn":
        return write_pgn(games).encode()
    if target in ("gib", "gib-hanja"):
        if other := {g.game for g in games if g.game != "janggi"}:
            raise ValueError(f"a .gib file holds janggi only, not {', '.join(sorted(other))}")
        return write_gib(games, "hanja" if target == "gib-hanja" else "korean")
    if target in ("uci", "fen"):
        return "".join(f"{_write_line(game, target)}\n" for game in games).encode()
    raise ValueError(f"unknown format {target!r}: there are {', '.join(FORMATS)}")


def convert(
    data: bytes | str, source: str, target: str, game: str = "chess"
) -> tuple[bytes, tuple[Fault, ...]]:
    """(the games of a file in another format, a fault for each that could not be read)."""
    reading = read_games(data, source, game)
    return write_games(reading.games, target), reading.faults
