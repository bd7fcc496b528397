"""What an LLM agent asks of a model, wherever it runs: the in-process engine or an endpoint.

Three ways to ask: free text, a walk that can only end at one of the choices, and the probability
of every choice. Knows no tokens and no games.
"""

from dataclasses import dataclass, field
from typing import Protocol

from .base import AgentError, NoResultReason, Telemetry, Timing, Usage
from .prompt import Message

THINK_OPEN = "<think>\n"
"""How reasoning begins; a backend leaves it out where the model's template opens it already."""


class BackendError(Exception):
    """The model gave no answer, and that is not the player's fault; `reason` is kept."""

    def __init__(self, reason: NoResultReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn; the defaults are greedy."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    max_tokens: int = 64
    stop: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `opening` is text that the answer is made to begin with (a thought so far)."""

    id: str
    messages: tuple[Message, ...]
    sampling: Sampling = field(default_factory=Sampling)
    opening: str = ""
    thinking: bool | None = None  # the switch of the model's chat template
    terminator: str = "none"  # how choices end: none, eos, newline
    priority: int = 0
    timeout_s: float | None = None
    course: str = ""  # a game of one player, whose prompts grow from ply to ply


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, or the index of the choice that was walked to. `cut`: ended at `max_tokens`."""

    text: str
    cut: bool
    timing: Timing
    usage: Usage
    prompt: str  # as sent, by the model's chat template
    choice: int | None = None
    in_thinking: bool = False  # the prompt itself opened a thinking block


@dataclass(frozen=True, slots=True)
class Scores:
    """Raw log-probabilities of the choices in the caller's order, and what follows from them."""

    logprobs: tuple[float, ...]
    legal_mass: float
    choice: int  # drawn, or the best at temperature 0
    greedy: int  # where a masked greedy walk ends
    timing: Timing
    usage: Usage
    prompt: str


class Backend(Protocol):
    """A model that can be asked. Every method raises BackendError only."""

    async def generate(self, ask: Ask) -> Answer: ...

    async def walk(self, ask: Ask, choices: tuple[str, ...]) -> Answer: ...

    async def score(self, ask: Ask, choices: tuple[str, ...]) -> Scores: ...

    async def ready(self) -> None:
        """Wait until it can be asked. Raises AgentError where it never will be."""


class Model(Backend, Protocol):
    """A backend with a life of its own, which several agents may share."""

    @property
    def failure(self) -> AgentError | None:
        """Why it cannot be used; None: it can, or it is not known yet."""

    def telemetry(self) -> Telemetry:
        """How it stands. Cheap."""

    async def close(self) -> None: ...
