"""What is stored: one record a game, one a move, one an attempt.

Three things are kept apart (status, result, termination), and a failure of ours is never a result.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from agents.base import Attempt, Belief
from games.base import Side

Result = Literal["1-0", "0-1", "1/2-1/2", "*"]
"""From the first mover's point of view; `*` is no result and never counts as a draw."""


class Status(StrEnum):
    SCHEDULED = "scheduled"
    RUNNING = "running"
    FINISHED = "finished"
    ABORTED = "aborted"  # no result; its slot is open again
    SUPERSEDED = "superseded"  # played again under the same slot


class Termination(StrEnum):
    """Ends that are not on the board. Board ends are `Game.terminations` of each game.

    The kind says who is to blame: protocol ends lose for a side, `no_result` ends score nobody.
    """

    # by protocol: the side that failed loses
    ILLEGAL = "illegal"
    UNPARSABLE = "unparsable"
    AMBIGUOUS = "ambiguous"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    REFUSED = "refused"
    RESIGNED = "resigned"
    TIME = "time"
    BUDGET = "budget"
    CRASH = "crash"
    STALL = "stall"
    # by agreement or adjudication
    DRAW_AGREED = "draw_agreed"
    ADJUDICATED_MATERIAL = "adjudicated_material"
    ADJUDICATED_POINTS = "adjudicated_points"
    ADJUDICATED_DRAW = "adjudicated_draw"
    ADJUDICATED_RESIGN = "adjudicated_resign"
    ADJUDICATED_REFEREE = "adjudicated_referee"  # by an engine at the cap
    CUT_SHORT = "cut_short"  # the arena's cap; shown, unrated
    IMPORTED = "imported"  # as its file says
    # no result: never scored
    ENGINE_ERROR = "engine_error"
    ENDPOINT_ERROR = "endpoint_error"
    CONSTRAINT_IGNORED = "constraint_ignored"
    PROMPT_TRUNCATED = "prompt_truncated"
    OVERLOADED = "overloaded"
    BUG = "bug"
    INTERRUPTED = "interrupted"


PROTOCOL_ENDS = frozenset(
    {
        Termination.ILLEGAL,
        Termination.UNPARSABLE,
        Termination.AMBIGUOUS,
        Termination.TRUNCATED,
        Termination.EMPTY,
        Termination.REFUSED,
        Termination.RESIGNED,
        Termination.TIME,
        Termination.BUDGET,
        Termination.CRASH,
        Termination.STALL,
    }
)
NO_RESULT_ENDS = frozenset(
    {
        Termination.ENGINE_ERROR,
        Termination.ENDPOINT_ERROR,
        Termination.CONSTRAINT_IGNORED,
        Termination.PROMPT_TRUNCATED,
        Termination.OVERLOADED,
        Termination.BUG,
        Termination.INTERRUPTED,
    }
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One game to be played; its id is unique within the run and stable across resumes."""

    id: int
    game: str
    rules: str
    first: str  # player name: White, Cho
    second: str
    pair: int  # two slots of a pair share the opening, colours swapped
    opening: str = ""  # start FEN; "" is the game's own start
    setup: str = ""  # janggi: `nbbn/nbbn`
    round: int = 1
    section: int = 0  # index of its [[games]] table in the run's config


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """One ply as it was played. Times in seconds."""

    ply: int  # from 1
    side: Side
    player: str
    uci: str
    san: str  # in the game's second notation, or UCI
    fen: str  # after the move
    seconds: float  # from asking to the answer, by the wall
    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    ttft_s: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    attempts: tuple[Attempt, ...] = ()
    belief: Belief | None = None
    random_move: bool = False
    score_cp: int | None = None
    clock_s: float | None = None  # left after the move


@dataclass(frozen=True, slots=True)
class GameRecord:
    """How one game stands. `attempts` of a forfeit that led to no move are kept here."""

    slot: Slot
    status: Status
    start_fen: str
    result: Result = "*"
    termination: str = ""  # a Termination or one of the game's own
    detail: str = ""  # `White mates`, `Black: illegal move e2e5 after 3 attempts`
    rated: bool = True
    plies: int = 0
    points: tuple[float, float] | None = None  # at the end
    failed_attempts: tuple[Attempt, ...] = field(default=())
    failed_player: str = ""  # who made them, and who is to blame for a protocol end or no result
