"""Decides what runs in each step: admits, gives rows, preempts, and takes in what a step found.

One thread: `plan` and `commit` (or `fail`) alternate; requests are added, aborted and expired
between. Nothing here changes a result, only when its rows run.

- Order: by priority class (all alike under fcfs), then arrival. The first in the queue is never
  passed by a later one of its class, so nothing starves within a class; under `priority` a
  class waits for the ones above, always.
- A step has at most `max_num_batched_tokens` rows: first those that decode, then prompts in chunks.
  A sequence that got no rows for `PATIENCE` steps goes first in its class.
- The last prompt row and the trie of a scoring request share a step: the chunk before shrinks to
  make room; a trie with no room even so (rows + 1 > budget) gets a step of its own.
- A sequence short of blocks preempts one that comes after it in the order, the lowest class first,
  of these the one with the least work to lose; never one before it. Under `priority` an arrival
  preempts running ones of lower classes. Preempted sequences wait at their old place and recompute;
  one that was preempted twice comes back when all that run have room to their maximum, and gives
  way after all others, so that only higher classes can preempt it again.
- static: a batch is admitted when the one before has ended to the last; serial: one at a time.
"""

from bisect import insort
from collections.abc import Iterable, Iterator

from engine.blocks import BlockPool, BlockUsage, HashFunction, chained_hash
from engine.config import EngineConfig
from engine.limits import Limits
from engine.memory import SequenceMemory
from engine.metrics import EngineMetrics, EngineSnapshot
from engine.sequence import Sequence, Status
from engine.text import OutputText
from engine.types import (
    ChoiceScores,
    Completion,
    Detokenizer,
    EngineError,
    EngineOverloaded,
    InvalidRequest,
    Request,
    RequestAborted,
    SequenceOutput,
    SequenceStep,
    StepOutput,
    StepPlan,
    Update,
    num_blocks_for,
)

PATIENCE = 4
MAX_CHEAP_PREEMPTIONS = 2


