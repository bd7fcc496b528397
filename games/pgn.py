"""PGN in and out for every game that has a `san` notation: tags, moves, comments, clocks.

Reading never fails as a whole: each game is read, or reported with its line and the reason (an
illegal or unreadable move, a bad FEN, a variant not played here, a Result tag unlike the
movetext). Variations and NAGs are skipped. Janggi is written as pychess writes it: `[Variant
"Janggi"]`, the FEN always (it holds the set-up), White = Cho. Moves are read under rules that bar
only what no rules allow.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap

from .base import Game, GameState
from .chess import CHESS
from .janggi import RECORDS
from .registry import GAMES
from .transcript import RESULTS, Fault, Reading, Transcript, decode

ROSTER = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "-", "White": "?", "Black": "?"}
_READERS: Mapping[str, tuple[Game, str]] = {
    "chess": (CHESS, "forced"),
    "janggi": (RECORDS, "record"),
}
"""Game and rules under which a file's moves are read; any other game uses its default."""

_TOKEN = re.compile(
    r"""^\[[ \t]*(?P<tag>\w{1,60})[ \t]+"(?P<value>(?:\\.|[^"\\\n])*)"[ \t]*\]
    |\{(?P<comment>[^}]*)(?:\}|\Z)
    |;(?P<remark>[^\n]*)
    |^%[^\n]*
    |(?P<paren>[()])
    |\$[0-9]+
    |(?P<result>1-0|0-1|1/2-1/2|\*)(?=[\s\[{;]|\Z)
    |[0-9]+\.+
    |(?P<move>[^\s{};()$]+)""",
    re.MULTILINE | re.VERBOSE,
)
_CLOCK = re.compile(r"\[%clk\s+([0-9]{1,4}):([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]{1,6})?)\]")
_NUMBERED = re.compile(r"[0-9]+\.+(.+)")


@dataclass(slots=True)
class _Draft:
    """A game being read, before its moves are looked at."""

    line: int = 1
    tags: dict[str, str] = field(default_factory=dict)
    notes: list[tuple[str, str, int]] = field(default_factory=list)
    result: str | None = None


def _drafts(text: str) -> Iterator[_Draft]:
    draft, line, at, depth = _Draft(), 1, 0, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        kind, token = match.lastgroup, match.group()
        if match["tag"] is not None:
            if draft.notes or draft.result:
                yield draft
                draft, depth = _Draft(line), 0
            elif not draft.tags:
                draft.line = line
            draft.tags[match["tag"]] = re.sub(r"\\(.)", r"\1", match["value"])
        elif kind == "paren":
            depth = max(0, depth + (1 if token == "(" else -1))
        elif depth or kind is None:
            continue
        elif kind == "result":
            draft.result = token
            yield draft
            draft, depth = _Draft(line), 0
        else:
            if not draft.tags and not draft.notes:
                draft.line = line
            draft.notes.append((kind, match[kind], line))
    if draft.tags or draft.notes:
        yield draft


def _game_of(tags: Mapping[str, str], default: Game) -> Game:
    variant = tags.get("Variant", "").strip().lower()
    if not variant:
        return default
    if variant.startswith("janggi"):
        return GAMES["janggi"]
    if variant in ("chess", "standard", "normal"):
        return GAMES["chess"]
    raise ValueError(f"variant {variant[:40]!r} is not played here")


def _start(game: Game, fen: str | None) -> GameState:
    reader, rules = _READERS.get(game.name, (game, None))
    return reader.start(rules=rules, fen=fen)


