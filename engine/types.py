"""The values that flow through the engine. Frozen, torch-free.

`Request` enters, `StepPlan` goes to the runner, `StepOutput` comes back, `Completion` or
`ChoiceScores` leaves. A step is one flat batch of rows; a row is one token of one sequence.
"""

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from engine.trie import ChoiceTrie

TokenIds = tuple[int, ...]
FinishReason = Literal["stop", "length", "choice", "abort", "deadline"]
Terminator = Literal["none", "eos", "newline"]


class EngineError(Exception):
    """Base of what the engine tells its callers."""


class EngineOverloaded(EngineError):
    """`max_num_queued_reqs` are waiting already; try later."""


class InvalidRequest(EngineError):
    """Malformed: an empty prompt, a token outside the vocabulary, a temperature below zero …"""


class RequestTooLarge(EngineError):
    """Could never run: longer than `max_model_len`, the pool, or a step's budget for a trie."""


class RequestAborted(EngineError):
    """Aborted by its caller, by its deadline, or by the engine's end."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn. Defaults are greedy. Draws depend on (seed, position) alone."""

    temperature: float = 0.0
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    max_tokens: int = 64
    stop: tuple[str, ...] = ()  # stop strings, also across token borders; not in the text
    stop_token_ids: tuple[int, ...] = ()  # besides the model's end tokens
    ignore_eos: bool = False
    logprobs: int = 0  # how many top log-probabilities to return a token
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to do. Exactly one of free decoding, masked walk, choice scoring:

    `choices` None: free decoding. `choices` set, `score` False: decoding masked to the trie of the
    choices. `choices` set, `score` True: the log-probability of every choice in one pass.
    """

    request_id: str
    prompt: TokenIds
    sampling: SamplingParams = field(default_factory=SamplingParams)
    choices: tuple[TokenIds, ...] | None = None
    score: bool = False
    terminator: Terminator = "none"  # how `choices` were ended; stored with the result
    priority: int = 0  # smaller is sooner, as in vLLM
    timeout_s: float | None = None  # from submission; then RequestAborted
    cache_salt: str = ""  # requests share cached blocks only under one salt


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """Copy the first `num_slots` slots of a block before the step (a partial prefix match)."""

    source: int
    target: int
    num_slots: int


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """Draw one token from the last row of a sequence."""

    params: SamplingParams
    position: int  # index of the token to be drawn in the whole sequence: the draw's counter
    allowed: TokenIds | None = None  # sorted; masked walk
    history: TokenIds = ()  # prompt and output, only where a repetition penalty needs it


@dataclass(frozen=True, slots=True)
class SequenceStep:
    """The rows of one sequence in this step.

    `tokens` are at absolute positions start … start+len−1; K/V of positions below `start` are in
    the pool already; `block_table` covers all of them. `trie` hangs from the last row; its rows
    follow at positions start+len+depth−1 and never reach the pool. At most one of `sample`,
    `trie` is set; neither: a prefill chunk that is not the last.
    """

    request_id: str
    tokens: TokenIds
    start: int
    block_table: tuple[int, ...]
    sample: SampleSpec | None = None
    trie: "ChoiceTrie | None" = None

    @property
    def num_rows(self) -> int:
        return len(self.tokens) + (len(self.trie.tokens) if self.trie is not None else 0)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What runs in one step. Copies are done first."""

    step: int
    sequences: tuple[SequenceStep, ...]
    copies: tuple[BlockCopy, ...] = ()

    @property
    def num_rows(self) -> int:
        return sum(sequence.num_rows for sequence in self.sequences)


@dataclass(frozen=True, slots=True)
class SequenceOutput:
    """What the runner found for one sequence of the plan, in the plan's order.

    `edge_logprobs` follow `ChoiceTrie.edges`: log-softmax over the full vocabulary (never
    renormalised) of the edge's token at its parent row. `corrupted`: NaN or infinite logits, so no
    token and no probability may be used.
    """

    token: int | None = None
    logprob: float | None = None
    top_logprobs: tuple[tuple[int, float], ...] = ()
    edge_logprobs: tuple[float, ...] | None = None
    corrupted: bool = False


@dataclass(frozen=True, slots=True)
class StepOutput:
    """One output a sequence of the plan; `seconds` is what the runner took."""

    sequences: tuple[SequenceOutput, ...]
    seconds: float


class Runner(Protocol):
    """The compute half: owns weights and the block pool, knows nothing about requests."""

    @property
    def block_size(self) -> int: ...

    @property
    def num_blocks(self) -> int: ...

    @property
    def max_model_len(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...

    def step(self, plan: StepPlan) -> StepOutput:
        """Run the plan. Raises only on our own bugs (then every sequence of it has failed)."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Seconds. `queue`: submission → first scheduled; `prefill`: → first token (or scores);
    `decode`: first token → end; `ttft` = queue + prefill; `e2e`: submission → end."""

    queue: float
    prefill: float
    decode: float
    ttft: float
    e2e: float


@dataclass(frozen=True, slots=True)
class RequestStats:
    """Work of one request. Recompute after a preemption is counted apart, not as hits."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    computed_tokens: int  # rows that ran a forward pass, recompute included
    forced_tokens: int  # appended without a pass in a masked walk
    num_preemptions: int
    times: RequestTimes


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of free decoding or of a masked walk (`choice` is the index of the choice walked)."""

    request_id: str
    tokens: TokenIds
    text: str
    finish_reason: FinishReason
    stats: RequestStats
    logprobs: tuple[float | None, ...] = ()  # one a token; None for a forced token
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...] = ()
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class ChoiceScores:
    """The exact distribution over the choices of one request, in the caller's order.

    `logprobs` are raw: products of full-vocabulary softmax terms along each choice's tokens, of
    exactly this spelling, under `terminator`. `legal_mass` is the sum of their exponentials;
    `probabilities` are renormalised over the choices. `greedy` is the index a masked greedy walk
    ends at; it may differ from the argmax. `choice` is what the request's sampling settings take:
    the argmax at temperature 0, otherwise a draw from probabilities^(1/temperature).
    """

    request_id: str
    logprobs: tuple[float, ...]
    probabilities: tuple[float, ...]
    legal_mass: float
    argmax: int
    greedy: int
    terminator: Terminator
    stats: RequestStats
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """What changed for one request: text that may be sent, and at its end the result or error."""

    request_id: str
    text: str = ""
    result: Completion | ChoiceScores | EngineError | None = None


class TextStream(Protocol):
    """An incremental detokenizer: never a part of a character, never a replacement inside."""

    def push(self, token_id: int) -> str: ...

    def finish(self) -> str:
        """What is left at the end, incomplete bytes as replacement characters."""


class Detokenizer(Protocol):
    """What the engine needs of a tokenizer."""

    def stream(self) -> TextStream: ...

    def decode(self, token_ids: Seq[int]) -> str: ...


def num_blocks_for(num_tokens: int, block_size: int) -> int:
    """Blocks that hold so many tokens."""
    return -(-num_tokens // block_size)


def common_prefix(a: Seq[int], b: Seq[int]) -> int:
    """How many leading tokens two sequences share."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
