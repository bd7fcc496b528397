"""The runner as the engine sees it: sizes, settings, errors, int8, counted work."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import EngineConfig
from engine.model_config import ModelError
from engine.runner import ModelRunner
from engine.threads import use_cores
from engine.trie import ChoiceTrie
from engine.types import SampleSpec, SamplingParams, SequenceOutput, SequenceStep, StepPlan
from kernels.linear import linear
from tests.engine.runner_kit import (
    SMALL,
    last_logits,
    make_runner,
    part,
    table_of,
    tokens_of,
    write_checkpoint,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"))


def test_sizes(folder: Path) -> None:
    runner = make_runner(folder, block_size=8, num_gpu_blocks_override=33, max_model_len=200)
    assert (runner.block_size, runner.num_blocks) == (8, 33)
    assert (runner.max_model_len, runner.vocab_size) == (200, SMALL["vocab_size"])


def test_the_pool_is_sized_in_bytes(folder: Path) -> None:
    block = 2 * 3 * 2 * 16 * 4 * 16  # K and V, layers, kv heads, head_dim, bytes, slots
    config = EngineConfig(model="m", kv_cache_memory_bytes=10 * block + 5)
    assert ModelRunner.load(folder, config).num_blocks == 10
    int8 = EngineConfig(model="m", kv_cache_memory_bytes=10 * block, kv_cache_dtype="int8")
    assert ModelRunner.load(folder, int8).num_blocks == 10 * 64 // (16 + 4)


def test_the_default_pool_holds_all_sequences_at_most(folder: Path) -> None:
    config = EngineConfig(model="m", max_num_seqs=3, max_model_len=100)
    assert ModelRunner.load(folder, config).num_blocks == 3 * 7


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "cuda"}, "device 'cuda'"),
        ({"dtype": "bfloat16"}, "dtype 'bfloat16'"),
        ({"quantization": "awq"}, "quantization 'awq'"),
        ({"block_size": 48}, "block_size: 48"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype 'fp8'"),
        ({"kv_cache_memory_bytes": 100}, "kv_cache_memory_bytes: 100"),
        ({"max_model_len": 4096}, "max_model_len: 4096"),
    ],
)
def test_settings_that_cannot_be_had_are_named(
    folder: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        ModelRunner.load(folder, EngineConfig(model="m", **settings))


def test_greedy_decoding_step_by_step_equals_whole_prompts(folder: Path) -> None:
    runner = make_runner(folder)
    tokens = tokens_of(1, 40)
    step = part(tokens, 0, 40, 0)
    for _ in range(12):
        token = runner.step(StepPlan(0, (step,))).sequences[0].token
        assert token == int(last_logits(runner, tokens, 1).argmax())
        tokens = (*tokens, token)
        step = part(tokens, len(tokens) - 1, len(tokens), 0)


def test_a_masked_walk_takes_the_best_allowed_token(folder: Path) -> None:
    runner = make_runner(folder)
    tokens, allowed = tokens_of(2, 40), (4, 9, 100, 101, 180)
    best = max(allowed, key=lambda t: float(last_logits(runner, tokens, 1)[t]))
    for logprobs in (0, 3):
        spec = SampleSpec(SamplingParams(logprobs=logprobs), 40, allowed=allowed)
        step = SequenceStep("walk", tokens, 0, table_of(0), sample=spec)
        output = runner.step(StepPlan(0, (step,))).sequences[0]
        assert output.token == best
        assert (output.logprob is None) == (logprobs == 0)


def test_outputs_follow_the_plan(folder: Path) -> None:
    runner = make_runner(folder)
    trie = ChoiceTrie.build([(3, 4), (5,)])
    tokens = tokens_of(3, 50)
    steps = (
        part(tokens, 0, 50, 0, trie=trie),
        SequenceStep("chunk", tokens[:30], 0, table_of(1)),
        part(tokens, 0, 50, 2, logprobs=1),
        SequenceStep("w", tokens, 0, table_of(3), SampleSpec(SamplingParams(), 50, (7,))),
        part(tokens, 0, 50, 4),
    )
    outputs = runner.step(StepPlan(0, steps)).sequences
    assert len(outputs[0].edge_logprobs or ()) == 3
    assert outputs[1] == SequenceOutput()
    assert outputs[2].token == outputs[4].token == outputs[2].top_logprobs[0][0]
    assert outputs[3].token == 7
    assert runner.step(StepPlan(1, ())).sequences == ()


def test_int8_pool_changes_choices_little(folder: Path) -> None:
    tokens = tokens_of(4, 300)
    exact = last_logits(make_runner(folder), tokens)
    runner = make_runner(folder, kv_cache_dtype="int8")
    assert runner.deterministic
    near = last_logits(runner, tokens)
    assert 0 < (near - exact).abs().max() < 0.1
    assert torch.equal(last_logits(runner, tokens, 1), near)


def test_only_needed_rows_meet_the_head_and_the_last_mlp(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted work: rows of every product of a step with 50 + 30 rows (2 of padding), 2 wanted."""
    runner = make_runner(folder)
    rows: dict[str, list[int]] = {"mlp": [], "head": []}

    def counted(name: str, real: Any) -> Any:
        def call(x: torch.Tensor, *rest: Any) -> torch.Tensor:
            rows[name].append(len(x))
            return real(x, *rest)  # type: ignore[no-any-return]

        return call

    monkeypatch.setattr("engine.layers.mlp.linear", counted("mlp", linear))
    monkeypatch.setattr("engine.runner.linear", counted("head", linear))
    tokens = tokens_of(5, 52)
    runner.step(StepPlan(0, (part(tokens, 0, 50, 0), part(tokens, 0, 30, 1))))
    assert rows == {"mlp": [82, 82, 82, 82, 2, 2], "head": [2]}
    rows["mlp"].clear()
    spec = SampleSpec(SamplingParams(), 51, allowed=(1, 2))
    walk = SequenceStep("walk", tokens[50:51], 50, table_of(0), sample=spec)
    runner.step(StepPlan(1, (walk,)))
    assert rows == {"mlp": [1] * 6, "head": [2]}


def test_threads_never_exceed_what_torch_chose() -> None:
    assert 1 <= use_cores() <= max(1, torch.get_num_threads())


def test_close_lets_go(folder: Path) -> None:
    runner = make_runner(folder)
    runner.close()
    with pytest.raises(AttributeError):
        runner.step(StepPlan(0, (part((1,), 0, 1, 0),)))
