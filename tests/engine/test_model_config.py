"""config.json is read as transformers reads it, and what is unknown is refused by name."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from engine.model_config import ModelError, expected_shapes, read_config
from tests.engine.model_kit import llama_config, write_json

SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
}
NAMES = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma3Text")


def saved(folder: Path, name: str, **changes: Any) -> Any:
    """A random model of transformers in `folder`; returns its configuration."""
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **changes})
    model_class = name.replace("Gemma3Text", "Gemma3") + "ForCausalLM"
    getattr(transformers, model_class)(config).save_pretrained(folder)
    return config


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_expected_shapes_are_what_transformers_saves(tmp_path: Path, name: str, tied: bool) -> None:
    torch.manual_seed(0)
    saved(tmp_path, name, tie_word_embeddings=tied)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        stored = {key: tuple(file.get_slice(key).get_shape()) for key in list(file.keys())}
    config = read_config(tmp_path)
    assert expected_shapes(config) == stored
    assert config.num_parameters == sum(torch.Size(shape).numel() for shape in stored.values())


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    theirs = saved(tmp_path, name, eos_token_id=[5, 7], bos_token_id=3)
    config = read_config(tmp_path)
    for field in ("hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim",
                  "num_key_value_heads", "vocab_size", "max_position_embeddings", "rms_norm_eps",
                  "tie_word_embeddings", "intermediate_size"):  # fmt: skip
        assert getattr(config, field) == getattr(theirs, field), field
    assert (config.bos_token_id, config.eos_token_ids) == (3, (5, 7))
    act = getattr(theirs, "hidden_activation", None) or theirs.hidden_act
    assert config.hidden_act == act
    if name == "Gemma3Text":
        assert list(config.layer_types) == theirs.layer_types
        assert config.sliding_window is None or config.sliding_window == theirs.sliding_window
        assert config.rope_local is not None
        assert config.rope_local.theta == theirs.rope_parameters["sliding_attention"]["rope_theta"]
        assert config.rope.theta == theirs.rope_parameters["full_attention"]["rope_theta"]
        assert config.query_pre_attn_scalar == theirs.query_pre_attn_scalar
    else:
        assert config.rope.theta == theirs.rope_parameters["rope_theta"]
    window = getattr(theirs, "sliding_window", None)
    kinds = {"Mistral": window and 3 * ("sliding_attention",)}
    assert config.layer_types == (
        kinds.get(name) or tuple(getattr(theirs, "layer_types", None) or 3 * ("full_attention",))
    )


@pytest.mark.parametrize("name", ["Qwen2", "Qwen3"])
def test_sliding_layers_of_qwen(tmp_path: Path, name: str) -> None:
    theirs = saved(tmp_path, name, use_sliding_window=True, sliding_window=9, max_window_layers=1)
    config = read_config(tmp_path)
    assert list(config.layer_types) == theirs.layer_types
    assert config.layer_types.count("sliding_attention") == 2
    assert config.sliding_window == 9


def folder_with(folder: Path, **changes: Any) -> Path:
    write_json(folder / "config.json", llama_config(**changes))
    return folder


KEYS = {
    *llama_config(), "head_dim", "layer_types", "rope_parameters", "rope_scaling", "text_config",
    "sliding_window", "attention_bias", "hidden_act", "dtype", "query_pre_attn_scalar",
}  # fmt: skip
SCALING = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_theta": 5e5, "rope_scaling": SCALING},
        {"rope_theta": 5e5, "rope_scaling": {**SCALING, "type": "llama3"}},
        {"rope_theta": None, "rope_parameters": {**SCALING, "rope_theta": 5e5}},
    ],
)
def test_both_spellings_of_rope_scaling(tmp_path: Path, changes: dict[str, Any]) -> None:
    rope = read_config(folder_with(tmp_path, **changes)).rope
    assert (rope.kind, rope.theta, rope.get("factor")) == ("llama3", 5e5, 8.0)
    assert rope.get("high_freq_factor", 4.0) == 4.0
    with pytest.raises(ModelError, match="high_freq_factor"):
        rope.get("high_freq_factor")


def test_end_tokens_come_from_both_files(tmp_path: Path) -> None:
    folder_with(tmp_path, eos_token_id=2)
    write_json(tmp_path / "generation_config.json", {"eos_token_id": [4, 2]})
    assert read_config(tmp_path).eos_token_ids == (4, 2)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "'MambaForCausalLM'.*vllm serve"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope type 'longrope'.*vllm serve"),
        ({"hidden_size": "16"}, "hidden_size must be a positive integer, found '16'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3"),
        ({"head_dim": 7}, "head_dim 7 is odd"),
        ({"eos_token_id": 99}, "eos token 99"),
        ({"rms_norm_eps": -1.0}, "rms_norm_eps"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"quantization_config": {"bits": 4}}, "quantization_config is not computed.*vllm serve"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping is not computed"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping is not computed"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention is not computed"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is not computed.*vllm serve"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "factor of rope type 'linear'"),
        ({"num_hidden_layers": 10**9}, "1000000000 layers are past belief"),
    ],
)
def test_faults_are_named(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    with pytest.raises(ModelError, match=word) as caught:
        read_config(folder_with(tmp_path, **changes))
    assert "\n" not in str(caught.value)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JSON = VALUES | st.lists(VALUES, max_size=2) | st.dictionaries(st.text(max_size=3), VALUES)


@settings(max_examples=400, deadline=None)
@given(key=st.sampled_from(sorted(KEYS)), value=JSON)
def test_a_value_of_any_kind_is_read_or_refused(key: str, value: object) -> None:
    with TemporaryDirectory() as name:
        folder = folder_with(Path(name), **{key: value})
        message = ""
        try:
            read_config(folder)
        except ModelError as error:
            message = str(error)
        assert "\n" not in message


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        read_config(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text("{oops")
    with pytest.raises(ModelError, match="cannot be read"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ModelError, match="not a JSON object"):
        read_config(tmp_path)


def test_the_real_model(smollm2_dir: Path) -> None:
    config = read_config(smollm2_dir)
    assert config.num_parameters == 134_515_008
    assert (config.rope.theta, config.rms_norm_eps, config.head_dim) == (1e5, 1e-5, 64)
    assert config.tie_word_embeddings
    assert config.eos_token_ids == (2,)
