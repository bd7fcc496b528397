"""Asks a server what no documentation tells: whether it reads prompts whole, and obeys constraints.

`probe_context` sends prompts of growing length and compares the prompt tokens that the server
reports with what the first two make one expect. `probe_constraint` asks for one of a few odd words
that no model says of itself. Nothing here plays a game.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import httpx

from .backend import Ask, BackendError, Sampling
from .base import Check
from .endpoint_metrics import told
from .prompt import Message
from .prompt_gauge import CLEARLY
from .remote import RemoteModel
from .spec import Constraint, EndpointSpec

ODD = ("zq7-vixen", "wk3-ochre", "xj9-tapir")
QUESTION = "What is the capital of France? Answer in one sentence."
MOST_DOUBLINGS = 16
METRICS_S = 10.0


@dataclass(frozen=True, slots=True)
class Served:
    """A prompt of so many probe texts and the tokens that the server says it read of it."""

    times: int
    tokens: int  # 0: it reports none
    refusal: str = ""  # why it took no such prompt


async def probe_context(model: RemoteModel, tokens: int) -> Check:
    """Whether prompts of up to about so many tokens are read whole. Raises nothing."""
    return judge_context(await _growing(model, tokens), tokens)


async def _growing(model: RemoteModel, tokens: int) -> list[Served]:
    """Prompts of doubling length, until one is long enough, refused or not counted."""
    served: list[Served] = []
    for doubling in range(MOST_DOUBLINGS):
        times = 2**doubling
        try:
            served.append(Served(times, await model.prompt_tokens(times)))
        except BackendError as error:
            served.append(Served(times, 0, str(error)))
        grown = _expected(served, times)
        if served[-1].tokens == 0 or (grown is not None and grown >= tokens):
            break
    return served


def _expected(served: Sequence[Served], times: int) -> float | None:
    """Tokens of a prompt of so many texts, drawn from the two shortest; None: too few are known."""
    if len(served) < 2 or not served[1].tokens:
        return None
    first, second = served[:2]
    each = (second.tokens - first.tokens) / (second.times - first.times)
    return first.tokens + each * (times - first.times)


def judge_context(served: Sequence[Served], wanted: int) -> Check:
    """What the counts say."""
    name = "context"
    if served[0].refusal:
        return Check(name, "fail", f"no answer to a short prompt: {served[0].refusal}")
    if not served[0].tokens:
        text = "the server reports no prompt tokens: a prompt that it cuts could not be seen"
        return Check(name, "warn", text)
    for sample in served[2:]:
        expected = _expected(served, sample.times)
        if expected is not None and sample.tokens and sample.tokens < CLEARLY * expected:
            text = (
                f"a prompt of about {expected:.0f} tokens is cut to {sample.tokens}: give the "
                "server a larger context"
            )
            return Check(name, "fail", text)
    whole = [sample.tokens for sample in served if sample.tokens]
    if served[-1].refusal:
        text = (
            f"prompts of up to {whole[-1]} tokens are read whole; of {wanted} wanted the server "
            f"refuses what is longer, and such games end without a result: {served[-1].refusal}"
        )
        return Check(name, "warn", text)
    counts = ", ".join(map(str, whole))
    return Check(name, "ok", f"prompts are read whole: {counts} tokens")


async def probe_constraint(model: RemoteModel, constraint: str) -> Check:
    """Whether the server holds an answer to a choice. Raises nothing."""
    name = "constraint"
    ask = Ask("constraint", (Message("user", QUESTION),), Sampling(max_tokens=64))
    try:
        answer = await model.walk(ask, ODD)
    except BackendError as error:
        return Check(name, "fail", f"{constraint} fails: {error}")
    if answer.choice is not None:
        return Check(name, "ok", f"{constraint} is obeyed (asked for odd words, it said one)")
    said = " ".join(answer.text.split())[:80]
    text = f"{constraint} is ignored: asked for {' or '.join(ODD)} it said {said!r}"
    return Check(name, "fail", text)


async def find_constraints(spec: EndpointSpec) -> Check:
    """Which constraints a server obeys whose player uses none."""
    obeyed = [kind for kind in _possible(spec) if await _obeys(spec, kind)]
    found = f"the server obeys {', '.join(obeyed)}" if obeyed else "the server obeys none"
    return Check("constraint", "ok", f"not asked for (mode {spec.mode}); {found}")


def _possible(spec: EndpointSpec) -> list[Constraint]:
    kinds: list[Constraint] = [kind for kind in get_args(Constraint) if kind != "none"]
    return [kind for kind in kinds if (kind == "ollama_format") == (spec.api == "ollama")]


async def _obeys(spec: EndpointSpec, kind: Constraint) -> bool:
    update = {"mode": "constrained", "constraint": kind, "retries": 0, "metrics_url": None}
    model = RemoteModel(spec.model_copy(update=update))
    try:
        return (await probe_constraint(model, kind)).state == "ok"
    finally:
        await model.close()


async def probe_metrics(spec: EndpointSpec) -> Check:
    """Whether the metrics page tells what is stored of it. Raises nothing."""
    name, url = "metrics", spec.metrics_url or ""
    try:
        async with httpx.AsyncClient(timeout=METRICS_S) as client:
            page = await client.get(url)
    except httpx.HTTPError as error:
        return Check(name, "warn", f"{url}: {type(error).__name__}: {error}"[:200])
    if page.status_code != 200:
        return Check(name, "warn", f"{url}: HTTP {page.status_code}: the server may need a switch")
    known = told(page.text)
    if not known:
        return Check(name, "warn", f"{url} names none of the metrics that are known")
    return Check(name, "ok", f"{url} tells {', '.join(known)}")
