"""GGUF files of every architecture, used in place, against the model they were made from."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor

from engine.convert import write_texts
from engine.gguf_file import GgufFile
from engine.gguf_weights import precision_of
from engine.model_config import ModelError, read_config
from engine.weights import load_tensors
from tests.engine.gguf_kit import ArrayF32, write_gguf
from tests.engine.model_kit import byte_level_tokenizer
from tests.engine.runner_kit import last_logits, make_runner, tokens_of

TOKENIZER = byte_level_tokenizer()
SHAPE: dict[str, Any] = {
    "vocab_size": TOKENIZER.get_vocab_size(),
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 7,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
}
NAMES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma3": "Gemma3"}
ROPES = {
    "gemma3": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
    "yarn": {
        "rope_type": "yarn",
        "rope_theta": 1e4,
        "factor": 4.0,
        "original_max_position_embeddings": 256,
    },
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 5e5,
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "default": {"rope_type": "default", "rope_theta": 1e4},
}


def random_model(architecture: str, rope: str, **changes: Any) -> Any:
    """A transformers model with weights large enough that logits differ well."""
    name = NAMES[architecture]
    config_class = getattr(transformers, name + ("TextConfig" if name == "Gemma3" else "Config"))
    if name == "Gemma3":
        changes |= {"query_pre_attn_scalar": 32, "sliding_window": 50}
    values = {**SHAPE, "rope_parameters": ROPES[rope], "tie_word_embeddings": True, **changes}
    config = config_class(**values, attn_implementation="eager")
    torch.manual_seed(1)
    model = getattr(transformers, name + "ForCausalLM")(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.2)
    return model.eval()


def arrays(model: Any) -> dict[str, ArrayF32]:
    tied = model.config.tie_word_embeddings
    state = model.state_dict().items()
    return {name: value.numpy() for name, value in state if not (tied and "lm_head" in name)}


def written(path: Path, architecture: str, model: Any, kind: str = "F32", **metadata: Any) -> Path:
    theta = model.config.rope_parameters.get("full_attention", model.config.rope_parameters)
    config = {**SHAPE, "rope_theta": theta["rope_theta"]}
    return write_gguf(path, arrays(model), config, TOKENIZER, kind, architecture, **metadata)


def in_place(folder: Path, file: Path) -> Path:
    """A model's directory whose weights are a link to the file."""
    folder.mkdir()
    opened = GgufFile(file)
    write_texts(opened, folder)
    opened.close()
    (folder / "model.gguf").symlink_to(file)
    return folder


def logits(model: Any, tokens: tuple[int, ...]) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(torch.tensor([tokens]), logits_to_keep=1).logits[0, -1]
    return found


@pytest.mark.parametrize(
    ("architecture", "rope", "changes", "metadata"),
    [
        ("llama", "default", {}, {}),
        ("llama", "llama3", {}, {}),
        ("qwen2", "default", {"tie_word_embeddings": False}, {}),
        ("qwen3", "yarn", {}, {"rope__scaling__type": "yarn", "rope__scaling__factor": 4.0,
                               "rope__scaling__original_context_length": 256}),
        ("gemma3", "gemma3", {}, {"rope__scaling__type": "linear", "rope__scaling__factor": 8.0,
                                  "attention__sliding_window": 50}),
    ],
)  # fmt: skip
def test_logits_are_those_of_the_model_it_came_from(
    tmp_path: Path, architecture: str, rope: str, changes: dict[str, Any], metadata: dict[str, Any]
) -> None:
    model = random_model(architecture, rope, **changes)
    if rope == "llama3":
        metadata = {"rope_factors": llama3_divisors(model)}
    file = written(tmp_path / "m.gguf", architecture, model, **metadata)
    runner = make_runner(in_place(tmp_path / "m", file))
    for length in (60, 1100):
        tokens = tokens_of(length, length, SHAPE["vocab_size"])
        assert (last_logits(runner, tokens) - logits(model, tokens)).abs().max() < 5e-4


