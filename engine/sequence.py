"""One request while it runs: its tokens, its blocks, where its walk stands, what it has put out.

Mutable, owned by the scheduler. Knows nothing about other sequences. K/V of positions below
`num_computed` are in the blocks of `block_table`; tokens from there on are pending, and the step
that computes the last of them also yields the next token (or the scores). Forced tokens of a
masked walk are appended at once: they are pending rows of the next step, if there is one.
"""

from enum import Enum, auto

from engine.choices import ChoiceSet
from engine.text import OutputText
from engine.trie import ChoiceTrie
from engine.types import (
    BlockCopy,
    ChoiceScores,
    Completion,
    EngineError,
    FinishReason,
    Request,
    RequestStats,
    RequestTimes,
    SampleSpec,
    SequenceOutput,
    SequenceStep,
)
from engine.walk import ChoiceWalk


class Status(Enum):
    """WAITING holds no blocks (new or preempted); RUNNING does; FINISHED never comes back."""

    WAITING = auto()
    RUNNING = auto()
    FINISHED = auto()


class Sequence:
    """State of one request. `submitted` is a time in seconds."""

    def __init__(
        self,
        request: Request,
        *,
        submitted: float,
        max_model_len: int,
        eos_token_ids: frozenset[int] = frozenset(),
        choices: ChoiceSet | None = None,
        text: OutputText | None = None,
    ) -> None:
        self.request = request
        self.arrival = 0  # its place in the order of arrival, given by the scheduler
        self.status = Status.WAITING
        self.tokens = list(request.prompt)
        self.num_prompt = len(request.prompt)
        self.num_computed = 0
        self.block_table: list[int] = []
        self.num_published = 0  # leading blocks of the table that others can find
        self.copy: BlockCopy | None = None  # to be done before the first rows; source is held
        self.copied_from: int | None = None  # that source, also when the copy is done
        self.num_skipped = 0  # steps in a row without rows while running
        self.finish_reason: FinishReason | None = None

        self._max_len = min(max_model_len, self.num_prompt + request.sampling.max_tokens)
        self._ends = frozenset(request.sampling.stop_token_ids)
        if not request.sampling.ignore_eos:
            self._ends |= eos_token_ids
        self._text = text
        self._scoring = choices if request.score else None
        self._walk: ChoiceWalk | None = None
        if choices is not None and not request.score:
            self._walk = ChoiceWalk(choices.choices)
        self._edges: tuple[float, ...] = ()
        self._logprobs: list[float | None] = []
        self._top_logprobs: list[tuple[tuple[int, float], ...]] = []

        self.num_cached: int | None = None  # prompt tokens found when first admitted
        self.num_rows_computed = 0
        self.num_forced = 0
        self.num_preemptions = 0
        self.submitted = submitted
        self.scheduled: float | None = None
        self.first_token: float | None = None
        self.last_token: float | None = None
        self._take_forced()

    # What it needs

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def num_pending(self) -> int:
        return len(self.tokens) - self.num_computed

    @property
    def num_trie_rows(self) -> int:
        """Rows that must share the step of the last pending row."""
        return 0 if self._scoring is None else len(self._scoring.trie.tokens)

    @property
    def is_decoding(self) -> bool:
        """The prompt is computed; only output is pending."""
        return self.num_computed >= self.num_prompt

    @property
    def deadline(self) -> float | None:
        timeout = self.request.timeout_s
        return None if timeout is None else self.submitted + timeout

    def step(self, num_rows: int) -> SequenceStep:
        """The next `num_rows` pending rows; the last pending one asks for a result."""
        start, end = self.num_computed, self.num_computed + num_rows
        is_last = end == len(self.tokens)
        trie = self._trie() if is_last else None
        return SequenceStep(
            request_id=self.request_id,
            tokens=tuple(self.tokens[start:end]),
            start=start,
            block_table=tuple(self.block_table),
            sample=self._sample() if is_last and trie is None else None,
            trie=trie,
        )

    def _trie(self) -> ChoiceTrie | None:
        if self._scoring is not None:
            return self._scoring.trie
        if self._walk is not None and self._walk.is_fork:
            return ChoiceTrie.build([(token,) for token in self._walk.allowed])
        return None

    def _sample(self) -> SampleSpec:
        params = self.request.sampling
        return SampleSpec(
            params=params,
            position=len(self.tokens),
            allowed=None if self._walk is None else self._walk.allowed,
            history=tuple(self.tokens) if params.repetition_penalty != 1.0 else (),
        )

    # What a step brought

    def accept(self, step: SequenceStep, output: SequenceOutput, now: float) -> str:
        """Take in the rows of a step and what it yielded; text that may be sent now."""
        self.num_computed = step.start + len(step.tokens)
        self.num_rows_computed += step.num_rows
        if step.sample is None and step.trie is None:
            return ""
        if self.first_token is None:
            self.first_token = now
        self.last_token = now
        if self._scoring is not None:
            if output.edge_logprobs is None:
                raise EngineError("the runner gave no log-probabilities for a trie")
            self._edges, self.finish_reason = output.edge_logprobs, "choice"
            return ""
        if step.trie is not None:
            self._take_fork(output)
        else:
            if output.token is None:
                raise EngineError("the runner gave no token for a sample")
            self._append(output.token, output.logprob, output.top_logprobs)
        self._take_forced()
        return self.take_text()

    def _take_fork(self, output: SequenceOutput) -> None:
        """At a choice that begins others: end there, or go on to a child."""
        walk, edges = self._walk, output.edge_logprobs
        if walk is None or edges is None:
            raise EngineError("the runner gave no log-probabilities for a fork")
        taken = walk.decide(edges, self.request.sampling, len(self.tokens))
        if taken is None:
            walk.end()
        else:
            self._append(walk.allowed[taken], edges[taken])

    def _append(
        self,
        token: int,
        logprob: float | None,
        top_logprobs: tuple[tuple[int, float], ...] = (),
        *,
        forced: bool = False,
    ) -> None:
        self.tokens.append(token)
        self._logprobs.append(logprob)
        self._top_logprobs.append(top_logprobs)
        if self._walk is not None and not forced:
            self._walk.advance(token)
        if self._walk is None and token in self._ends:
            self.finish_reason = "stop"
            return
        if self._text is not None and token not in self._ends:
            self._text.push(token)
            if self._text.stopped and self._walk is None:
                self.finish_reason = "stop"
        if self.finish_reason is None and self._walk is None and len(self.tokens) >= self._max_len:
            self.finish_reason = "length"

    def _take_forced(self) -> None:
        if self._walk is None:
            return
        for token in self._walk.take_forced():
            self._append(token, None, forced=True)
            self.num_forced += 1
        if not self._walk.allowed:
            self.finish_reason = "choice"

    def take_text(self) -> str:
        """Text not taken before that may be sent."""
        if self._text is None:
            return ""
        if self.finish_reason is not None:
            self._text.finish()
        return self._text.take(everything=self.finish_reason is not None)

    # Its end

    def result(self, now: float) -> Completion | ChoiceScores:
        """What a finished sequence returns. Raises EngineError where no choice is possible."""
        if self._scoring is not None:
            return self._scores(self._scoring, now)
        if self.finish_reason is None:
            raise EngineError(f"request {self.request_id} has not ended")
        self.take_text()
        return Completion(
            request_id=self.request_id,
            tokens=tuple(self.tokens[self.num_prompt :]),
            text="" if self._text is None else self._text.text,
            finish_reason=self.finish_reason,
            stats=self.stats(now),
            logprobs=tuple(self._logprobs),
            top_logprobs=tuple(self._top_logprobs) if self.request.sampling.logprobs else (),
            choice=None if self._walk is None else self._walk.choice,
        )

    def _scores(self, choices: ChoiceSet, now: float) -> ChoiceScores:
        found = choices.distribution(self._edges, self.request.sampling, self.num_prompt)
        return ChoiceScores(
            request_id=self.request_id,
            logprobs=found.logprobs,
            probabilities=found.probabilities,
            legal_mass=found.legal_mass,
            argmax=found.argmax,
            greedy=found.greedy,
            terminator=self.request.terminator,
            stats=self.stats(now),
            choice=found.choice,
        )

    def stats(self, now: float) -> RequestStats:
        return RequestStats(
            prompt_tokens=self.num_prompt,
            cached_tokens=self.num_cached or 0,
            completion_tokens=len(self.tokens) - self.num_prompt,
            computed_tokens=self.num_rows_computed,
            forced_tokens=self.num_forced,
            num_preemptions=self.num_preemptions,
            times=self._times(now),
        )

    def _times(self, now: float) -> RequestTimes:
        scheduled = now if self.scheduled is None else self.scheduled
        first = now if self.first_token is None else self.first_token
        return RequestTimes(
            queue=scheduled - self.submitted,
            prefill=first - scheduled,
            decode=now - first,
            ttft=first - self.submitted,
            e2e=now - self.submitted,
        )
