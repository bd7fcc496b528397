"""A model behind HTTP: a Backend over OpenAI's chat API or Ollama's own.

Every answer is streamed, so that the time to its first token is seen. At most `max_concurrency`
requests are in flight; the wait for a place is the request's queue time. Connection failures, 408,
409, 425, 429 and 5xx are tried again with jittered back-off, at least as late as `Retry-After`
says; what still fails is `endpoint_error`, no result for anybody. The key is read from the
environment, sent, and kept nowhere else.

A server that cuts prompts silently reports fewer prompt tokens than the text must have
(`prompt_gauge`, by a probe when the model is made ready): `prompt_truncated`, and so is whatever is
asked afterwards, since the server's context must be made larger first.
"""

import asyncio
import contextlib
import os
import random
import time
from dataclasses import replace

import httpx

from .backend import Answer, Ask, BackendError, Sampling, Scores
from .base import AgentError, Telemetry, Timing, Usage
from .endpoint_metrics import read_metrics
from .endpoint_stream import LONGEST_WAIT_S, Fault, Got, read_answer
from .endpoint_wire import WireError, chosen, request_body, request_url
from .prompt import Message
from .prompt_gauge import PromptGauge
from .spec import EndpointSpec

CONNECTION = (
    "model", "base_url", "api", "api_key_env", "constraint", "num_ctx", "extra_body",
    "max_tokens_key", "max_concurrency", "retries", "metrics_url",
)  # fmt: skip
"""Fields that agents which share a model have in common."""

BACKOFF_S = 0.5
METRICS_EVERY_S = 5.0
CONNECT_S = 10.0
PROBE = (
    "A game of chess is played on a board of sixty-four squares by two sides that move in turn. "
    "Each piece moves in its own way, and the game ends when a king cannot escape from attack. "
)