def _clock(comment: str) -> tuple[str, float | None]:
    """(the comment without its clock, the clock in seconds)."""
    match = _CLOCK.search(comment)
    if match is None:
        return comment, None
    hours, minutes, seconds = match.groups()
    rest = comment[: match.start()] + comment[match.end() :]
    return rest, int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _build(draft: _Draft, default: Game) -> Transcript | Fault:
    line, where = draft.line, ""
    comments: list[tuple[int, str]] = []
    clocks: dict[int, float] = {}
    try:
        game = _game_of(draft.tags, default)
        result = _result(draft)
        state = _start(game, draft.tags.get("FEN"))
        for kind, note, at in draft.notes:
            ply = len(state.moves)
            if kind == "move":
                line, where = at, f"move {ply // 2 + 1}: "
                san = note if (match := _NUMBERED.fullmatch(note)) is None else match[1]
                state = state.apply(state.parse_move(san.rstrip("!?"), "san"))
                continue
            rest, clock = _clock(note)
            if clock is not None:
                clocks[ply] = clock
            if words := " ".join(rest.split()):
                comments.append((ply, words))
    except ValueError as error:
        return Fault(line, f"{where}{error}")
    tags = {k: v for k, v in draft.tags.items() if k not in ("FEN", "SetUp", "Result", "Variant")}
    return Transcript(
        game.name, state.start_fen, state.moves, result, tags, tuple(comments), clocks, draft.line
    )


def _result(draft: _Draft) -> str:
    tag = draft.tags.get("Result", "*").strip()
    if tag not in RESULTS:
        raise ValueError(f"the Result tag is {tag[:20]!r}, none of {' '.join(RESULTS)}")
    found = draft.result or tag
    if "Result" in draft.tags and tag != found:
        raise ValueError(f"the Result tag says {tag}, the movetext {found}")
    return found


def read_pgn(data: bytes | str, default: Game | None = None) -> Reading:
    """Every game of a PGN file (UTF-8 or Latin-1). Games without a Variant are `default` (chess).

    Raises nothing for any content.
    """
    games: list[Transcript] = []
    faults: list[Fault] = []
    for draft in _drafts(decode(data, "latin-1")):
        built = _build(draft, default or GAMES["chess"])
        if isinstance(built, Fault):
            faults.append(built)
        else:
            games.append(built)
    return Reading(tuple(games), tuple(faults))


def _tag(name: str, value: str) -> str:
    clean = "".join(c if c.isprintable() else " " for c in value)
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{name} "{escaped}"]'


def _tags(transcript: Transcript, game: Game) -> list[str]:
    tags = ROSTER | dict(transcript.tags) | {"Result": transcript.result}
    names = [*ROSTER, "Result", *(n for n in transcript.tags if n not in ROSTER and n != "Result")]
    lines = [_tag(name, tags[name]) for name in names]
    if transcript.game != "chess":
        lines.append(_tag("Variant", transcript.game.capitalize()))
    if game.setups or transcript.start_fen != game.start().start_fen:
        lines += [_tag("FEN", transcript.start_fen), '[SetUp "1"]']
    return lines


def _clock_text(seconds: float) -> str:
    whole = int(seconds)
    part = f"{seconds - whole:.3f}".lstrip("0").rstrip("0").rstrip(".")
    if part.startswith("1"):  # 59.9996 s rounds up to the next second
        whole, part = whole + 1, ""
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}{part}"


def _movetext(transcript: Transcript, game: Game) -> Iterator[str]:
    notes: dict[int, list[str]] = {}
    for ply, seconds in transcript.clocks.items():
        notes.setdefault(ply, []).append(f"[%clk {_clock_text(seconds)}]")
    for ply, comment in transcript.comments:
        words = " ".join(comment.replace("}", ")").replace("{", "(").split())
        notes.setdefault(ply, []).append(words)
    yield from (f"{{{note}}}" for note in notes.get(0, ()))
    state = _start(game, transcript.start_fen)
    number = int(transcript.start_fen.split()[-1])
    first = True
    for ply, move in enumerate(transcript.moves, 1):
        if state.turn == 0 or first:
            yield f"{number}{'.' if state.turn == 0 else '...'}"
        number += state.turn
        yield state.format_move(move, "san")
        state = state.apply(move)
        yield from (f"{{{note}}}" for note in notes.get(ply, ()))
        first = ply in notes
    yield transcript.result


def write_pgn(transcripts: tuple[Transcript, ...]) -> str:
    """PGN text of games, a blank line after each. Raises IllegalMove for a move that is not legal.

    A comment may hold no braces: they become parentheses.
    """
    parts = []
    for transcript in transcripts:
        game = GAMES[transcript.game]
        text = "\n".join(
            wrap(
                " ".join(_movetext(transcript, game)),
                80,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
        parts.append("\n".join(_tags(transcript, game)) + f"\n\n{text}\n")
    return "\n".join(parts)
