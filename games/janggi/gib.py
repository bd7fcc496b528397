"""Korean `.gib` game files: CP949 text, many games a file, read in every dialect met.

A game is headers (`[초차림 "마상상마"]`) and numbered moves in record notation, with comments in
braces and seconds spent in `<>` (skipped). Set-ups are named in board order from Cho's left for
both sides. A start that no set-up gives stands in `[판 "…"]`: ten ranks from Cho's edge up, each
from Cho's left, Hangul for Cho and Hanja for Han, digits for empty points, short ranks filled with
empty points, then the side to move. Reading never fails as a whole: a game is read, or reported
with its line and the reason. Moves are read under `RECORDS`, which bars only what no rules allow.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from games.transcript import Fault, Reading, Transcript, decode

from . import korean
from .fen import Position, format_fen, parse_fen
from .game import RECORDS
from .setup import PAIRS, korean_setup, parse_setup, start_fen
from .state import JanggiState
from .tables import FILES, HAN, POINTS, RANKS

TAGS = {
    "대회명": "Event",
    "회전": "Round",
    "대국일자": "Date",
    "대국장소": "Site",
    "초대국자": "White",
    "한대국자": "Black",
    "제한시간": "TimeControl",
    "대국결과": "Termination",
}
UNKNOWN = "미상"
_WORDS = {"1-0": "초 완승", "0-1": "한 완승", "1/2-1/2": "무승부", "*": UNKNOWN}
_OWN = ("판", "총수", "대국결과")
_SETUP_HEADERS = {"초차림": 0, "초포진": 0, "한차림": 1, "한포진": 1}

_TOKEN = re.compile(
    r"""^[ \t]*\[(?P<tag>[^\s"\[\]]{1,40})[ \t]*"(?P<value>[^"\n]*)"?[ \t]*\]?
    |\{(?P<comment>[^}]*)(?:\}|\Z)
    |<[^<>\n]*>|[0-9]+[ \t]*\.
    |(?P<move>[^\s{}]+)""",
    re.MULTILINE | re.VERBOSE,
)


@dataclass(slots=True)
class _Draft:
    """A game being read, before its moves are looked at."""

    line: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    notes: list[tuple[str, str, int]] = field(default_factory=list)


def _drafts(text: str) -> Iterator[_Draft]:
    draft, line, at = _Draft(), 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match["tag"] is not None:
            if any(kind == "move" for kind, _, _ in draft.notes) or match["tag"] in draft.headers:
                yield draft
                draft = _Draft(line)
            elif not draft.headers:
                draft.line = line
            draft.headers[match["tag"]] = match["value"].strip()
        elif match.lastgroup is not None:
            draft.notes.append((match.lastgroup, match[match.lastgroup], line))
    if draft.headers or draft.notes:
        yield draft


def result_of(words: str) -> str:
    """`초 완승` -> `1-0`, `한 접속 끊김 패` -> `1-0`, `무승부` -> draw, anything else -> `*`."""
    if "무승부" in words:
        return "1/2-1/2"
    first, second = words[:1] in ("초", "楚"), words[:1] in ("한", "漢")
    won, lost = "승" in words, "패" in words
    if won == lost or not (first or second):
        return "*"
    return "1-0" if first == won else "0-1"


def read_board(text: str) -> str:
    """FEN of a `[판 "…"]` header. Raises InvalidPosition or ValueError naming the reason."""
    board, _, rest = text.strip().partition(" ")
    rows = board.split("/")
    if len(rows) != RANKS:
        raise ValueError(f"the board has {len(rows)} ranks, not {RANKS}")
    pieces: list[int] = []
    for row in rows:
        found: list[int] = []
        for sign in row:
            if sign in "123456789":
                found += [0] * int(sign)
            elif sign in korean.KIND_OF:
                found.append(korean.KIND_OF[sign] | (0 if "가" <= sign <= "힣" else HAN))
            else:
                raise ValueError(f"{sign!r} on the board is no piece and no count")
        if len(found) > FILES:
            raise ValueError(f"a rank of the board has {len(found)} points, not {FILES}")
        pieces += found + [0] * (FILES - len(found))
    return format_fen(Position(bytes(pieces), 1 if rest[:1] in ("한", "漢") else 0))


def board_header(fen: str) -> str:
    """The value of a `[판 "…"]` header for a FEN; its clock and move number are lost."""
    position = parse_fen(fen, any_material=True)
    rows = []
    for start in range(0, POINTS, FILES):
        row = position.board[start : start + FILES]
        signs = "".join(korean.SIGNS[p >= HAN][p] if p else "." for p in row).rstrip(".")
        rows.append(re.sub(r"\.+", lambda gap: str(len(gap[0])), signs))
    return f"{'/'.join(rows)} {'초한'[position.turn]}"


def _start(headers: dict[str, str]) -> str:
    if headers.get("판"):
        return read_board(headers["판"])
    setups: dict[int, str] = {}
    for name, side in _SETUP_HEADERS.items():
        if name in headers:
            setups[side] = parse_setup(headers[name])
    if len(setups) < 2:
        raise ValueError("no set-ups: 초차림 and 한차림, or 판, must name them")
    return start_fen(setups[0], setups[1])


def _tags(headers: dict[str, str]) -> dict[str, str]:
    skipped = {*_SETUP_HEADERS, "판", "총수"}
    known = {n: v for n, v in headers.items() if n not in skipped and v and v != UNKNOWN}
    return {TAGS.get(name, name): value for name, value in known.items()}


def _build(draft: _Draft) -> Transcript | Fault:
    line = draft.line
    comments: list[tuple[int, str]] = []
    state: JanggiState | None = None
    try:
        state = RECORDS.start(fen=_start(draft.headers))
        for kind, note, at in draft.notes:
            line = at
            if kind == "comment":
                if words := " ".join(note.split()):
                    comments.append((len(state.moves), words))
                continue
            if korean.LOOKS_LIKE_MOVE.search(note):
                state = state.apply(state.parse_move(note, "korean"))
            elif any(sign.isalnum() for sign in note):
                raise ValueError(f"{note[:40]!r} is no move")
    except ValueError as error:
        played = f"move {len(state.moves) + 1}: " if state is not None else ""
        return Fault(line, f"{played}{error}")
    result = result_of(draft.headers.get("대국결과", ""))
    return Transcript(
        "janggi",
        state.start_fen,
        state.moves,
        result,
        _tags(draft.headers),
        tuple(comments),
        line=draft.line,
    )


def read_gib(data: bytes | str) -> Reading:
    """Every game of a `.gib` file. Raises nothing for any content."""
    games: list[Transcript] = []
    faults: list[Fault] = []
    for draft in _drafts(decode(data, "cp949")):
        built = _build(draft)
        if isinstance(built, Fault):
            faults.append(built)
        else:
            games.append(built)
    return Reading(tuple(games), tuple(faults))


def _headers(transcript: Transcript) -> list[str]:
    tags = dict(transcript.tags)
    named = {name: tags.pop(tag, UNKNOWN) for name, tag in TAGS.items() if name != "대국결과"}
    words = tags.pop("Termination", _WORDS[transcript.result])
    if result_of(words) != transcript.result:
        words = _WORDS[transcript.result]
    others = {
        name: value
        for name, value in tags.items()
        if re.fullmatch(r"\w{1,40}", name) and name not in (*named, *_SETUP_HEADERS, *_OWN)
    }
    pairs = [pair for pair in PAIRS if start_fen(*pair.split("/")) == transcript.start_fen]
    if pairs:
        cho, han = pairs[0].split("/")
        named |= {"초차림": korean_setup(cho), "한차림": korean_setup(han)}
    else:
        named["판"] = board_header(transcript.start_fen)
    named |= {"총수": str(len(transcript.moves)), "대국결과": words} | others
    return [f'[{_clean(name)} "{_clean(value)}"]' for name, value in named.items()]


_BRACES = str.maketrans("{}", "()")


def _clean(text: str) -> str:
    """A header's text without what would end it."""
    return " ".join(text.translate(str.maketrans('"{}[]', "'()()")).split())


def _moves(transcript: Transcript, notation: str) -> Iterator[str]:
    comments: dict[int, list[str]] = {}
    for ply, comment in transcript.comments:
        comments.setdefault(ply, []).append(comment.translate(_BRACES))
    yield from (f"{{{comment}}}" for comment in comments.get(0, ()))
    state = RECORDS.start(fen=transcript.start_fen)
    for ply, move in enumerate(transcript.moves, 1):
        yield f"{ply}. {state.format_move(move, notation)}"
        state = state.apply(move)
        yield from (f"{{{comment}}}" for comment in comments.get(ply, ()))


def write_gib(transcripts: tuple[Transcript, ...], notation: str = "korean") -> bytes:
    """A CP949 file with CRLF of janggi games, six moves a line; `notation` `korean` or `hanja`.

    Characters that CP949 lacks become `?`. Raises IllegalMove for a move that is not legal.
    """
    lines: list[str] = []
    for transcript in transcripts:
        moves = list(_moves(transcript, notation))
        rows = [" ".join(moves[at : at + 6]) for at in range(0, len(moves), 6)]
        lines += [*_headers(transcript), "", *rows, ""]
    return "\r\n".join(lines).encode("cp949", errors="replace")
