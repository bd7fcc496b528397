"""Opening books: EPD and FEN lines (mixed in one file), PGN; plain, gzip or zip.

Takes what the field has: LF, CRLF or lone CR; byte-order marks; UTF-8, UTF-16 or latin-1; `hmvc`
and `fmvn`; blank and `#` lines; JSON lines with `fen` and `name`. A broken book is refused whole,
before play, with file, line and reason; only a PGN that stops in the middle of its last game is
read as far as it is whole, with a warning.
Knows nothing about tournaments: which pair gets which opening is `arena.schedule`'s to say.
"""

import gzip
import io
import json
import random
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import chess.pgn

from games.base import Game, InvalidPosition

BUILTIN = "builtin"  # in place of a file: our own book
BOOKS = Path(__file__).parent / "books"
MAX_BYTES = 1 << 29  # of an unpacked book
_RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_OPERATION = re.compile(r"""\s*(?P<code>[A-Za-z]\w*)(?P<operand>(?:"[^"]*"|[^";])*)(?:;|$)""")


class BookError(ValueError):
    """A book that cannot be used; one line with file, line and reason."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A position to start from; `line` is where it stands in its file, from 1."""

    fen: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Book:
    openings: tuple[Opening, ...]
    warnings: tuple[str, ...] = ()


def builtin_book(game: Game) -> Path:
    """Our own book of a game. Raises BookError where it has none.

    Chess: 50 lines of four moves by each side. Janggi: the sixteen set-ups of both sides.
    """
    for path in sorted(BOOKS.glob(f"{game.name}.*")):
        return path
    raise BookError(f"there is no builtin book for {game.name}: name a file")


def read_book(path: str | Path, game: Game, plies: int | None = None) -> Book:
    """Every opening of a file, in its order; `plies` cuts each PGN game. Raises BookError."""
    path = Path(path)
    text = _decode(path, _unpack(path))
    warnings: list[str] = []
    if path.name.removesuffix(".gz").removesuffix(".zip").endswith(".pgn") or _looks_pgn(text):
        openings = tuple(_read_pgn(path, text, game, plies, warnings))
    else:
        openings = tuple(_read_lines(path, text, game))
    if not openings:
        raise BookError(f"{path}: no positions in it: name another book")
    distinct = len({tuple(opening.fen.split()[:4]) for opening in openings})
    if distinct < len(openings):
        warnings.append(f"{path}: {len(openings) - distinct} of {len(openings)} openings repeat")
    return Book(openings, tuple(warnings))


def pick(book: Book, order: str, start: int, seed: int) -> tuple[Opening, ...]:
    """The openings in the order of use: from the `start`-th on, or shuffled by the seed."""
    openings = list(book.openings)
    if order == "random":
        random.Random(seed).shuffle(openings)
    skip = (start - 1) % len(openings)
    return tuple(openings[skip:] + openings[:skip])


