"""The engine: one thread that plans, runs and commits steps; callers submit and wait for futures.

Everything but the inbox and the table of jobs is the engine thread's own. A request's future gets
its result or an EngineError; a cancelled future or task aborts the request. If the runner raises,
the requests of that step fail and the engine goes on. If planning itself fails, or the thread is
closed, every open request fails, and `submit` says so from then on. A step is planned and run only
while the engine holds the turn of its pool, which it shares with the other engines of the process.
"""

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, replace
from types import TracebackType
from typing import cast

from engine.blocks import BlockUsage
from engine.config import EngineConfig
from engine.limits import Limits
from engine.metrics import EngineSnapshot
from engine.pool import Pool, Seat, WeightsLost
from engine.scheduler import Scheduler
from engine.sequence import Sequence
from engine.types import (
    ChoiceScores,
    Completion,
    Detokenizer,
    EngineError,
    EngineOverloaded,
    InvalidRequest,
    Request,
    RequestAborted,
    Runner,
    StepPlan,
    Terminator,
    TokenIds,
    Update,
)

Result = Completion | ChoiceScores
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Job:
    """One open request: who waits for it, and who wants its text as it comes."""

    future: "Future[Result]"
    on_text: Callable[[str], None] | None


class Engine:
    """Continuous batching over one runner. Thread-safe; `close` it, or use it in a `with`."""

    def __init__(
        self,
        runner: Runner,
        config: EngineConfig,
        *,
        eos_token_ids: Iterable[int],
        tokenizer: Detokenizer | None = None,
        seat: Seat | None = None,
        clock: Clock = time.perf_counter,
    ) -> None:
        """`seat`: its place among others; None: it is alone."""
        self.runner = runner
        self.config = config
        self.tokenizer = tokenizer
        self._clock = clock
        self._scheduler = Scheduler(
            config, Limits.of(runner, config), eos_token_ids=eos_token_ids, detokenizer=tokenizer
        )
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()  # guards _jobs and _end
        self._end: str | None = None  # why nothing more is taken
        self._is_draining = False
        self._is_released = False
        self._ids = itertools.count()
        self._seat = seat or Pool().alone()
        self._seat.wake = lambda: self._inbox.put(lambda: None)
        self._num_ended = 0  # requests, since the turn began
        self._thread = threading.Thread(target=self._run, name="madang-engine", daemon=True)
        self._thread.start()

    @classmethod
    def load(cls, config: EngineConfig, pool: Pool | None = None, name: str = "") -> "Engine":
        """An engine for a model's name or directory, pulled first where it is known and not here.

        With others in a `pool`, where it is called `name`, it waits until there is room for its
        weights. Raises ValueError or an EngineError with one line that names what is wrong.
        """
        from engine.footprint import weights_bytes  # these bring in torch and the model's files
        from engine.hub import ensure
        from engine.model_config import read_config
        from engine.runner import ModelRunner
        from engine.tokenizer import Tokenizer

        folder = ensure(config.model)
        tokenizer = Tokenizer.load(folder)
        seat = (pool or Pool()).join(name or folder.name, weights_bytes(read_config(folder)))
        try:
            runner = seat.enter(lambda: ModelRunner.load(folder, config))
            eos = tokenizer.eos_token_ids
            return cls(runner, config, eos_token_ids=eos, tokenizer=tokenizer, seat=seat)
        except BaseException:
            seat.leave()
            raise

    # Called from any thread

    def submit(
        self, request: Request, on_text: Callable[[str], None] | None = None
    ) -> "Future[Result]":
        """Queue a request; `on_text` is called on the engine's thread with pieces of text.

        Raises InvalidRequest, RequestTooLarge, EngineOverloaded at once; EngineError when closed.
        """
        sequence = self._scheduler.prepare(request, self._clock())
        future: Future[Result] = Future()
        request_id = request.request_id
        with self._lock:
            if self._end is not None:
                raise EngineError(self._end)
            if request_id in self._jobs:
                raise InvalidRequest(f"request id {request_id!r} is in use")
            limit = self.config.num_places + self.config.max_num_queued_reqs
            if len(self._jobs) >= limit:
                raise EngineOverloaded(
                    f"{len(self._jobs)} requests are running or queued already (max_num_queued_reqs"
                    f" is {self.config.max_num_queued_reqs}); try again later"
                )
            self._jobs[request_id] = _Job(future, on_text)
            self._inbox.put(lambda: self._add(sequence))
        future.add_done_callback(lambda f: self.abort(request_id) if f.cancelled() else None)
        return future

    def abort(self, request_id: str) -> None:
        """End a request in any state; its future fails with RequestAborted. Unknown ids pass."""
        self._inbox.put(lambda: self._tell(self._scheduler.abort(request_id, self._clock())))

    async def generate(self, request: Request) -> Completion:
        """Free decoding or a masked walk. Cancelling the task aborts the request."""
        _refuse_scoring(request)
        return cast(Completion, await asyncio.wrap_future(self.submit(request)))

    async def score(
        self,
        prompt: Request | TokenIds,
        choices: tuple[TokenIds, ...] | None = None,
        *,
        terminator: Terminator | None = None,
    ) -> ChoiceScores:
        """The exact distribution over the choices, in one pass with the uncached prompt.

        Choices are token ids that end as `terminator` says already; nothing is appended here.
        """
        request = (
            prompt
            if isinstance(prompt, Request)
            else Request(f"score-{next(self._ids)}", tuple(prompt))
        )
        request = replace(
            request,
            score=True,
            choices=request.choices if choices is None else tuple(choices),
            terminator=terminator or request.terminator,
        )
        return cast(ChoiceScores, await asyncio.wrap_future(self.submit(request)))

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        """Pieces of text, then the Completion. Leaving the loop early aborts the request."""
        _refuse_scoring(request)
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()

        def put(piece: str | None) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

        future = self.submit(request, on_text=put)
        future.add_done_callback(lambda _: put(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            yield cast(Completion, await asyncio.wrap_future(future))
        finally:
            future.cancel()

    def snapshot(self) -> EngineSnapshot:
        """Counters and histograms now; cheap, and needs no step to end."""
        return self._scheduler.snapshot(self._clock())

    def check_integrity(self) -> BlockUsage:
        """Between two steps: raises EngineError naming what is broken in queue or blocks."""
        answer: Future[BlockUsage] = Future()
        with self._lock:
            is_running = self._end is None
            if is_running:
                self._inbox.put(lambda: _answer(answer, self._scheduler.check_integrity))
        if not is_running:
            self._thread.join()
            return self._scheduler.check_integrity()
        return answer.result()

    @property
    def is_dead(self) -> bool:
        """Nothing more is taken: closed, or broken."""
        return self._end is not None

    def close(self, *, drain: bool = False) -> None:
        """End the thread and the runner; open requests finish (`drain`) or fail. Idempotent."""
        with self._lock:
            self._end = self._end or "the engine is closed"
            self._is_draining = drain
            self._inbox.put(lambda: None)  # wake it
        self._thread.join()
        with self._lock:
            is_first, self._is_released = not self._is_released, True
        if is_first:
            self._seat.leave()
            self.runner.close()

    async def aclose(self, *, drain: bool = False) -> None:
        """`close` without holding up the event loop."""
        await asyncio.to_thread(self.close, drain=drain)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # On the engine's thread

    def _run(self) -> None:
        try:
            while self._is_open():
                self._read_inbox()
                self._tell(self._scheduler.expire(self._clock()))
                if self._scheduler.request_ids:
                    self._take_turn()
                else:
                    self._seat.withdraw()
            self._stop(RequestAborted("the engine is closed"))
        except (WeightsLost, RequestAborted) as error:
            self._stop(error)
        except Exception as error:  # our own bug: say so to everyone who waits
            dead = EngineError(f"the engine is dead: {error!r}")
            dead.__cause__ = error
            self._stop(dead)
        finally:
            self._seat.withdraw()

    def _take_turn(self) -> None:
        """One step, if it is this engine's turn; else wait a little, for it or for the inbox."""
        pause = self._seat.ask()
        if pause:
            with contextlib.suppress(queue.Empty):
                self._inbox.get(timeout=pause)()
            return
        self._num_ended = 0
        try:
            self._seat.settle()
            plan = self._scheduler.plan(self._clock())
            if plan is not None:
                self._step(plan)
        finally:
            self._seat.give(self._num_ended, more=bool(self._scheduler.request_ids))

    def _is_open(self) -> bool:
        """Goes on until closed; when draining, until the last request has ended."""
        with self._lock:
            return self._end is None or (self._is_draining and bool(self._jobs))

    def _read_inbox(self) -> None:
        """Do what was asked for; wait only if nothing runs or waits."""
        is_idle = not self._scheduler.request_ids
        while is_idle or not self._inbox.empty():
            self._inbox.get()()
            is_idle = False

    def _add(self, sequence: Sequence) -> None:
        with self._lock:
            job = self._jobs.get(sequence.request_id)
        if job is None or job.future.cancelled():
            self._drop(sequence.request_id)
            return
        try:
            self._tell(self._scheduler.add(sequence, self._clock()))
        except EngineError as error:
            self._tell((Update(sequence.request_id, result=error),))

    def _step(self, plan: StepPlan) -> None:
        try:
            output = self.runner.step(plan)
        except Exception as cause:  # whatever it is, only this step's requests fail
            error = EngineError(f"the model failed in step {plan.step}: {cause!r}")
            error.__cause__ = cause
            self._tell(self._scheduler.fail(plan, error))
            return
        self._tell(self._scheduler.commit(plan, output, self._clock()))

    def _tell(self, updates: Iterable[Update]) -> None:
        for update in updates:
            with self._lock:
                job = self._jobs.get(update.request_id)
            if job is None:
                continue
            if update.text and job.on_text is not None:
                self._send(update, job.on_text, job.future)
            if update.result is not None:
                self._num_ended += 1
                self._drop(update.request_id)
                _resolve(job.future, update.result)

    def _send(
        self, update: Update, on_text: Callable[[str], None], future: "Future[Result]"
    ) -> None:
        try:
            on_text(update.text)
        except Exception as cause:  # the caller's code: it must not stop the others
            error = EngineError(f"on_text of request {update.request_id} failed: {cause!r}")
            error.__cause__ = cause
            _resolve(future, error)
            self.abort(update.request_id)

    def _drop(self, request_id: str) -> None:
        with self._lock:
            self._jobs.pop(request_id, None)

    def _stop(self, error: EngineError) -> None:
        """Fail all that is open; nothing is taken from here on."""
        with self._lock:
            self._end = self._end or str(error)
            jobs, self._jobs = self._jobs, {}
        for job in jobs.values():
            _resolve(job.future, error)
        for request_id in self._scheduler.request_ids:
            with contextlib.suppress(Exception):  # a broken plan may not let go cleanly
                self._scheduler.abort(request_id, self._clock())
        while not self._inbox.empty():  # adds find no job; who asked gets an answer
            with contextlib.suppress(Exception):
                self._inbox.get()()


def _refuse_scoring(request: Request) -> None:
    if request.score:
        raise InvalidRequest("a request with score=True goes to Engine.score")


def _resolve(future: "Future[Result]", result: Result | EngineError) -> None:
    """Set it unless its owner has cancelled it meanwhile."""
    with contextlib.suppress(InvalidStateError):
        if isinstance(result, EngineError):
            future.set_exception(result)
        else:
            future.set_result(result)


def _answer(future: "Future[BlockUsage]", question: Callable[[], BlockUsage]) -> None:
    try:
        future.set_result(question())
    except Exception as error:
        future.set_exception(error)