class Scheduler:
    """Owns the queue, the running sequences and their memory. Torch-free."""

    def __init__(
        self,
        config: EngineConfig,
        limits: Limits,
        *,
        eos_token_ids: Iterable[int] = (),
        detokenizer: Detokenizer | None = None,
        hash_function: HashFunction = chained_hash,
    ) -> None:
        self.metrics = EngineMetrics()
        self.limits = limits
        self._config = config
        self._eos = frozenset(eos_token_ids)
        self._detokenizer = detokenizer
        pool = BlockPool(
            limits.num_blocks,
            limits.block_size,
            enable_prefix_caching=config.enable_prefix_caching,
            hash_function=hash_function,
        )
        self.memory = SequenceMemory(pool)
        self._sequences: dict[str, Sequence] = {}
        self._waiting: list[Sequence] = []  # sorted by rank
        self._running: list[Sequence] = []
        self._num_arrived = 0
        self._num_planned = 0

    # Requests come and go

    def prepare(self, request: Request, now: float) -> Sequence:
        """A sequence for `add`; changes nothing, so any thread may call it.

        Raises InvalidRequest or RequestTooLarge.
        """
        choices = self.limits.check(request, has_tokenizer=self._detokenizer is not None)
        text = None
        if self._detokenizer is not None and not request.score:
            text = OutputText(self._detokenizer.stream(), request.sampling.stop)
        return Sequence(
            request,
            submitted=now,
            max_model_len=self.limits.max_model_len,
            eos_token_ids=self._eos,
            choices=choices,
            text=text,
        )

    def add(self, sequence: Sequence, now: float) -> tuple[Update, ...]:
        """Queue it; a walk with a single way ends here. Raises EngineOverloaded, InvalidRequest."""
        if sequence.request_id in self._sequences:
            raise InvalidRequest(f"request id {sequence.request_id!r} is in use")
        limit = self._config.num_places + self._config.max_num_queued_reqs
        if len(self._sequences) >= limit:
            raise EngineOverloaded(
                f"{len(self._sequences)} requests are running or queued already "
                "(max_num_queued_reqs); try again later"
            )
        self._num_arrived += 1
        sequence.arrival = self._num_arrived
        self._sequences[sequence.request_id] = sequence
        if sequence.finish_reason is not None:
            return (self._finish(sequence, now, sequence.take_text()),)
        insort(self._waiting, sequence, key=self._rank)
        return ()

    def abort(self, request_id: str, now: float, reason: str = "aborted") -> tuple[Update, ...]:
        """End a request in any state; nothing if it has ended already."""
        sequence = self._sequences.get(request_id)
        if sequence is None:
            return ()
        return (self._fail(sequence, RequestAborted(f"request {request_id}: {reason}")),)

    def expire(self, now: float) -> tuple[Update, ...]:
        """End all whose time is over."""
        late = [
            sequence.request_id
            for sequence in self._sequences.values()
            if sequence.deadline is not None and now >= sequence.deadline
        ]
        return tuple(update for i in late for update in self.abort(i, now, "its time is over"))

    @property
    def request_ids(self) -> tuple[str, ...]:
        return tuple(self._sequences)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        return len(self._running)

    # Planning

    def plan(self, now: float) -> StepPlan | None:
        """The next step; None when there is nothing to do."""
        self._admit()
        steps: list[SequenceStep] = []
        copies = []
        for sequence, num_rows in self._assign():
            if sequence.scheduled is None:
                sequence.scheduled = now
            if sequence.copy is not None:
                copies.append(sequence.copy)
            steps.append(sequence.step(num_rows))
        if not steps:
            return None
        self._num_planned += 1
        return StepPlan(self._num_planned, tuple(steps), tuple(copies))

    def _admit(self) -> None:
        if self._config.batching != "continuous" and self._running:
            return
        while self._waiting and self._make_room(self._waiting[0]):
            sequence = self._waiting.pop(0)
            sequence.status = Status.RUNNING
            sequence.num_skipped = 0
            self._running.append(sequence)
            if sequence.num_cached is None:
                sequence.num_cached = min(sequence.num_computed, sequence.num_prompt)
                self.metrics.prefix_cache_queries += sequence.num_prompt
                self.metrics.prefix_cache_hits += sequence.num_cached

    def _make_room(self, sequence: Sequence) -> bool:
        """Open it, preempting lower classes where that is enough and needed."""
        level = self._class(sequence)
        if self._config.batching == "continuous":
            ahead = sum(
                other.num_pending + other.num_trie_rows
                for other in self._running
                if self._class(other) <= level
            )
            if ahead >= self._config.max_num_batched_tokens:
                return False
        has_place = len(self._running) < self._config.num_places
        if has_place and self.memory.try_open(sequence, num_spare=self._num_spare(sequence)):
            return True
        lower = [other for other in self._running if self._class(other) > level]
        while lower and self.memory.could_open(sequence, lower, self._num_spare(sequence)):
            victim = min(lower, key=self._loss)
            lower.remove(victim)
            self._preempt(victim)
            if self.memory.try_open(sequence, num_spare=self._num_spare(sequence)):
                return True
        return False

    def _num_spare(self, sequence: Sequence) -> int:
        """Blocks to leave free beside a newcomer: what the running ones want soon, or at most."""
        if sequence.num_preemptions >= MAX_CHEAP_PREEMPTIONS:
            growing = [*self._running, sequence]
            most = sum(self._num_at_most(other) - len(other.block_table) for other in growing)
            return most - num_blocks_for(len(sequence.tokens), self.limits.block_size)
        return sum(
            max(1, self.memory.num_missing(other, len(other.tokens)))
            for other in self._running
            if self._num_at_most(other) > len(other.block_table)
        )

    def _num_at_most(self, sequence: Sequence) -> int:
        """Blocks it holds at its longest."""
        return num_blocks_for(self.limits.num_slots(sequence.request), self.limits.block_size)

    def _assign(self) -> Iterator[tuple[Sequence, int]]:
        """Rows of this step, sequence by sequence; blocks are there when one is given."""
        budget = left = self._config.max_num_batched_tokens
        given: set[str] = set()
        for sequence in sorted(self._running, key=self._turn):
            if sequence.status is not Status.RUNNING:
                continue  # preempted by one before it
            num_rows = self._num_rows(sequence, left, alone=left == budget)
            if num_rows == 0 or not self._make_slots(sequence, given):
                sequence.num_skipped += 1
                continue
            sequence.num_skipped = 0
            given.add(sequence.request_id)
            is_last = num_rows == sequence.num_pending
            left = max(0, left - num_rows - (sequence.num_trie_rows if is_last else 0))
            yield sequence, num_rows

    def _num_rows(self, sequence: Sequence, left: int, *, alone: bool) -> int:
        """How many pending rows it may have; all of them only with room for its trie."""
        pending, trie = sequence.num_pending, sequence.num_trie_rows
        if pending + trie <= left:
            return pending
        if not self._config.enable_chunked_prefill:
            return pending if alone else 0
        if trie == 0:
            return min(pending, left)
        if pending == 1:
            return 1 if alone else 0
        return min(pending - 1, left)

    def _make_slots(self, sequence: Sequence, given: set[str]) -> bool:
        """Blocks for its pending rows, preempting those after it that have no rows yet."""
        while not self.memory.try_grow(sequence):
            rank = self._rank(sequence)
            after = [
                other
                for other in self._running
                if self._rank(other) > rank and other.request_id not in given
            ]
            if not after:
                return False
            self._preempt(min(after, key=self._loss))
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self._running.remove(sequence)
        self.memory.close(sequence)
        sequence.status = Status.WAITING
        sequence.num_preemptions += 1
        self.metrics.num_preemptions += 1
        insort(self._waiting, sequence, key=self._rank)

    def _class(self, sequence: Sequence) -> int:
        is_fcfs = self._config.scheduling_policy == "fcfs"
        return 0 if is_fcfs else sequence.request.priority

    def _rank(self, sequence: Sequence) -> tuple[int, int]:
        return self._class(sequence), sequence.arrival

    def _turn(self, sequence: Sequence) -> tuple[int, bool, bool, int]:
        """Sort key of a step: class, the long skipped, decodes, arrival."""
        is_stuck = sequence.num_skipped >= PATIENCE
        return self._class(sequence), not is_stuck, not sequence.is_decoding, sequence.arrival

    def _loss(self, sequence: Sequence) -> tuple[int, bool, int, int]:
        """Sort key of victims: lowest class, not preempted often, least work lost, last come."""
        return (
            -self._class(sequence),
            sequence.num_preemptions >= MAX_CHEAP_PREEMPTIONS,
            self.memory.num_exclusive(sequence),
            -sequence.arrival,
        )

    # Taking in

    def commit(self, plan: StepPlan, output: StepOutput, now: float) -> tuple[Update, ...]:
        """Take in a step. Sequences aborted since its plan are passed over."""
        if len(output.sequences) != len(plan.sequences):
            raise EngineError("the runner gave another number of outputs than the plan has")
        self.metrics.step(plan.num_rows, len(plan.sequences), output.seconds)
        updates: list[Update] = []
        for step, found in zip(plan.sequences, output.sequences, strict=True):
            sequence = self._sequences.get(step.request_id)
            if sequence is not None and sequence.status is Status.RUNNING:
                updates += self._commit_one(sequence, step, found, now)
        return tuple(updates)

    def _commit_one(
        self, sequence: Sequence, step: SequenceStep, found: SequenceOutput, now: float
    ) -> tuple[Update, ...]:
        if found.corrupted:
            self.metrics.corrupted_requests += 1
            self.memory.distrust(sequence)
            error = EngineError(f"request {sequence.request_id}: NaN or infinite logits")
            return (self._fail(sequence, error),)
        previous = sequence.last_token
        try:
            text = sequence.accept(step, found, now)
        except EngineError as error:
            return (self._fail(sequence, error),)
        self.memory.commit(sequence)
        if previous is not None and sequence.last_token == now:
            self.metrics.inter_token_latency_seconds.observe(now - previous)
        if sequence.finish_reason is not None:
            return (self._finish(sequence, now, text),)
        return (Update(sequence.request_id, text),) if text else ()

    def fail(self, plan: StepPlan, error: EngineError) -> tuple[Update, ...]:
        """The step failed as a whole: so do its requests, and nothing it computed is kept."""
        updates: list[Update] = []
        for step in plan.sequences:
            sequence = self._sequences.get(step.request_id)
            if sequence is not None and sequence.status is Status.RUNNING:
                self.memory.close(sequence, keep=False)
                updates.append(self._fail(sequence, error))
        return tuple(updates)

    def _finish(self, sequence: Sequence, now: float, text: str) -> Update:
        try:
            result: Completion | ChoiceScores = sequence.result(now)
        except EngineError as error:
            return self._fail(sequence, error)
        self._remove(sequence)
        self.metrics.finished(result.stats)
        return Update(sequence.request_id, text, result)

    def _fail(self, sequence: Sequence, error: EngineError) -> Update:
        self._remove(sequence)
        self.metrics.failed_requests += 1
        return Update(sequence.request_id, result=error)

    def _remove(self, sequence: Sequence) -> None:
        if sequence.status is Status.RUNNING:
            self._running.remove(sequence)
            self.memory.close(sequence)
        elif sequence in self._waiting:
            self._waiting.remove(sequence)
        sequence.status = Status.FINISHED
        del self._sequences[sequence.request_id]

    # Looking in

    def snapshot(self, now: float) -> EngineSnapshot:
        usage = self.memory.pool.usage()
        return self.metrics.snapshot(
            now,
            waiting=self.num_waiting,
            running=self.num_running,
            num_blocks=self.limits.num_blocks,
            used=usage.used,
            cached=usage.cached,
        )

    def check_integrity(self) -> BlockUsage:
        """Raises EngineError naming what is broken; how many blocks are in each state."""
        if len(self._sequences) != len(self._waiting) + len(self._running):
            raise EngineError("a request is neither waiting nor running")
        for sequence in self._waiting:
            if sequence.block_table or sequence.copy is not None:
                raise EngineError(f"{sequence.request_id} waits and holds blocks")
        return self.memory.check_integrity(self._running)