def _unpack(path: Path) -> bytes:
    """The bytes of a book, by what they are and not by what the file is called."""
    try:
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(data)) as stream:
                data = stream.read(MAX_BYTES + 1)
        elif data.startswith(b"PK\x03\x04"):
            data = _unzip(path, data)
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise BookError(f"{path}: packed file is damaged or cut: {error}") from None
    except OSError as error:
        raise BookError(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise BookError(f"{path}: more than {MAX_BYTES >> 20} MiB unpacked: use a smaller book")
    return data


def _unzip(path: Path, data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise BookError(f"{path}: holds {len(names)} files: a zipped book holds one")
        with archive.open(names[0]) as stream:
            return stream.read(MAX_BYTES + 1)


def _decode(path: Path, data: bytes) -> str:
    """Text by its byte-order mark, else UTF-8, else latin-1 (which takes any byte)."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                raise BookError(f"{path}: damaged UTF-16: save it as UTF-8") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _lines(text: str) -> list[str]:
    """Split at LF, CRLF and lone CR only; other separators of Unicode belong to names."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _looks_pgn(text: str) -> bool:
    return text.lstrip().startswith("[")


def _read_lines(path: Path, text: str, game: Game) -> Iterator[Opening]:
    for number, line in enumerate(_lines(text), 1):
        bad = _CONTROL.search(line)
        if bad:
            raise BookError(f"{path}:{number}: control byte 0x{ord(bad[0]):02x}: not a text book")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            fen, name = parse_line(line)
            _check(game, fen)
        except ValueError as error:
            raise BookError(f"{path}:{number}: {error}") from None
        yield Opening(fen, name, number)


def parse_line(line: str) -> tuple[str, str]:
    """(six-field FEN, `id` or "") of one FEN or EPD line. Raises ValueError with the reason."""
    if line.lstrip().startswith("{"):
        return _parse_json(line)
    fields = line.split(None, 4)
    if len(fields) < 4:
        raise ValueError(f"{line.strip()[:60]!r} is no FEN or EPD line: fewer than four fields")
    position, rest = " ".join(fields[:4]), fields[4] if len(fields) == 5 else ""
    counters = re.match(r"(\d+)\s+(\d+)(?:;|(?=\s)|$)", rest)
    if counters:
        operations = _operations(rest[counters.end() :])
        return f"{position} {counters[1]} {counters[2]}", operations.get("id", "")
    operations = _operations(rest)
    clock, number = operations.get("hmvc", "0"), operations.get("fmvn", "1")
    if not (clock.isdecimal() and number.isdecimal()):
        raise ValueError(f"hmvc {clock!r} and fmvn {number!r} must be whole numbers")
    return f"{position} {clock} {number}", operations.get("id", "")


def _parse_json(line: str) -> tuple[str, str]:
    try:
        table = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a line of JSON that is not whole: {error}") from None
    fen = table.get("fen")
    if not isinstance(fen, str):
        raise ValueError("a line of JSON needs the key 'fen'")
    return fen, str(table.get("name", ""))


def _operations(text: str) -> dict[str, str]:
    """EPD operations: `code operand;`, quotes keep semicolons together."""
    found: dict[str, str] = {}
    at = 0
    while text[at:].strip():
        match = _OPERATION.match(text, at)
        if match is None:
            raise ValueError(f"unreadable EPD operation {text[at:].strip()[:40]!r}")
        found[match["code"]] = match["operand"].strip().strip('"')
        at = match.end()
    return found


def _check(game: Game, fen: str) -> str:
    """The FEN as the game writes it. Raises ValueError where no game can start."""
    try:
        state = game.start(fen=fen)
    except InvalidPosition as error:
        raise ValueError(str(error)) from None
    over = state.outcome()
    if over is not None:
        raise ValueError(f"the game is over here already ({over.termination})")
    return state.fen()


class _Builder(chess.pgn.GameBuilder[chess.pgn.Game]):
    """Keeps errors with the game; python-chess would also log them."""

    def handle_error(self, error: Exception) -> None:
        self.game.errors.append(error)


def _read_pgn(
    path: Path, text: str, game: Game, plies: int | None, warnings: list[str]
) -> Iterator[Opening]:
    if game.name != "chess":
        raise BookError(f"{path}: PGN books are chess only: use FEN lines for {game.name}")
    text = "\n".join(_lines(text))
    stream = io.StringIO(text)
    number = 0
    while True:
        begin = stream.tell()
        parsed = chess.pgn.read_game(stream, Visitor=_Builder)
        if parsed is None:
            return
        number += 1
        raw = text[begin : stream.tell()]
        line = text.count("\n", 0, begin + len(raw) - len(raw.lstrip())) + 1
        if not text[stream.tell() :].strip() and not raw.rstrip().endswith(_RESULTS):
            warnings.append(f"{path}:{line}: the file ends inside game {number}: left out")
            return
        where = f"{path}:{line}: game {number}"
        if parsed.errors:
            raise BookError(f"{where}: {parsed.errors[0]}")
        if not parsed.variations and "FEN" not in parsed.headers:
            raise BookError(f"{where}: it has no moves")
        board = parsed.board()
        for ply, move in enumerate(parsed.mainline_moves()):
            if plies is not None and ply >= plies:
                break
            board.push(move)
        try:
            fen = _check(game, board.fen())
        except ValueError as error:
            raise BookError(f"{where}: {error}") from None
        yield Opening(fen, parsed.headers.get("Opening") or parsed.headers.get("Event", ""), line)