class RemoteModel:
    """One model of one server, shared by the agents that ask it alike."""

    def __init__(self, spec: EndpointSpec) -> None:
        self._spec = spec
        self._slots = asyncio.Semaphore(spec.max_concurrency)
        self._client: httpx.AsyncClient | None = None
        self._key = ""
        self._making_ready = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._failure: AgentError | None = None
        self._telemetry = Telemetry(spec.model, loading=True)
        self._waiting = self._running = 0
        self._gauge: PromptGauge | None = None  # None: the server counts no prompt tokens
        self._cut = ""  # how a prompt was found to be cut

    @property
    def failure(self) -> AgentError | None:
        return self._failure

    async def ready(self) -> None:
        """Ask the probe once. Raises AgentError where there is no key or no answer."""
        async with self._making_ready:
            if self._failure is not None:
                raise self._failure
            if self._client is None:
                try:
                    await self._open()
                except AgentError as error:
                    self._failure = error
                    raise

    async def _open(self) -> None:
        spec = self._spec
        if spec.api_key_env:
            self._key = os.environ.get(spec.api_key_env, "")
            if not self._key:
                raise AgentError(
                    f"{spec.model}: the environment variable {spec.api_key_env} is not set: "
                    "export it with the key of the endpoint"
                )
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        self._client = httpx.AsyncClient(headers=headers, limits=limits, timeout=timeout)
        try:
            floor = await self.calibrate(1)
        except BackendError as error:
            await self._client.aclose()
            self._client = None
            raise AgentError(f"{spec.model}: {error}") from None
        self._gauge = PromptGauge(floor) if floor else None
        self._telemetry = Telemetry(spec.model, loading=False)
        if spec.metrics_url:
            self._polling = asyncio.create_task(self._poll(spec.metrics_url))

    async def calibrate(self, times: int) -> float | None:
        """Prompt tokens a byte of prose, from a prompt of `times` and one of twice as many probe
        texts; None where the server reports no usage. Raises BackendError."""
        counts = [await self.prompt_tokens(times), await self.prompt_tokens(2 * times)]
        if not all(counts):
            return None
        return (counts[1] - counts[0]) / (times * len(PROBE.encode()))

    async def prompt_tokens(self, times: int) -> int:
        """Prompt tokens that the server reports of so many probe texts; 0 where it reports none.

        A prompt it cuts is counted as it was cut and stops nothing. Raises BackendError.
        """
        message = Message("user", PROBE * times)
        ask = Ask("probe", (message,), Sampling(max_tokens=1), timeout_s=self._spec.timeout_s)
        got, _, _ = await self._exchange(ask, None, whole=False)
        return got.usage.prompt

    def telemetry(self) -> Telemetry:
        if self._spec.metrics_url and not self._telemetry.loading:
            return self._telemetry
        waiting, running = self._waiting, self._running
        return replace(self._telemetry, num_requests_waiting=waiting, num_requests_running=running)

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling
        if self._client is not None:
            await self._client.aclose()

    async def generate(self, ask: Ask) -> Answer:
        return self._answer(ask, *await self._served(ask, None), choices=None)

    async def walk(self, ask: Ask, choices: tuple[str, ...]) -> Answer:
        return self._answer(ask, *await self._served(ask, choices), choices=choices)

    async def score(self, ask: Ask, choices: tuple[str, ...]) -> Scores:
        raise BackendError(
            "endpoint_error",
            "endpoints do not give the probability of every legal move: use constrained or free",
        )

    async def _served(self, ask: Ask, choices: tuple[str, ...] | None) -> tuple[Got, float, float]:
        await self.ready()
        got, asked, began = await self._exchange(ask, choices)
        self._count(got.usage)
        return got, asked, began

    def _answer(
        self, ask: Ask, got: Got, asked: float, began: float, *, choices: tuple[str, ...] | None
    ) -> Answer:
        choice = None if choices is None else chosen(self._spec.constraint, got.content, choices)
        text = got.content
        if got.thinking:  # beside the answer on the wire; in it for the record, never read
            end = "\n</think>\n" if got.content or got.ended != "length" else ""
            text = f"<think>\n{got.thinking}{end}{got.content}"
        return Answer(
            text=text,
            cut=got.ended == "length",
            timing=Timing(
                total=got.end - asked,
                queue=began - asked,
                decode=got.end - got.first,
                ttft=got.first - asked,
            ),
            usage=got.usage,
            prompt="\n\n".join(f"[{m.role}]\n{m.content}" for m in ask.messages),
            choice=choice,
        )

    def _check_prompt(self, ask: Ask, tokens: int) -> None:
        """Raises BackendError where the server has cut the prompt."""
        if self._gauge is None:
            return
        expected = self._gauge.expected(ask.messages, ask.course, tokens)
        if expected is not None:
            self._cut = (
                f"{self._spec.model}: the server read {tokens} prompt tokens of at least "
                f"{expected:.0f}: give it a larger context"
                + (" (num_ctx)" if self._spec.api == "ollama" else "")
            )
            raise BackendError("prompt_truncated", self._cut)

    def _count(self, usage: Usage) -> None:
        """Without a metrics page the counters are what this client saw."""
        if self._spec.metrics_url:
            return
        seen = self._telemetry
        self._telemetry = replace(
            seen,
            prompt_tokens=seen.prompt_tokens + usage.prompt,
            completion_tokens=seen.completion_tokens + usage.completion,
            prefix_cache_queries=seen.prefix_cache_queries + usage.prompt,
            prefix_cache_hits=seen.prefix_cache_hits + usage.cached,
        )

    async def _exchange(
        self, ask: Ask, choices: tuple[str, ...] | None, *, whole: bool = True
    ) -> tuple[Got, float, float]:
        """One request with its retries: (what came, when it was asked for, when it got a place).
        Raises BackendError; with `whole`, also for a prompt that was cut."""
        asked = time.monotonic()
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        began = time.monotonic()
        self._running += 1
        try:
            if self._cut:
                raise BackendError("prompt_truncated", self._cut)
            got = await self._try(ask, choices)
            if whole:
                self._check_prompt(ask, got.usage.prompt)
            return got, asked, began
        finally:
            self._running -= 1
            self._slots.release()

    async def _try(self, ask: Ask, choices: tuple[str, ...] | None) -> Got:
        tries = 0
        while True:
            tries += 1
            try:
                async with asyncio.timeout(ask.timeout_s):
                    return await self._once(ask, choices)
            except TimeoutError:
                fault = Fault(f"no whole answer in {ask.timeout_s:g} s", again=True)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                fault = Fault(f"{type(error).__name__}: {error}"[:300], again=True)
            except WireError as error:
                fault = Fault(str(error), again=False)
            except Fault as error:
                fault = error
            if not fault.again or tries > self._spec.retries:
                where, count = request_url(self._spec), f" ({tries} tries)" if tries > 1 else ""
                raise BackendError("endpoint_error", f"{where}: {self._clean(str(fault))}{count}")
            longest = min(LONGEST_WAIT_S, BACKOFF_S * 2**tries)
            await asyncio.sleep(fault.after + random.uniform(longest / 2, longest))

    async def _once(self, ask: Ask, choices: tuple[str, ...] | None) -> Got:
        assert self._client is not None
        url, body = request_url(self._spec), request_body(self._spec, ask, choices)
        async with self._client.stream("POST", url, json=body) as response:
            return await read_answer(response, self._spec.api)

    def _clean(self, text: str) -> str:
        """One line without the key, which some servers quote."""
        line = " ".join(text.split())
        return line.replace(self._key, "***") if self._key else line

    async def _poll(self, url: str) -> None:
        assert self._client is not None
        while True:
            with contextlib.suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(METRICS_EVERY_S):
                    page = await self._client.get(url)
                if page.status_code == 200:
                    self._telemetry = read_metrics(self._spec.model, page.text)
            await asyncio.sleep(METRICS_EVERY_S)
