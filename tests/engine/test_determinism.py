"""The same bits alone, among neighbours, cold, warm, chunked, copied, in a poisoned pool."""

import random
from pathlib import Path

import pytest
import torch

from engine.runner import ModelRunner
from engine.trie import ChoiceTrie
from engine.types import BlockCopy, SampleSpec, SamplingParams, SequenceStep, StepPlan
from kernels.linear import linear
from tests.engine.runner_kit import (
    last_logits,
    logits_of,
    make_runner,
    part,
    table_of,
    tokens_of,
    write_checkpoint,
)

LENGTH, SIZE = 203, 16  # tokens; blocks a sequence
CHOICES = ((5, 6, 7), (5, 6), (5, 8), (9,), (10, 11, 12, 13), (10, 11, 2))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> ModelRunner:
    return make_runner(write_checkpoint(tmp_path_factory.mktemp("model")))


def neighbours(count: int, seed: int) -> list[SequenceStep]:
    """Random prompts, decode rows over a computed context, and tries."""
    rng = random.Random(seed)
    steps = []
    for i in range(count):
        tokens = tokens_of(seed * 100 + i, rng.randint(2, 120))
        kind = rng.choice(("prompt", "trie"))
        trie = ChoiceTrie.build(CHOICES) if kind == "trie" else None
        steps.append(part(tokens, 0, len(tokens), i + 1, trie=trie, size=SIZE))
    return steps


def decodes(runner: ModelRunner, count: int, seed: int) -> list[SequenceStep]:
    """Decode rows whose contexts were computed in a step of their own."""
    steps = []
    for i, step in enumerate(neighbours(count, seed)):
        tokens = step.tokens
        logits_of(runner, [part(tokens, 0, len(tokens) - 1, i + 1, size=SIZE)])
        steps.append(part(tokens, len(tokens) - 1, len(tokens), i + 1, size=SIZE))
    return steps


