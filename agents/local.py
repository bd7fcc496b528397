"""A model on the in-process engine: the only module of `agents` that knows the engine.

One `LocalModel` serves every agent on the same model and options; all of a run share one
`SharedMemory`, where they take turns. It loads on a thread of its own, so that other games play
meanwhile; whoever needs it waits in `ready`. What the engine refuses or
fails at becomes a BackendError, hence no result and never a move or a loss.
"""

import asyncio
import contextlib
import itertools
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, cast

from engine import hub
from engine.chat import RenderedPrompt
from engine.config import EngineConfig
from engine.engine import Engine
from engine.footprint import weights_bytes
from engine.metrics import EngineSnapshot
from engine.model_config import ModelError, read_config
from engine.pool import Pool
from engine.tokenizer import Tokenizer
from engine.types import (
    Completion,
    EngineError,
    EngineOverloaded,
    Request,
    RequestStats,
    SamplingParams,
    Terminator,
    TokenIds,
)

from .backend import THINK_OPEN, Answer, Ask, BackendError, Sampling, Scores
from .base import AgentError, ModelSwap, NoResultReason, Telemetry, Timing, Usage
from .naming import short_name
from .prompt import Message, Prompt, PromptReport, report
from .spec import EngineOptions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    engine: Engine
    tokenizer: Tokenizer


class SharedMemory:
    """Where the models of one run take turns. `weights_bytes` None: all fit."""

    def __init__(self, weights_bytes: int | None = None) -> None:
        self.pool = Pool(weights_bytes)

    def swaps(self) -> tuple[ModelSwap, ...]:
        """All so far, in order."""
        return tuple(
            ModelSwap(swap.out, swap.into, swap.seconds, swap.served) for swap in self.pool.swaps
        )

    def close(self) -> None:
        """Whoever waits to be loaded waits no longer."""
        self.pool.close()


class LocalModel:
    """One model and its engine; a Backend. Nothing is loaded before `ready` is awaited."""

    def __init__(
        self,
        model: str,
        options: EngineOptions,
        *,
        seed: int = 0,
        memory: SharedMemory | None = None,
        kv_bytes: int | None = None,
    ) -> None:
        """`kv_bytes`: its share of the KV memory; None: as the options say."""
        self._model, self._options, self._seed = model, options, seed
        self._memory, self._kv_bytes = memory or SharedMemory(), kv_bytes
        self._loading: Future[_Loaded] | None = None
        self._closed = False
        self._ids = itertools.count()

    @property
    def name(self) -> str:
        return self._model

    @property
    def failure(self) -> AgentError | None:
        """Why it cannot be used; None: it can, or it is not known yet."""
        loading = self._loading
        if loading is None or not loading.done() or loading.cancelled():
            return None
        error = loading.exception()
        return error if isinstance(error, AgentError) else None

    async def ready(self) -> None:
        """Load it, or wait for the load that runs. Raises AgentError."""
        await self._use()

    def telemetry(self) -> Telemetry:
        loading = self._loading
        if loading is None or not loading.done() or loading.exception() is not None:
            return Telemetry(self._model, loading=self.failure is None)
        return telemetry_of(self._model, loading.result().engine.snapshot())

    async def close(self) -> None:
        """End the engine; open requests fail. A load that still runs ends by itself."""
        self._closed = True
        loading = self._loading
        if loading is not None and loading.done() and loading.exception() is None:
            await loading.result().engine.aclose()

    async def generate(self, ask: Ask) -> Answer:
        loaded = await self._use()
        with _translated():
            prompt, text = _encode(loaded.tokenizer, ask)
            done = await loaded.engine.generate(self._request(ask, prompt))
        return _answer(done, text)

    async def walk(self, ask: Ask, choices: tuple[str, ...]) -> Answer:
        loaded = await self._use()
        with _translated():
            prompt, text = _encode(loaded.tokenizer, ask)
            tokens = _encode_choices(loaded.tokenizer, ask, choices)
            done = await loaded.engine.generate(self._request(ask, prompt, tokens))
        return _answer(done, text)

    async def score(self, ask: Ask, choices: tuple[str, ...]) -> Scores:
        loaded = await self._use()
        with _translated():
            prompt, text = _encode(loaded.tokenizer, ask)
            tokens = _encode_choices(loaded.tokenizer, ask, choices)
            scores = await loaded.engine.score(self._request(ask, prompt, tokens))
        return Scores(
            logprobs=scores.logprobs,
            legal_mass=scores.legal_mass,
            choice=scores.argmax if scores.choice is None else scores.choice,
            greedy=scores.greedy,
            timing=_timing(scores.stats),
            usage=_usage(scores.stats),
            prompt=text,
        )

    def _request(
        self, ask: Ask, prompt: TokenIds, choices: tuple[TokenIds, ...] | None = None
    ) -> Request:
        return Request(
            request_id=f"{ask.id}#{next(self._ids)}",  # a cancelled one may still be winding up
            prompt=prompt,
            sampling=_sampling(ask.sampling),
            choices=choices,
            terminator=cast(Terminator, ask.terminator),
            priority=ask.priority,
            timeout_s=ask.timeout_s,
        )

    async def _use(self) -> _Loaded:
        if self._loading is None:
            self._loading = Future()
            thread = threading.Thread(
                target=self._load, args=(self._loading,), name=f"load {self._model}", daemon=True
            )
            thread.start()
        return await asyncio.wrap_future(_copy(self._loading))

    def _load(self, result: "Future[_Loaded]") -> None:
        """On the loading thread."""
        try:
            loaded = load(self._model, self._options, self._seed, self._memory, self._kv_bytes)
        except AgentError as error:
            result.set_exception(error)
        except Exception as error:
            log.exception("loading %s failed", self._model)
            result.set_exception(AgentError(f"{self._model} cannot be loaded: {error!r}"))
        else:
            if self._closed:
                loaded.engine.close()
            result.set_result(loaded)


