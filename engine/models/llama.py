"""Llama and its likes: SmolLM2, Mistral (with its window), Qwen2 (with biases)."""

from collections.abc import Callable, Mapping

from torch import Tensor

from engine.layers.attention import Attention, HeadNorms
from engine.layers.mlp import GatedMLP
from engine.layers.rope import rope_table
from engine.model_config import ModelConfig, ModelError

from .decoder import Decoder, Head, PreNormLayer

NormLoader = Callable[[Mapping[str, Tensor], int, ModelConfig], HeadNorms]


def load_llama(
    weights: Mapping[str, Tensor],
    config: ModelConfig,
    num_positions: int,
    head_norms: NormLoader | None = None,
) -> Decoder:
    """`head_norms` loads a layer's norms over heads, where the architecture has them.

    Raises ModelError on an activation other than silu.
    """
    if config.hidden_act != "silu":
        raise ModelError(f"config.json: hidden_act {config.hidden_act!r} is not silu")
    embedding = weights["model.embed_tokens.weight"].float()
    head = weights.get("lm_head.weight")
    head_rows = embedding if head is None else head.float()
    table = rope_table(config.rope, config.head_dim, num_positions)
    return Decoder(
        config=config,
        embedding=embedding,
        layers=tuple(
            _layer(weights, config, i, head_norms) for i in range(config.num_hidden_layers)
        ),
        norm=weights["model.norm.weight"].float(),
        output=Head(head_rows),
        ropes=dict.fromkeys(config.layer_types, table),
    )


def _layer(
    weights: Mapping[str, Tensor], config: ModelConfig, i: int, head_norms: NormLoader | None
) -> PreNormLayer:
    prefix = f"model.layers.{i}."
    norms = head_norms(weights, i, config) if head_norms else None
    return PreNormLayer(
        attention_norm=weights[prefix + "input_layernorm.weight"].float(),
        attention=Attention.load(weights, i, config, norms),
        mlp_norm=weights[prefix + "post_attention_layernorm.weight"].float(),
        mlp=GatedMLP.load(weights, i),
        eps=config.rms_norm_eps,
    )
