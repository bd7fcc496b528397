"""A position → the messages that ask for a move. Named, versioned templates; every byte accounted.

The layout is append-only: the system message is the same for all agents of a game and language,
then come the notation and the moves so far, to which each ply only adds; what changes every ply
(position, facts, side, question) stands last. Both players of a game so share all but the tail.
No names, dates or ids are ever shown. The template's notation lists moves, is scored and is read.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from games.base import Fact, GameState, Move

from .spec import nearest
from .templates import TEMPLATES, Template, Words

DEFAULT_TEMPLATE = "history"
SOON = 20  # plies: an end by lack of progress is told from here on
_NOTATIONS = {"uci": "UCI", "san": "SAN", "korean": "기보", "hanja": "기보"}
_EXAMPLES: Mapping[tuple[str, str], str] = {
    ("chess", "uci"): "e2e4",
    ("chess", "san"): "Nf3",
    ("janggi", "uci"): "a4b4",
    ("janggi", "korean"): "79졸78",
    ("janggi", "hanja"): "79卒78",
    ("janggi", "san"): "Hc3",
}


@dataclass(frozen=True)
class Message:
    """One turn of the conversation."""

    role: str  # system, user, assistant
    content: str


@dataclass(frozen=True)
class Prompt:
    """What is sent. `hash` is over the messages; `template_hash` over all texts of the template."""

    messages: tuple[Message, ...]
    template: str  # name@version
    template_hash: str

    @cached_property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of SHA-256 over the messages."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def text(self) -> str:
        """The messages as a text for the record, before the model's own chat template."""
        return "\n\n".join(f"[{message.role}]\n{message.content}" for message in self.messages)

    def extended(self, answer: str, reply: str) -> "Prompt":
        """The same conversation with an answer and what is said to it."""
        more = (Message("assistant", answer), Message("user", reply))
        return Prompt((*self.messages, *more), self.template, self.template_hash)


@dataclass(frozen=True, slots=True)
class PromptReport:
    """How much of a prompt the engine already has from an earlier one."""

    tokens: int
    reusable: int

    @property
    def fresh(self) -> int:
        return self.tokens - self.reusable


def get_template(name: str) -> Template:
    """The template of that name. Raises ValueError with the nearest one."""
    if name not in TEMPLATES:
        known = ", ".join(TEMPLATES)
        raise ValueError(f"unknown template {name!r}{nearest(name, TEMPLATES)}: known are {known}")
    return TEMPLATES[name]


def render_prompt(
    template: str | Template,
    state: GameState,
    *,
    notation: str = "uci",
    plies_left: int | None = None,
    draw_offered: bool = False,
    may_resign: bool = True,
    may_offer_draw: bool = True,
) -> Prompt:
    """The messages that ask the side to move for a move.

    What a policy forbids is said at the end, since the system message is the same for all players.
    Raises ValueError for an unknown template or a notation that the game lacks.
    """
    chosen = get_template(template) if isinstance(template, str) else template
    words, game = chosen.words, state.game
    if notation not in game.notations:
        known = ", ".join(game.notations)
        raise ValueError(f"{game.name} has no notation {notation!r}: it has {known}")
    stable = [_notation(words, game.name, notation)]
    if state.start_fen != _usual_start(state):
        stable.append(words.start.format(fen=state.start_fen))
    moves = " ".join(move_texts(state, notation))
    stable.append(words.moves.format(moves=moves) if moves else words.no_moves)
    shown = [_part(part, words, state, notation) for part in chosen.layout.parts if part != "moves"]
    said = _facts(words, state, plies_left, draw_offered)
    said += [words.no_resign] * (not may_resign) + [words.no_draw_offer] * (not may_offer_draw)
    tail = " ".join([*said, words.ask])
    user = "\n".join([*stable, *shown, tail])
    return Prompt(
        (Message("system", words.system[game.name]), Message("user", user)),
        f"{chosen.name}@{chosen.version}",
        chosen.hash,
    )