def llama3_divisors(model: Any) -> ArrayF32:
    """What llama.cpp's converter stores: plain frequencies over scaled ones."""
    scaled = model.model.rotary_emb.inv_freq.numpy()
    plain = 5e5 ** -(np.arange(0, 32, 2) / 32)
    divisors: ArrayF32 = (plain / scaled).astype(np.float32)
    return divisors


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q5_K", "Q6_K"])
def test_quantised_weights_are_what_transformers_makes_of_them(tmp_path: Path, kind: str) -> None:
    """Against its own dequantisation in torch, of the same bytes."""
    from transformers.integrations.gguf.dequant import dequantize

    model = random_model("qwen3", "default", hidden_size=256, intermediate_size=256, head_dim=64)
    shape = {**SHAPE, "hidden_size": 256, "intermediate_size": 256, "head_dim": 64}
    file = write_gguf(
        tmp_path / "m.gguf", arrays(model), {**shape, "rope_theta": 1e4}, TOKENIZER, kind, "qwen3"
    )
    ours, stored = load_tensors(in_place(tmp_path / "m", file)), GgufFile(file)
    for name, blocks in (("mlp.down_proj", "ffn_down"), ("self_attn.q_proj", "attn_q")):
        tensor = stored.tensors[f"blk.1.{blocks}.weight"]
        raw = torch.from_numpy(stored.data(tensor).copy()).reshape(-1)
        number = int(gguf.GGMLQuantizationType[kind])
        expected = dequantize(raw, number).reshape(tensor.shape)
        found = ours[f"model.layers.1.{name}.weight"]
        assert expected.abs().max() > 0.1
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert precision_of(stored) == kind.lower()


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"rope__scaling__type": "longrope", "rope__scaling__factor": 2.0},
         r"m\.gguf: unknown rope scaling 'longrope'.*llama-server -m"),
        ({"rope__scaling__type": "linear"}, r"lacks the metadata 'qwen3\.rope\.scaling\.factor'"),
        ({"rope__dimension_count": 16}, "rotary over part of a head.*llama-server"),
        ({"rope_factors": np.full(16, 3, np.float32)}, "no llama3 scaling that is known"),
    ],
)  # fmt: skip
def test_rope_scaling_that_is_not_known_is_refused(
    tmp_path: Path, metadata: dict[str, Any], words: str
) -> None:
    file = written(tmp_path / "m.gguf", "qwen3", random_model("qwen3", "default"), **metadata)
    with pytest.raises(ModelError, match=words) as caught:
        in_place(tmp_path / "m", file)
    assert "\n" not in str(caught.value)


def test_a_gemma_that_sees_gives_its_text_half(tmp_path: Path) -> None:
    """Ollama keeps both in one file, and names the rotary bases in its own way."""
    model = random_model("gemma3", "gemma3")
    metadata: dict[str, Any] = {"attention__sliding_window": 50, "rope__local__freq_base": 5000.0}
    file = written(tmp_path / "m.gguf", "gemma3", model, eyes=True, **metadata)
    folder = in_place(tmp_path / "m", file)
    assert set(load_tensors(folder)) == set(arrays(model))
    local = read_config(folder).rope_local
    assert local is not None
    assert local.theta == 5000.0


def test_soft_caps_in_a_gguf_file_are_not_ignored(tmp_path: Path) -> None:
    metadata: dict[str, Any] = {"attention__sliding_window": 50, "final_logit_softcapping": 30.0}
    model = random_model("gemma3", "gemma3")
    folder = in_place(tmp_path / "m", written(tmp_path / "m.gguf", "gemma3", model, **metadata))
    with pytest.raises(ModelError, match="final_logit_softcapping is not computed here"):
        read_config(folder)


def mapped_or_open(file: Path) -> bool:
    """Whether this process still holds a file."""
    links = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return str(file) in Path("/proc/self/maps").read_text() or file in links


def test_a_file_that_is_refused_is_let_go(tmp_path: Path) -> None:
    """No memory is left behind."""
    tensors = arrays(random_model("qwen3", "default"))
    lost = tensors.pop("model.norm.weight")
    config = {**SHAPE, "rope_theta": 1e4}
    file = write_gguf(tmp_path / "a.gguf", tensors, config, TOKENIZER, "F32", "qwen3")
    folder = in_place(tmp_path / "a", file)
    with pytest.raises(ModelError, match="missing"):
        load_tensors(folder)
    assert not mapped_or_open(file)
    (folder / "model.gguf").unlink()
    stored = {name: torch.from_numpy(value) for name, value in tensors.items()}
    stored["model.norm.weight"] = torch.from_numpy(lost[:-1].copy())
    save_file(stored, folder / "model.safetensors")
    with pytest.raises(ModelError, match="has shape"):
        load_tensors(folder)
    assert not mapped_or_open(folder / "model.safetensors")


def test_a_weight_that_is_missing_or_left_over(tmp_path: Path) -> None:
    model = random_model("qwen3", "default")
    tensors = arrays(model)
    lost = tensors.pop("model.layers.3.self_attn.q_norm.weight")
    config = {**SHAPE, "rope_theta": 1e4}
    file = write_gguf(tmp_path / "a.gguf", tensors, config, TOKENIZER, "F32", "qwen3")
    with pytest.raises(ModelError, match=r"q_norm\.weight missing.*llama-server -m .*a\.gguf"):
        load_tensors(in_place(tmp_path / "a", file))
    tensors = arrays(model) | {"model.layers.7.self_attn.q_norm.weight": lost}
    file = write_gguf(tmp_path / "b.gguf", tensors, config, TOKENIZER, "F32", "qwen3")
    with pytest.raises(ModelError, match=r"layers\.7\..*left over.*llama-server -m .*b\.gguf"):
        load_tensors(in_place(tmp_path / "b", file))


def test_the_link_may_break(tmp_path: Path) -> None:
    file = written(tmp_path / "m.gguf", "qwen3", random_model("qwen3", "default"))
    folder = in_place(tmp_path / "m", file)
    assert read_config(folder).architecture == "Qwen3ForCausalLM"
    file.unlink()
    with pytest.raises(ModelError, match=r"model file .*m\.gguf does not exist"):
        load_tensors(folder)
