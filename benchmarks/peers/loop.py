"""What every peer's process shares: the closed loop of games, and a line protocol with the bench.

Standard library only, since it runs in the rivals' own environments, where nothing of ours is
installed. A job comes as one JSON line on standard input and its result goes out as one line;
whatever libraries print goes to standard error.

A game asks for one move after the other; the prompt of the next ply is given, so that all peers
see the same tokens whatever they answer. Games run side by side.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any


@dataclass(frozen=True)
class Ask:
    """One move to find: `slot` is the game's number, `ids` the prompt, `legal` the answers."""

    slot: int
    ids: list[int]
    legal: list[str]
    choices: list[list[int]]  # the answers as token ids, as they follow the prompt
    messages: list[dict[str, str]]  # the prompt before tokens, for those who are asked in text


@dataclass(frozen=True)
class Answer:
    """`ttft_s` None where a peer has no first token of its own; `computed` rows or tokens."""

    text: str
    computed: int
    ttft_s: float | None = None


@dataclass
class Run:
    latencies: list[float] = field(default_factory=list)
    ttfts: list[float] = field(default_factory=list)
    computed: int = 0
    illegal: int = 0

    def add(self, ask: Ask, answer: Answer, seconds: float) -> None:
        self.latencies.append(seconds)
        if answer.ttft_s is not None:
            self.ttfts.append(answer.ttft_s)
        self.computed += answer.computed
        self.illegal += answer.text.strip() not in ask.legal

    def result(self, seconds: float) -> dict[str, Any]:
        return {
            "moves": len(self.latencies),
            "seconds": seconds,
            "latencies": self.latencies,
            "ttfts": self.ttfts,
            "computed": self.computed,
            "illegal": self.illegal,
        }


def games_of(job: dict[str, Any]) -> list[list[Ask]]:
    """Games of a job, each a list of asks in the order of plies."""
    return [
        [Ask(slot, m["ids"], m["legal"], m["choices"], m["messages"]) for m in game]
        for slot, game in enumerate(job["games"])
    ]


async def side_by_side(
    games: list[list[Ask]], ask_one: Callable[[Ask], Awaitable[Answer]]
) -> dict[str, Any]:
    """All games at once, each move timed from asking to answer."""
    run = Run()

    async def play(game: list[Ask]) -> None:
        for ask in game:
            began = time.perf_counter()
            answer = await ask_one(ask)
            run.add(ask, answer, time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(play(game) for game in games))
    return run.result(time.perf_counter() - began)


class Line:
    """Jobs in, results out. Make it before anything that prints is imported."""

    def __init__(self) -> None:
        self._out: IO[str] = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def jobs(self) -> Iterator[dict[str, Any]]:
        for text in sys.stdin:
            yield json.loads(text)

    def send(self, value: dict[str, Any]) -> None:
        print(json.dumps(value), file=self._out, flush=True)
