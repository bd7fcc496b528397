"""Small random checkpoints, a runner over them, and plain passes to compare with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.batch import build_batch
from engine.config import EngineConfig
from engine.model_config import expected_shapes, read_config
from engine.runner import ModelRunner
from engine.trie import ChoiceTrie
from engine.types import SampleSpec, SamplingParams, SequenceStep, StepPlan, TokenIds
from kernels.linear import linear
from tests.engine.model_kit import llama_config, write_json

SMALL = {
    "vocab_size": 211,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
}

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 100}
QWEN2 = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
WINDOW = {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1}
GEMMA3 = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 40,
    "sliding_window": 50,
    "sliding_window_pattern": 3,
    "rope_theta": 300000.0,
    "rope_local_base_freq": 5000.0,
}


def write_checkpoint(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """A random model directory; weights large enough that logits differ well."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", llama_config(**{**SMALL, **changes}))
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: 1 + 0.1 * torch.randn(shape, generator=generator)
        if name.endswith("norm.weight")
        else torch.randn(shape, generator=generator) * (shape[-1] ** -0.5)
        for name, shape in expected_shapes(read_config(folder)).items()
    }
    save_file(tensors, folder / "model.safetensors")
    return folder


def make_runner(folder: Path, *, poison: bool = True, **settings: Any) -> ModelRunner:
    """Unused slots hold NaN unless told otherwise."""
    values = {"num_gpu_blocks_override": 600, **settings}
    runner = ModelRunner.load(folder, EngineConfig(model=str(folder), **values))
    if poison:
        runner.cache.poison()
    return runner


def tokens_of(seed: int, count: int, vocab_size: int = SMALL["vocab_size"]) -> TokenIds:
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, vocab_size, count).tolist())


def table_of(place: int, size: int = 80) -> tuple[int, ...]:
    """Blocks of one sequence, away from the others' and in no order."""
    return tuple(reversed(range(1 + place * size, 1 + (place + 1) * size)))


def part(
    tokens: TokenIds,
    start: int,
    stop: int,
    place: int,
    *,
    trie: ChoiceTrie | None = None,
    size: int = 80,
    **params: Any,
) -> SequenceStep:
    """Rows start … stop−1 of a sequence; greedy from the last unless a trie hangs there."""
    sample = None if trie is not None else SampleSpec(SamplingParams(**params), stop)
    return SequenceStep(
        f"r{place}", tokens[start:stop], start, table_of(place, size), sample=sample, trie=trie
    )


def logits_of(runner: ModelRunner, steps: Sequence[SequenceStep]) -> list[Tensor]:
    """Full logits of every wanted row, by sequence [rows, vocabulary]."""
    batch = build_batch(StepPlan(0, tuple(steps)), runner.block_size)
    with torch.inference_mode():
        hidden = runner.model.forward(runner.tensors(batch), runner.cache)
        logits = linear(hidden, runner.model.head)
    return list(torch.split(logits, np.diff(batch.wanted_start).tolist()))


def last_logits(runner: ModelRunner, tokens: TokenIds, place: int = 0) -> Tensor:
    """Logits of a sequence's last row, computed alone in one chunk."""
    return logits_of(runner, [part(tokens, 0, len(tokens), place)])[0][0]