def footprint(model: str) -> int:
    """Bytes of a model's weights in memory, without loading it. Raises AgentError."""
    with _refused(model):
        return weights_bytes(read_config(hub.path(model)))


def stored_precision(model: str) -> str:
    """Precision of a model's file as names write it, "" where nothing tells. Fetches nothing."""
    return hub.precision(model)


def rehearse(model: str, options: EngineOptions, num_games: int) -> tuple[float, float]:
    """Load the model and time it: seconds of a swap, seconds a move in a batch of so many games.

    Blocks for a while. Raises AgentError.
    """
    with _refused(model):
        from engine import rehearsal  # brings in torch

        folder = hub.path(model)
        settings = options.model_dump(exclude_none=True, exclude={"kv_fraction"})
        config = EngineConfig.from_dict({**settings, "model": str(folder)})
        found = rehearsal.rehearse(folder, config, num_games)
    return found.swap_s, found.move_s


def load(
    model: str,
    options: EngineOptions,
    seed: int = 0,
    memory: SharedMemory | None = None,
    kv_bytes: int | None = None,
) -> _Loaded:
    """Find the model, start its engine when there is room for it. Blocks; raises AgentError with
    one line and the fix."""
    settings = options.model_dump(exclude_none=True, exclude={"kv_fraction"})
    if kv_bytes is not None:
        settings["kv_cache_memory_bytes"] = kv_bytes
    with _refused(model):
        folder = hub.ensure(model, _log_progress)
        config = EngineConfig.from_dict({**settings, "model": str(folder), "seed": seed})
        pool = memory.pool if memory else None
        engine = Engine.load(config, pool, short_name(model))
    return _Loaded(engine, cast(Tokenizer, engine.tokenizer))


@contextlib.contextmanager
def _refused(model: str) -> Iterator[None]:
    """What keeps a model from being used, as an AgentError."""
    try:
        yield
    except (hub.HubError, ModelError, EngineError, ValueError) as error:
        raise AgentError(f"{model}: {error}") from error
    except ImportError as error:
        raise AgentError(missing_extra(model, error)) from error
    except MemoryError as error:
        raise AgentError(f"{model} does not fit in memory: {error}") from error


def missing_extra(who: str, error: ImportError) -> str:
    """The one line for a package that the engine needs and that is not installed."""
    what = (error.name or str(error)).partition(".")[0]
    if what in ("agents", "engine", "games", "kernels"):
        raise error  # our own bug, not something to install
    return f"{who}: {what} is missing, which the engine needs: pip install 'madang[local]'"


def load_tokenizer(model: str) -> Tokenizer:
    """The tokenizer alone. Raises AgentError."""
    try:
        return Tokenizer.load(hub.ensure(model, _log_progress))
    except (hub.HubError, ModelError) as error:
        raise AgentError(f"{model}: {error}") from error
    except ImportError as error:
        raise AgentError(missing_extra(model, error)) from error


