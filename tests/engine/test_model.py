"""Logits against transformers within 5e-4, on small random checkpoints and on the real one."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.hub import models_dir
from engine.model_config import ModelError
from engine.models import load_model
from engine.tokenizer import Tokenizer
from engine.types import TokenIds
from engine.weights import load_tensors
from tests.engine.model_kit import llama_config, write_json
from tests.engine.runner_kit import (
    GEMMA3,
    LLAMA3,
    MISTRAL,
    QWEN2,
    QWEN3,
    SMALL,
    WINDOW,
    YARN,
    last_logits,
    make_runner,
    tokens_of,
    write_checkpoint,
)

TOLERANCE = 5e-4
REAL = models_dir() / "smollm2-135m"
GEMMA = models_dir() / "gemma3-270m"


def oracle(folder: Path, tokens: TokenIds) -> Tensor:
    """Logits of the last row by transformers, its explicit attention."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.no_grad():
        logits: Tensor = model(torch.tensor([tokens]), logits_to_keep=1).logits[0, -1]
    return logits


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 6},
        {"num_key_value_heads": 1, "head_dim": 32},
        {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False},
        {"attention_bias": True, "mlp_bias": True},
        {"rope_theta": 500000.0, "rope_scaling": {"rope_type": "linear", "factor": 3.0}},
        {"rope_scaling": LLAMA3},
        {"rope_scaling": YARN},
        {"rope_scaling": {**YARN, "attention_factor": 1.3, "beta_fast": 20.0}},
        MISTRAL,
        QWEN2,
        {**QWEN2, **WINDOW, "tie_word_embeddings": False, "rope_scaling": YARN},
        QWEN3,
        {**QWEN3, **WINDOW, "num_key_value_heads": 1, "head_dim": 32, "rope_scaling": YARN},
        {**QWEN3, "attention_bias": True, "tie_word_embeddings": False},
        GEMMA3,
        {**GEMMA3, "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "head_dim": 32},
        {**GEMMA3, "tie_word_embeddings": False, "num_key_value_heads": 6},
    ],
)
@pytest.mark.parametrize("length", [70, 1100])
def test_logits_equal_transformers(tmp_path: Path, changes: dict[str, Any], length: int) -> None:
    folder = write_checkpoint(tmp_path, **changes)
    tokens = tokens_of(length, length)
    found = last_logits(make_runner(folder), tokens)
    assert (found - oracle(folder, tokens)).abs().max() < TOLERANCE


@pytest.mark.parametrize("same", [True, False])
def test_a_stored_head_beside_tied_embeddings(tmp_path: Path, same: bool) -> None:
    """Both spellings of checkpoints are used as transformers uses them."""
    folder = write_checkpoint(tmp_path, tie_word_embeddings=True)
    tensors = load_file(folder / "model.safetensors")
    embedding = tensors["model.embed_tokens.weight"]
    tensors["lm_head.weight"] = embedding.clone() if same else embedding.flip(0).contiguous()
    save_file(tensors, folder / "model.safetensors")
    tokens = tokens_of(3, 40)
    found = last_logits(make_runner(folder), tokens)
    assert (found - oracle(folder, tokens)).abs().max() < TOLERANCE


@pytest.mark.parametrize("prefix", ["model.language_model.", "language_model.model."])
def test_the_text_half_of_a_vision_model(tmp_path: Path, prefix: str) -> None:
    """Gemma3ForConditionalGeneration as transformers saves it, and as it once did."""
    folder = vision_model(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    renamed = {name.replace("language_model.model.", prefix): t for name, t in tensors.items()}
    assert any(name.startswith(prefix) for name in renamed)
    tokens = tokens_of(4, 150)
    expected = oracle(folder, tokens)
    save_file(renamed, folder / "model.safetensors")
    assert (last_logits(make_runner(folder), tokens) - expected).abs().max() < TOLERANCE


def vision_model(folder: Path) -> Path:
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3TextConfig,
        SiglipVisionConfig,
    )

    shape: dict[str, Any] = {**SMALL, "sliding_window": 60, "pad_token_id": 0}
    seeing = SiglipVisionConfig(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        image_size=28, patch_size=14,
    )  # fmt: skip
    torch.manual_seed(0)
    config = Gemma3Config(
        text_config=Gemma3TextConfig(**shape), vision_config=seeing, image_token_index=210
    )
    Gemma3ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.mark.skipif(not REAL.exists(), reason="skipped: `arena model pull smollm2-135m` first")
@pytest.mark.parametrize("length", [60, 1040])
def test_real_logits_equal_transformers(length: int) -> None:
    tokens = tokens_of(length, length, 49152)
    runner = make_runner(REAL, max_model_len=2048)
    assert (last_logits(runner, tokens) - oracle(REAL, tokens)).abs().max() < TOLERANCE


def gemma_oracle() -> Any:
    """transformers' model of the same configuration with the file's weights."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig
    from transformers.initialization import no_init_weights

    config = Gemma3TextConfig.from_pretrained(GEMMA, attn_implementation="eager")
    with no_init_weights():  # random ones take longer than everything else here
        model: Any = Gemma3ForCausalLM(config)
    model.eval()
    weights = dict(load_tensors(GEMMA))
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights, assign=True)
    return model


@pytest.mark.skipif(not GEMMA.exists(), reason="skipped: `arena model pull gemma3-270m` first")
def test_the_real_gemma_equals_transformers_and_writes_sense() -> None:
    """On a real text, of which the last logits see all, beyond the window of 512; then on."""
    tokenizer = Tokenizer.load(GEMMA)
    runner = make_runner(GEMMA, max_model_len=2048, num_gpu_blocks_override=400)
    prose = Path(__file__).read_text(encoding="utf-8") * 2
    tokens = tokenizer.encode(prose, add_bos=True)
    model = gemma_oracle()
    tokens = tokens[:1040]
    with torch.no_grad():
        expected = model(torch.tensor([tokens]), logits_to_keep=1).logits[0, -1]
    assert (last_logits(runner, tokens) - expected).abs().max() < TOLERANCE
    said = tokenizer.encode("The capital of France is Paris. The capital of Italy is", add_bos=True)
    for _ in range(2):
        said = (*said, int(last_logits(runner, said).argmax()))
    assert tokenizer.decode(said).endswith("Italy is Rome.")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rope_scaling": {"rope_type": "longrope"}}, "unknown rope type 'longrope'"),
        ({"rope_scaling": {"rope_type": "linear"}}, "needs 'factor'"),
        ({"hidden_act": "relu"}, "hidden_act 'relu'"),
        ({"architectures": ["MambaForCausalLM"]}, "unknown architecture 'MambaForCausalLM'"),
        ({"intermediate_size": 81}, "config.json asks for"),
        ({"num_hidden_layers": 4}, "missing from the weights"),
        ({"num_hidden_layers": 2}, "left over"),
    ],
)
def test_what_contradicts_the_weights_is_named(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    write_checkpoint(tmp_path)
    write_json(tmp_path / "config.json", llama_config(**{**SMALL, **changes}))
    with pytest.raises(ModelError, match=words) as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def test_more_positions_than_the_model_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="2048 positions"):
        load_model(write_checkpoint(tmp_path), 4096)


def test_what_does_not_fit_in_memory_is_one_line(tmp_path: Path) -> None:
    """Rotary tables of more positions than any memory holds."""
    folder = write_checkpoint(tmp_path, max_position_embeddings=1 << 44)
    with pytest.raises(ModelError, match=r"does not load .*lower max_model_len") as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)
