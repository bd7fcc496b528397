"""Drives a scheduler and the fake runner step by step, checking everything between the steps."""

from dataclasses import dataclass, field

from engine.blocks import HashFunction, chained_hash
from engine.config import EngineConfig
from engine.limits import Limits
from engine.scheduler import Scheduler
from engine.sequence import Sequence
from engine.types import (
    ChoiceScores,
    Completion,
    Detokenizer,
    EngineError,
    Request,
    StepPlan,
    Update,
)

from .fake_runner import EOS, POISON, FakeRunner


@dataclass
class Drive:
    """`results` by request id; `texts` what was streamed; `now` advances by one a step."""

    runner: FakeRunner = field(default_factory=FakeRunner)
    config: EngineConfig = field(default_factory=lambda: EngineConfig(model="fake"))
    hash_function: HashFunction = chained_hash
    tokenizer: Detokenizer | None = None
    now: float = 0.0
    results: dict[str, Completion | ChoiceScores | EngineError] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(
            self.config,
            Limits.of(self.runner, self.config),
            eos_token_ids=[EOS],
            detokenizer=self.tokenizer,
            hash_function=self.hash_function,
        )
        self.pool = self.scheduler.memory.pool

    def add(self, *requests: Request) -> None:
        for request in requests:
            sequence = self.scheduler.prepare(request, self.now)
            self.take(self.scheduler.add(sequence, self.now))

    def abort(self, request_id: str) -> None:
        self.take(self.scheduler.abort(request_id, self.now))
        self.scheduler.check_integrity()

    def take(self, updates: tuple[Update, ...]) -> None:
        for update in updates:
            if update.text:
                self.texts[update.request_id] = self.texts.get(update.request_id, "") + update.text
            if update.result is not None:
                assert update.request_id not in self.results, "two results for one request"
                self.results[update.request_id] = update.result

    def plan(self) -> StepPlan | None:
        plan = self.scheduler.plan(self.now)
        if plan is not None:
            self.check_plan(plan)
            self.poison()
        return plan

    def step(self) -> bool:
        """One step; False when there was nothing to do."""
        plan = self.plan()
        if plan is None:
            assert self.scheduler.num_running == self.scheduler.num_waiting == 0, "stuck"
            return False
        output = self.runner.step(plan)
        self.now += 1
        self.take(self.scheduler.commit(plan, output, self.now))
        self.scheduler.check_integrity()
        self.check_cached()
        return True

    def run(self, *requests: Request, max_steps: int = 10_000) -> None:
        """Add the requests and step until nothing is left."""
        self.add(*requests)
        for _ in range(max_steps):
            if not self.step():
                return
        raise AssertionError(f"not done after {max_steps} steps")

    def completion(self, request_id: str) -> Completion:
        result = self.results[request_id]
        assert isinstance(result, Completion), result
        return result

    def scores(self, request_id: str) -> ChoiceScores:
        result = self.results[request_id]
        assert isinstance(result, ChoiceScores), result
        return result

    def sequence(self, request_id: str) -> Sequence:
        return self.scheduler._sequences[request_id]

    # Checks

    def check_plan(self, plan: StepPlan) -> None:
        """Within its budgets, nobody twice, and no row or copy goes to a block that others see."""
        config, size = self.config, self.runner.block_size
        assert plan.num_rows <= config.max_num_batched_tokens or len(plan.sequences) == 1
        assert len({step.request_id for step in plan.sequences}) == len(plan.sequences)
        assert self.scheduler.num_running <= config.num_places
        for step in plan.sequences:
            assert step.tokens
            end = step.start + len(step.tokens)
            assert end + max(step.trie.depths if step.trie else (), default=0) < (
                self.scheduler.limits.max_model_len
            )
            for i in range(step.start // size, (end - 1) // size + 1):
                self.check_private(step.block_table[i])
            sequence = self.sequence(step.request_id)
            assert len(step.block_table) * size - len(sequence.tokens) < size, "waste"
        for copy in plan.copies:
            self.check_private(copy.target)
            assert self.pool.num_holders(copy.source) > 0
            assert 0 < copy.num_slots <= len(self.pool.cached_tokens(copy.source))

    def check_private(self, block: int) -> None:
        assert self.pool.num_holders(block) == 1
        assert not self.pool.is_cached(block)

    def poison(self) -> None:
        """Overwrite every slot that neither a cached block nor a running sequence vouches for."""
        size = self.runner.block_size
        valid = set()
        for block in range(self.runner.num_blocks):
            valid |= {block * size + i for i in range(len(self.pool.cached_tokens(block)))}
        for sequence in self.scheduler._running:
            num_tokens = sequence.num_computed
            if sequence.copy is not None:
                num_tokens -= sequence.copy.num_slots
            for i in range(num_tokens):
                valid.add(sequence.block_table[i // size] * size + i % size)
        for slot in range(len(self.runner.slots)):
            if slot not in valid:
                self.runner.slots[slot] = POISON

    def check_cached(self) -> None:
        """What can be found is what was computed."""
        size = self.runner.block_size
        for block in range(self.runner.num_blocks):
            tokens = list(self.pool.cached_tokens(block))
            assert self.runner.slots[block * size : block * size + len(tokens)] == tokens