@pytest.mark.parametrize("count", [1, 7, 31])
def test_among_neighbours(runner: ModelRunner, count: int) -> None:
    tokens = tokens_of(1, LENGTH)
    mine = part(tokens, 0, LENGTH, 0, size=SIZE)
    alone = logits_of(runner, [mine])[0]
    others = neighbours(count, count)
    for place in (0, count // 2, count):
        steps = [*others[:place], mine, *others[place:]]
        assert torch.equal(logits_of(runner, steps)[place], alone)


@pytest.mark.parametrize("count", [1, 7, 31])
def test_a_decode_row_among_decode_rows_equals_the_prompt_row(
    runner: ModelRunner, count: int
) -> None:
    tokens = tokens_of(2, LENGTH)
    alone = last_logits(runner, tokens, 6)
    logits_of(runner, [part(tokens, 0, LENGTH - 1, 0, size=SIZE)])
    mine = part(tokens, LENGTH - 1, LENGTH, 0, size=SIZE)
    assert torch.equal(logits_of(runner, [mine])[0][0], alone)
    others = decodes(runner, count, count + 50)
    assert torch.equal(logits_of(runner, [*others, mine])[-1][0], alone)


@pytest.mark.parametrize("borders", [(1,), (37, 38, 90), (16, 32, 160), (202,), (101, 150, 199)])
def test_cold_equals_chunked_and_warm(runner: ModelRunner, borders: tuple[int, ...]) -> None:
    tokens = tokens_of(3, LENGTH)
    cold = last_logits(runner, tokens, 0)
    runner.cache.poison()
    others = neighbours(3, 9)
    found = None
    for start, stop in zip((0, *borders), (*borders, LENGTH), strict=True):
        found = logits_of(runner, [others[0], part(tokens, start, stop, 0, size=SIZE), *others[1:]])
    assert found is not None
    assert torch.equal(found[1][0], cold)


def test_after_preemption_the_recomputed_rows_are_the_same(runner: ModelRunner) -> None:
    """Other blocks, other chunks, and the tokens generated so far come as a prompt."""
    tokens = tokens_of(4, 90)
    logits_of(runner, [part(tokens, 0, 80, 0, size=SIZE)])
    for i in range(80, 90):
        first = logits_of(runner, [part(tokens, i, i + 1, 0, size=SIZE)])[0]
    logits_of(runner, [part(tokens, 0, 57, 33, size=SIZE)])
    again = logits_of(runner, [part(tokens, 57, 90, 33, size=SIZE)])[0]
    assert torch.equal(first, again)


def test_a_copied_block_serves_like_its_source(runner: ModelRunner) -> None:
    tokens = tokens_of(5, 60)
    cold = last_logits(runner, tokens, 0)
    runner.cache.poison()
    logits_of(runner, [part(tokens, 0, 44, 0, size=SIZE)])
    shared, own = table_of(0, SIZE), table_of(1, SIZE)
    table = (*shared[:2], own[0], own[1])
    step = SequenceStep(
        "copy", tokens[44:], 44, table, sample=SampleSpec(SamplingParams(logprobs=3), 60)
    )
    copies = (BlockCopy(source=shared[2], target=own[0], num_slots=12),)
    output = runner.step(StepPlan(1, (step,), copies)).sequences[0]
    expected = torch.log_softmax(cold, -1).topk(3)
    assert [p for _, p in output.top_logprobs] == expected.values.tolist()
    assert output.token == int(cold.argmax())


@pytest.mark.parametrize("count", [1, 7, 31])
def test_a_trie_alone_and_among_neighbours(runner: ModelRunner, count: int) -> None:
    trie = ChoiceTrie.build(CHOICES)
    tokens = tokens_of(6, LENGTH)
    mine = part(tokens, 0, LENGTH, 0, trie=trie, size=SIZE)
    alone = runner.step(StepPlan(0, (mine,))).sequences[0]
    plan = StepPlan(1, (*neighbours(count, count + 70), mine))
    assert runner.step(plan).sequences[-1] == alone


def test_a_trie_on_a_warm_prefix(runner: ModelRunner) -> None:
    trie = ChoiceTrie.build(CHOICES)
    tokens = tokens_of(7, LENGTH)
    cold = runner.step(StepPlan(0, (part(tokens, 0, LENGTH, 0, trie=trie, size=SIZE),)))
    for start in (1, 150, LENGTH - 1):
        warm = runner.step(StepPlan(1, (part(tokens, start, LENGTH, 0, trie=trie, size=SIZE),)))
        assert warm.sequences == cold.sequences


def test_choices_in_any_order_have_the_same_bits(runner: ModelRunner) -> None:
    tokens = tokens_of(8, 50)
    found = set()
    for seed in range(3):
        choices = random.Random(seed).sample(CHOICES, len(CHOICES))
        trie = ChoiceTrie.build(choices)
        output = runner.step(StepPlan(0, (part(tokens, 0, 50, 0, trie=trie, size=SIZE),)))
        edges = output.sequences[0].edge_logprobs
        assert edges is not None
        scores = {c: sum(edges[e] for e in trie.paths[i]) for i, c in enumerate(choices)}
        found.add(tuple(scores[c] for c in CHOICES))
    assert len(found) == 1


def test_a_corrupted_neighbour_spoils_nothing(runner: ModelRunner) -> None:
    """One sequence reads a poisoned slot: it alone is reported, all others keep their bits."""
    tokens = tokens_of(9, LENGTH)
    mine = part(tokens, 0, LENGTH, 0, size=SIZE)
    alone = runner.step(StepPlan(0, (mine,))).sequences[0]
    runner.cache.poison()
    broken = [part(tokens, 20, 50, 1, size=SIZE), part(tokens, 60, 61, 2, size=SIZE)]
    scored = part(tokens, 20, 50, 3, size=SIZE, trie=ChoiceTrie.build(CHOICES))
    output = runner.step(StepPlan(1, (*broken, mine, scored))).sequences
    assert [o.corrupted for o in output] == [True, True, False, True]
    assert output[2] == alone


def test_a_walk_depends_on_its_own_row(runner: ModelRunner) -> None:
    tokens = tokens_of(10, 70)
    spec = SampleSpec(SamplingParams(temperature=1.0, seed=4), 70, allowed=(3, 50, 77, 120, 201))
    mine = SequenceStep("walk", tokens, 0, table_of(0, SIZE), sample=spec)
    alone = runner.step(StepPlan(0, (mine,))).sequences[0]
    among = runner.step(StepPlan(1, (*neighbours(7, 3), mine))).sequences[-1]
    assert alone == among
    assert alone.token in (3, 50, 77, 120, 201)


@pytest.mark.drill
def test_a_thousand_repeats_under_random_load_give_one_list_of_bits(runner: ModelRunner) -> None:
    trie = ChoiceTrie.build(CHOICES)
    tokens = tokens_of(11, LENGTH)
    found = set()
    for seed in range(1000):
        others = neighbours(seed % 12, seed)
        start = 0 if seed % 3 == 0 else seed % LENGTH
        mine = part(tokens, start, LENGTH, 0, trie=trie, size=SIZE)
        steps = [*others, mine]
        found.add(runner.step(StepPlan(seed, tuple(steps))).sequences[-1].edge_logprobs)
    assert len(found) == 1


def test_the_label_is_withdrawn_where_bits_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Planted fault: a product whose rows depend on how many there are."""

    def faulty(x: torch.Tensor, *rest: object) -> torch.Tensor:
        return linear(x, *rest) * (1 + 1e-6 * (len(x) % 3))  # type: ignore[arg-type]

    folder = write_checkpoint(tmp_path)
    assert make_runner(folder).deterministic
    monkeypatch.setattr("engine.layers.mlp.linear", faulty)
    assert not make_runner(folder).deterministic
    assert "not marked deterministic" in caplog.text
    assert not make_runner(folder, deterministic=False).deterministic