def prompt_report(tokenizer: Tokenizer, previous: Prompt | None, current: Prompt) -> PromptReport:
    """Tokens of a prompt and how many of them an earlier one has computed already."""
    before = _prompt_ids(tokenizer, previous) if previous is not None else ()
    return report(before, _prompt_ids(tokenizer, current))


def rendered(tokenizer: Tokenizer, prompt: Prompt) -> str:
    """Exactly what is sent, by the model's own chat template."""
    return tokenizer.render(_dicts(prompt.messages)).text


def _prompt_ids(tokenizer: Tokenizer, prompt: Prompt) -> TokenIds:
    return tokenizer.encode_prompt(_dicts(prompt.messages))


def _encode(tokenizer: Tokenizer, ask: Ask) -> tuple[TokenIds, str]:
    """Token ids of what is asked, and its text. The opening is text, never control tokens."""
    prompt = _render(tokenizer, ask)
    ids = tokenizer.encode_prompt(prompt)
    opening = ask.opening
    if _opens_thinking(prompt.text):
        opening = opening.removeprefix(THINK_OPEN)
    if opening:
        ids += tokenizer.encode(opening, allow_special=False)
    return ids, prompt.text + opening


def _encode_choices(
    tokenizer: Tokenizer, ask: Ask, choices: tuple[str, ...]
) -> tuple[TokenIds, ...]:
    """Tokens of each choice as it follows the prompt, or the line feed that ends the opening."""
    before = ask.opening[-1:] or _render(tokenizer, ask)
    return tokenizer.encode_choices(before, choices, cast(Terminator, ask.terminator))


def _render(tokenizer: Tokenizer, ask: Ask) -> RenderedPrompt:
    switches: dict[str, Any] = {} if ask.thinking is None else {"enable_thinking": ask.thinking}
    return tokenizer.render(_dicts(ask.messages), **switches)


def _opens_thinking(prompt: str) -> bool:
    return prompt.rstrip().endswith(THINK_OPEN.rstrip())


def _dicts(messages: Iterable[Message]) -> list[Mapping[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _sampling(sampling: Sampling) -> SamplingParams:
    return SamplingParams(
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        max_tokens=sampling.max_tokens,
        stop=sampling.stop,
        seed=sampling.seed,
    )


def _answer(done: Completion, prompt: str) -> Answer:
    return Answer(
        text=done.text,
        cut=done.finish_reason == "length",
        timing=_timing(done.stats),
        usage=_usage(done.stats),
        prompt=prompt,
        choice=done.choice,
        in_thinking=_opens_thinking(prompt),
    )


def _timing(stats: RequestStats) -> Timing:
    times = stats.times
    return Timing(times.e2e, times.queue, times.prefill, times.decode, times.ttft)


def _usage(stats: RequestStats) -> Usage:
    return Usage(stats.prompt_tokens, stats.cached_tokens, stats.completion_tokens)


def telemetry_of(model: str, now: EngineSnapshot) -> Telemetry:
    """A snapshot as it is shown and kept."""
    return Telemetry(
        model=model,
        loading=False,
        num_requests_waiting=now.num_requests_waiting,
        num_requests_running=now.num_requests_running,
        kv_cache_usage_perc=now.kv_cache_usage_perc,
        steps=now.num_steps,
        rows=int(now.iteration_tokens_total.total),
        sequences=int(now.iteration_sequences.total),
        prompt_tokens=now.prefix_cache_queries,
        completion_tokens=now.generation_tokens,
        prefix_cache_queries=now.prefix_cache_queries,
        prefix_cache_hits=now.prefix_cache_hits,
        num_preemptions=now.num_preemptions,
        busy_seconds=now.step_seconds,
    )


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """The engine's errors as BackendErrors."""
    try:
        yield
    except EngineError as error:
        reason: NoResultReason = (
            "overloaded" if isinstance(error, EngineOverloaded) else "engine_error"
        )
        raise BackendError(reason, str(error) or type(error).__name__) from error


def _copy(future: "Future[_Loaded]") -> "Future[_Loaded]":
    """A future with the same end, that can be cancelled without cancelling the load."""
    copy: Future[_Loaded] = Future()

    def pass_on(done: "Future[_Loaded]") -> None:
        if copy.set_running_or_notify_cancel():
            error = done.exception()
            if error is not None:
                copy.set_exception(error)
            else:
                copy.set_result(done.result())

    future.add_done_callback(pass_on)
    return copy


def _log_progress(progress: hub.Progress) -> None:
    if progress.done == 0:
        log.info("%s: %s", progress.name, progress.stage)