def report(previous: Sequence[int], current: Sequence[int]) -> PromptReport:
    """Token count of `current`, and how many of its first tokens are those of `previous`."""
    shared = 0
    for a, b in zip(previous, current, strict=False):
        if a != b:
            break
        shared += 1
    return PromptReport(len(current), min(shared, len(current) - 1) if current else 0)


def legal_texts(state: GameState, notation: str) -> tuple[tuple[str, Move], ...]:
    """Every legal move with its text in the notation, in the order of UCI."""
    legal = state.legal_moves()
    if notation == "uci":
        return tuple((move.uci, move) for move in legal)
    return tuple((state.format_move(move, notation), move) for move in legal)


_Key = tuple[str, str, str, str, tuple[Move, ...]]
_PAST: "OrderedDict[_Key, tuple[GameState, tuple[str, ...]]]" = OrderedDict()
_PAST_SIZE = 1024  # games × players whose past is kept in text


def move_texts(state: GameState, notation: str) -> tuple[str, ...]:
    """The moves so far in the notation, oldest first; replays only what is new to it."""
    if notation == "uci":
        return tuple(move.uci for move in state.moves)
    game, moves = state.game, state.moves
    key = (game.name, state.rules, state.start_fen, notation)
    for known in range(len(moves), max(-1, len(moves) - 4), -1):
        if (found := _PAST.get((*key, moves[:known]))) is not None:
            at, texts = found
            break
    else:
        known, at, texts = 0, game.start(rules=state.rules, fen=state.start_fen), ()
    for move in moves[known:]:
        texts = (*texts, at.format_move(move, notation))
        at = at.apply(move)
    _PAST[(*key, moves)] = (at, texts)
    if len(_PAST) > _PAST_SIZE:
        _PAST.popitem(last=False)
    return texts


_STARTS: dict[tuple[str, str], str] = {}


def _usual_start(state: GameState) -> str:
    key = (state.game.name, state.rules)
    if key not in _STARTS:
        _STARTS[key] = state.game.start(rules=state.rules).start_fen
    return _STARTS[key]


def _notation(words: Words, game: str, notation: str) -> str:
    example = _EXAMPLES.get((game, notation), "")
    return words.notation.format(notation=_NOTATIONS.get(notation, notation), example=example)


def _part(part: str, words: Words, state: GameState, notation: str) -> str:
    if part == "fen":
        return words.fen.format(fen=state.fen())
    if part == "board":
        return words.board.format(board=state.board_text())
    return words.legal.format(moves=" ".join(text for text, _ in legal_texts(state, notation)))


def _facts(words: Words, state: GameState, plies_left: int | None, draw_offered: bool) -> list[str]:
    """What the player must be told now: what is always true is in the system message."""
    facts = state.facts()
    sides = [words.sides.get(side, side) for side in state.game.sides]
    said = [words.side.format(side=sides[state.turn])]
    said.append(_points(words, sides, facts))
    if facts["check"]:
        said.append(words.check)
    if facts.get("bikjang"):
        said.append(words.bikjang)
    if facts.get("last_was_pass"):
        said.append(words.opponent_passed)
    if effect := facts.get("pass_effect"):
        said.append(words.pass_effect[str(effect)])
    if int(facts["repetitions"] or 1) > 1:
        said.append(words.repeated.format(times=facts["repetitions"]))
    quiet = facts.get("plies_to_move_rule", facts.get("plies_to_no_capture_end"))
    if isinstance(quiet, int) and quiet <= SOON:
        said.append(words.quiet_left.format(plies=quiet))
    caps = [cap for cap in (plies_left, facts.get("plies_to_cap")) if isinstance(cap, int)]
    if caps:
        said.append(words.plies_left.format(plies=min(caps)))
    if draw_offered:
        said.append(words.draw_offered)
    return [text for text in said if text]


def _points(words: Words, sides: Sequence[str], facts: Mapping[str, Fact]) -> str:
    first, second = (f"{facts[key]:g}" for key in ("points_first", "points_second"))
    return words.points.format(
        first=sides[0], first_points=first, second=sides[1], second_points=second
    )
