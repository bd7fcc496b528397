"""What the engine's benchmarks share: game prompts, a planner stepped by hand, tables, JSON rows.

Games are played by one ply of material with drawn lots (agents.material), from a seed: they
capture, check and end as games do, and need no outside data. Work is counted by the real scheduler;
`Bench` runs its steps without the engine's thread, so that counts and times are of steps alone.
"""

import argparse
import json
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import torch

from agents.material import after
from agents.prompt import DEFAULT_TEMPLATE, render_prompt
from engine.config import EngineConfig
from engine.hub import ensure
from engine.layers.kv_cache import KVCache
from engine.limits import Limits
from engine.runner import ModelRunner
from engine.scheduler import Scheduler
from engine.tokenizer import Tokenizer
from engine.types import (
    ChoiceScores,
    Completion,
    EngineError,
    Request,
    StepPlan,
    Terminator,
    TokenIds,
)
from games.base import GameState
from games.registry import get_game

GAMES = ("chess", "janggi")
Row = Mapping[str, object]
Clock = Callable[[], float]


@dataclass(slots=True)
class Work:
    """What some requests took: rows and passes are counted, seconds are of the steps alone."""

    results: dict[str, Completion | ChoiceScores] = field(default_factory=dict)
    rows: int = 0
    passes: int = 0
    seconds: float = 0.0

    def scores(self, name: str) -> ChoiceScores:
        return cast(ChoiceScores, self.results[name])

    def completion(self, name: str) -> Completion:
        return cast(Completion, self.results[name])


class Bench:
    """One scheduler over a runner that others may have used before: its pool begins empty."""

    def __init__(
        self, runner: ModelRunner, config: EngineConfig, clock: Clock = time.perf_counter
    ) -> None:
        self.runner, self.clock = runner, clock
        self.scheduler = Scheduler(config, Limits.of(runner, config))

    def run(
        self, *requests: Request, watch: Callable[[StepPlan, float], None] | None = None
    ) -> Work:
        """All arrive now and run to their end; raises the first error of any.

        `watch` is told each step's plan and its end by the clock.
        """
        work = Work()
        arrival = self.clock()
        for request in requests:
            self.scheduler.add(self.scheduler.prepare(request, arrival), arrival)
        while (plan := self.scheduler.plan(self.clock())) is not None:
            output = self.runner.step(plan)
            ended = self.clock()
            for update in self.scheduler.commit(plan, output, ended):
                if isinstance(update.result, EngineError):
                    raise update.result
                if update.result is not None:
                    work.results[update.request_id] = update.result
            work.rows += plan.num_rows
            work.passes += 1
            if watch is not None:
                watch(plan, ended)
        work.seconds = self.clock() - arrival
        self.scheduler.check_integrity()
        return work


@dataclass(frozen=True, slots=True)
class Model:
    """A model's directory, its tokenizer, and a runner with the pool of `config`."""

    folder: Path
    tokenizer: Tokenizer
    config: EngineConfig
    runner: ModelRunner

    @classmethod
    def load(cls, name: str, *, threads: int | None = None, **settings: object) -> "Model":
        folder = ensure(name)
        config = EngineConfig.from_dict({"model": name, **settings})
        runner = ModelRunner.load(folder, config)
        if threads:
            torch.set_num_threads(threads)
        return cls(folder, Tokenizer.load(folder), config, runner)

    def bench(self, clock: Clock = time.perf_counter, **settings: object) -> Bench:
        """A fresh planner with other settings over the same pool."""
        config = replace(self.config, **settings)  # type: ignore[arg-type]
        return Bench(self.runner, config, clock)

    def runner_with(self, **settings: object) -> tuple[ModelRunner, EngineConfig]:
        """Another runner over the same weights, with a pool of its own."""
        config = replace(self.config, **settings)  # type: ignore[arg-type]
        with torch.inference_mode():
            cache = KVCache.allocate(self.runner.model.config, config, self.runner.max_model_len)
            return ModelRunner(self.runner.model, cache, config), config


def played(game: str, seed: int, plies: int) -> list[GameState]:
    """The positions of a game with a side to move, the start first; fewer where it ends."""
    rng = random.Random(f"{game} {seed}")
    states = [get_game(game).start()]
    while len(states) < plies and states[-1].outcome() is None:
        scored = [(after(states[-1], move), move) for move in states[-1].legal_moves()]
        best = max(score for score, _ in scored)
        states.append(states[-1].apply(rng.choice([m for score, m in scored if score == best])))
    return [state for state in states if state.outcome() is None]


def _messages(state: GameState) -> list[Mapping[str, str]]:
    prompt = render_prompt(DEFAULT_TEMPLATE, state)
    return [{"role": m.role, "content": m.content} for m in prompt.messages]


def prompt_tokens(tokenizer: Tokenizer, state: GameState) -> TokenIds:
    """The default template in the model's own chat template."""
    return tokenizer.encode_prompt(_messages(state))


def choice_tokens(
    tokenizer: Tokenizer, state: GameState, terminator: Terminator = "none"
) -> tuple[TokenIds, ...]:
    """The legal moves in UCI, sorted, as they follow the prompt."""
    texts = [move.uci for move in state.legal_moves()]
    return tokenizer.encode_choices(tokenizer.render(_messages(state)), texts, terminator)


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """`--model`, `--threads`, `--clock`, `--json FILE`."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--threads", type=int, help="torch threads; default: the cores there are")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu with --threads 1: seconds of this process, for a machine that others use too",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    return parser


def clock_of(name: str) -> Clock:
    return time.process_time if name == "cpu" else time.perf_counter


def machine(model: str, clock: str = "wall") -> str:
    """One line: what ran, on what."""
    load = os.getloadavg()[0]
    return (
        f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores "
        f"(load {load:.1f}), {torch.get_num_threads()} torch threads, Python "
        f"{platform.python_version()}, torch {torch.__version__}; {model}, {clock} clock"
    )


def table(rows: Sequence[Row]) -> str:
    """Columns by the keys of the first row; a Markdown table."""
    names = list(rows[0])
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    lines = [
        "| " + " | ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in cells
    ]
    rule = "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_json(path: Path | None, about: str, tables: Mapping[str, Sequence[Row]]) -> None:
    """`{"machine": …, name of a table: [row, …]}`; nothing without a path."""
    if path is not None:
        path.write_text(json.dumps({"machine": about, **tables}, indent=1), encoding="utf-8")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def quantile(values: Iterable[float], q: float) -> float:
    """The smallest value that at least a share q lies at or below."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -(-int(q * len(ordered) * 1000) // 1000) - 1))]
