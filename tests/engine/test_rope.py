"""Rotary tables of every kind against transformers' frequencies, past position 1,000."""

from typing import Any

import pytest
import torch

from engine.layers.rope import interleave, rope_table
from engine.model_config import RopeConfig
from kernels.rope import rope_

DIM, POSITIONS, MAXIMUM = 64, 1500, 4096
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 4.0},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 1024,
    },
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 1024},
}
CASES = [
    *KINDS.items(),
    ("yarn", {**KINDS["yarn"], "truncate": False, "beta_fast": 24.0, "beta_slow": 2.0}),
    ("yarn", {**KINDS["yarn"], "mscale": 0.7, "mscale_all_dim": 1.3}),
    ("yarn", {**KINDS["yarn"], "attention_factor": 1.25}),
]


def rope_of(kind: str, parameters: dict[str, Any]) -> RopeConfig:
    return RopeConfig(
        kind, 10000.0, tuple(sorted((key, float(value)) for key, value in parameters.items()))
    )


@pytest.mark.parametrize(("kind", "parameters"), CASES)
def test_table_equals_transformers(kind: str, parameters: dict[str, Any]) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = LlamaConfig(
        hidden_size=DIM * 2,
        num_attention_heads=2,
        head_dim=DIM,
        max_position_embeddings=MAXIMUM,
        rope_parameters={"rope_type": kind, "rope_theta": 10000.0, **parameters},
    )
    rotary = LlamaRotaryEmbedding(config)
    cos, sin = rotary(torch.zeros(1), torch.arange(POSITIONS)[None])
    table = rope_table(rope_of(kind, parameters), DIM, POSITIONS)
    torch.testing.assert_close(table.real, cos[0, :, : DIM // 2], atol=1e-4, rtol=0)
    torch.testing.assert_close(table.imag, sin[0, :, : DIM // 2], atol=1e-4, rtol=0)


def test_interleaved_scores_equal_scores_of_halves() -> None:
    """Permuting rows of queries and keys alike leaves every product of a query and a key."""
    x, weights = torch.randn(9, 24), (torch.randn(2 * DIM, 24), torch.randn(2 * DIM, 24))
    table = rope_table(rope_of("default", {}), DIM, 9)
    turned = []
    for weight in weights:
        heads = (x @ interleave(weight, DIM).T).view(9, 2, DIM)
        rope_(heads, table)
        turned.append(heads)
    cos, sin = (t.repeat(1, 2)[:, None] for t in (table.real, table.imag))
    plain = []
    for weight in weights:
        heads = (x @ weight.T).view(9, 2, DIM)
        a, b = heads.chunk(2, -1)
        plain.append(heads * cos + torch.cat((-b, a), -1) * sin)
    torch.testing.assert_close(
        torch.einsum("qhd,khd->hqk", *turned),
        torch.einsum("qhd,khd->hqk", *plain),
        atol=1e-4,
        rtol=1e-4,
    )
