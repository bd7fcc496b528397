"""What crosses the border between the arena and its agents: a `Turn` in, a `Decision` out.

Everything here is frozen and knows nothing about tensors, prompts or databases.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from games.base import Game, GameState, Move, Side

DecisionKind = Literal["move", "resign", "draw_offer", "forfeit", "no_result"]
"""`forfeit`: the agent failed by protocol (`reason` says how). `no_result`: we or the
infrastructure failed; the game is never scored."""

FailureKind = Literal["unparsable", "illegal", "ambiguous", "truncated", "empty", "refused"]
"""What an answer text can be instead of a move."""

ForfeitReason = FailureKind | Literal["time", "budget", "crash", "stall"]
NoResultReason = Literal[
    "engine_error", "endpoint_error", "constraint_ignored", "prompt_truncated", "overloaded", "bug"
]


def derive_seed(*parts: int | str) -> int:
    """A 63-bit seed from the parts, the same on every machine: SHA-256 of their joined text.

    Request seeds are `derive_seed(run_seed, slot, ply, player, attempt)`, so games and retries do
    not correlate and a replayed game draws the same.
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the time of one request went, in seconds. None: does not apply or not known.

    `ttft` counts from submission and contains `queue`; both are kept so that waiting never hides.
    """

    total: float
    queue: float | None = None
    prefill: float | None = None
    decode: float | None = None
    ttft: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request; `cached` of the prompt tokens came from the prefix cache."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request for a move and what came back."""

    number: int  # from 1
    kind: Literal["move", "resign", "draw_offer"] | FailureKind
    answer: str = ""  # the raw text, never cut
    thinking: str = ""
    uci: str | None = None  # the move read, also where it was refused as illegal
    span: tuple[int, int] | None = None  # characters of `answer` that were read
    detail: str = ""  # why it was refused, as it was told to the agent
    prompt: str = ""  # the rendered text that was sent
    prompt_hash: str = ""
    seed: int | None = None
    timing: Timing | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Belief:
    """What the model held of the legal moves, where the mode computes it (`choice`).

    `chosen` and `legal_mass` are raw probabilities of exactly these spellings under `terminator`;
    `top` lists (uci, raw probability), best first.
    """

    chosen: float
    legal_mass: float
    terminator: str
    greedy: str | None = None  # what a masked greedy walk plays
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What the agent does now. `move` is set iff `kind` is `move`; the referee checks it anyway."""

    kind: DecisionKind
    move: Move | None = None
    reason: ForfeitReason | NoResultReason | None = None
    detail: str = ""
    attempts: tuple[Attempt, ...] = ()
    belief: Belief | None = None
    random_move: bool = False  # chosen by the policy's fallback, not by the agent
    score_cp: int | None = None  # an engine's own evaluation, from the mover's point of view


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds left for both sides and the increment; None: untimed."""

    remaining: tuple[float | None, float | None] = (None, None)
    increment: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Turn:
    """A request for one move."""

    game_id: str
    state: GameState
    seed: int  # derive_seed(run_seed, slot, ply, player); attempts mix in their number
    clocks: Clocks = field(default_factory=Clocks)
    draw_offered: bool = False  # the opponent offers a draw
    plies_left: int | None = None  # to the arena's own cap

    @property
    def side(self) -> Side:
        return self.state.turn


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """Who plays, as it is stored: the name carries model, precision and mode."""

    name: str
    kind: str  # llm, random, material, uci, ...
    config: Mapping[str, object]  # resolved, JSON-able, without secrets
    deterministic: bool


@dataclass(frozen=True, slots=True)
class Telemetry:
    """How one model's engine stands, for the panel and the record. Counters since its start."""

    model: str
    loading: bool
    num_requests_waiting: int = 0
    num_requests_running: int = 0
    kv_cache_usage_perc: float = 0.0  # 0 … 1, as vLLM's metric of that name
    steps: int = 0
    rows: int = 0  # rows of all steps: iteration_tokens_total
    sequences: int = 0  # sequences of all steps; ÷ steps = mean batch
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prefix_cache_queries: int = 0  # tokens
    prefix_cache_hits: int = 0  # tokens
    num_preemptions: int = 0
    busy_seconds: float = 0.0  # spent inside steps


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `fail`: no game can be played so; `warn`: some cannot, or
    something is worth knowing."""

    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str  # one line


@dataclass(frozen=True, slots=True)
class ModelSwap:
    """Weights of one model went in, of others out, for all did not fit. `served`: requests that
    ended since the swap before."""

    out: tuple[str, ...]
    into: str
    seconds: float
    served: int


class AgentError(Exception):
    """The agent cannot start or go on; one line that names the thing and the fix."""


class Agent(Protocol):
    """One player. Serves many games at once; every method is called on the event loop."""

    @property
    def info(self) -> AgentInfo: ...

    async def start(self) -> None:
        """Take what it needs (process, model). Raises AgentError. Called once before any game."""

    async def new_game(self, game_id: str, game: Game, side: Side) -> None: ...

    async def choose(self, turn: Turn) -> Decision:
        """Decide. Raises only on our own bugs; its failures are Decisions.

        May be cancelled at any await; must leave nothing behind.
        """

    async def end_game(self, game_id: str) -> None: ...

    async def close(self) -> None: ...


@runtime_checkable
class CountsFaults(Protocol):
    """An agent that keeps count of what its other end did wrong beside its answers."""

    @property
    def faults(self) -> Mapping[str, int]:
        """What happened → how often since its start; what never happened may be left out."""
