"""What the pages and their JSON twins are made of: one frozen dataclass a thing.

Times of day are seconds since 1970 (UTC), durations seconds, probabilities raw.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run and how far it is; `last_seq` is the sequence number of its newest event."""

    id: int
    name: str
    status: str
    seed: int
    config_hash: str
    madang: str
    created: float
    finished: float | None
    last_seq: int
    num_slots: int
    num_finished: int
    num_running: int
    games: tuple[str, ...]  # chess, janggi


@dataclass(frozen=True, slots=True)
class GameInfo:
    """One game without its moves."""

    id: int
    run_id: int
    slot_id: int
    attempt: int
    game: str
    rules: str
    first: str
    second: str
    pair: int
    round: int
    setup: str
    start_fen: str
    status: str
    result: str
    termination: str
    ending: str
    detail: str
    rated: bool
    plies: int
    points_first: float | None
    points_second: float | None
    started: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An attempt that gave no move: what it was read as and what the agent was told."""

    number: int
    kind: str
    uci: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class MoveInfo:
    """One ply. A last ply whose attempts all failed has an empty `uci` and the `fen` before it."""

    ply: int
    side: int
    player: str
    uci: str
    san: str
    fen: str
    check: str | None  # square of the king or general attacked after the move
    seconds: float | None = None
    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    ttft_s: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    chosen: float | None = None
    legal_mass: float | None = None
    terminator: str | None = None
    greedy: str | None = None
    disagreement: bool | None = None
    top: tuple[tuple[str, float], ...] = ()
    random_move: bool = False
    score_cp: int | None = None
    clock_s: float | None = None
    refused: tuple[Refusal, ...] = ()
    taken: tuple[str, str] = ("", "")  # FEN letters captured so far by the first, the second
    points: tuple[float, float] = (0.0, 0.0)  # material on the board now, of both


@dataclass(frozen=True, slots=True)
class GameView:
    """A whole game. `seq`: every event of its run up to this one is already in here."""

    game: GameInfo
    seq: int
    moves: tuple[MoveInfo, ...]


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """One request for a move with its raw texts (the prompt itself is asked for apart)."""

    ply: int
    number: int
    player: str
    kind: str
    answer: str
    thinking: str
    uci: str | None
    span_start: int | None
    span_end: int | None
    detail: str
    prompt_hash: str
    has_prompt: bool
    seed: int | None
    total_s: float | None
    queue_s: float | None
    ttft_s: float | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Tile:
    """One board of the wall: a game with its newest position."""

    game: GameInfo
    ply: int
    fen: str
    last: str | None
    san: str
    check: str | None


@dataclass(frozen=True, slots=True)
class Wall:
    """`seq` as in `GameView`."""

    run: RunInfo
    seq: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class GamePage:
    """One page of the library; `total` counts every game that fits the filters."""

    games: tuple[GameInfo, ...]
    total: int
    page: int
    size: int

    @property
    def num_pages(self) -> int:
        return max(1, -(-self.total // self.size))


@dataclass(frozen=True, slots=True)
class PlayerInfo:
    """Who plays, and how the games went."""

    id: int
    run_id: int
    name: str
    kind: str
    deterministic: bool
    config: dict[str, object]
    wins: int = 0
    draws: int = 0
    losses: int = 0
    forfeits: int = 0
    unresolved: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that was no legal move, with the position it was given in."""

    game_id: int
    game: str
    rules: str
    ply: int
    number: int
    player: str
    kind: str
    answer: str  # its first 2,000 characters
    length: int  # of the whole answer
    uci: str | None
    detail: str
    fen: str


@dataclass(frozen=True, slots=True)
class FailurePage:
    failures: tuple[Failure, ...]
    counts: dict[str, dict[str, int]]  # player → kind → how many
    total: int
    page: int
    size: int

    @property
    def num_pages(self) -> int:
        return max(1, -(-self.total // self.size))


@dataclass(frozen=True, slots=True)
class Latency:
    """Nearest-rank percentiles of one player's moves, in seconds; None: not measured."""

    player: str
    game: str
    moves: int
    seconds: tuple[float, float, float] | None  # p50, p90, p95
    queue_s: tuple[float, float, float] | None
    ttft_s: tuple[float, float, float] | None
    inter_token_s: tuple[float, float, float] | None  # decode time ÷ (completion tokens − 1)
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Series:
    """One measure of one model over time: `times` in seconds since the run was created."""

    name: str
    unit: str
    model: str
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LatencyView:
    run: RunInfo
    players: tuple[Latency, ...]
    series: tuple[Series, ...]
