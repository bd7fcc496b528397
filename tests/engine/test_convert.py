"""A GGUF becomes a directory that transformers loads with the same weights and tokens."""

import hashlib
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from engine.convert import convert_gguf
from engine.model_config import ModelError, read_config
from engine.weights import load_tensors
from tests.engine.gguf_kit import ArrayF32, write_gguf
from tests.engine.model_kit import CORPUS, byte_level_tokenizer, chatml_dir, llama_config

TOKENIZER = byte_level_tokenizer()
CONFIG = llama_config(
    vocab_size=TOKENIZER.get_vocab_size(),
    hidden_size=64,
    intermediate_size=96,
    max_position_embeddings=64,
)


def random_llama(**changes: Any) -> Any:
    torch.manual_seed(3)
    model: Any = LlamaForCausalLM(LlamaConfig(**{**CONFIG, **changes}))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.3)
    return model.eval()


def arrays(model: Any) -> dict[str, ArrayF32]:
    tied = model.config.tie_word_embeddings
    state = model.state_dict().items()
    return {name: value.numpy() for name, value in state if not (tied and "lm_head" in name)}


def converted(tmp_path: Path, model: Any, kind: str = "F32") -> Path:
    source = write_gguf(tmp_path / "model.gguf", arrays(model), CONFIG, TOKENIZER, kind)
    target = tmp_path / "model"
    target.mkdir()
    convert_gguf(source, target)
    return target


@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_the_model_it_came_from(tmp_path: Path, tied: bool) -> None:
    """Wrong unless the permutation of q and k is undone for 4 heads and for 2."""
    model = random_llama(tie_word_embeddings=tied)
    target = converted(tmp_path, model)
    loaded: Any = AutoModelForCausalLM.from_pretrained(target)
    ids = torch.arange(40)[None]
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, model(ids).logits)
    assert read_config(target).tie_word_embeddings is tied
    ours = load_tensors(target)
    assert all(torch.equal(ours[name], torch.from_numpy(a)) for name, a in arrays(model).items())


@pytest.mark.parametrize(
    ("kind", "dtype", "tolerance"),
    [("F16", "float16", 5e-4), ("BF16", "bfloat16", 4e-3), ("Q8_0", "float32", 1e-2),
     ("Q4_0", "float32", 0.15), ("Q4_1", "float32", 0.12)],
)  # fmt: skip
def test_other_types_keep_their_values(
    tmp_path: Path, kind: str, dtype: str, tolerance: float
) -> None:
    """Half types keep their bits; quantised ones are the package's own dequantisation."""
    model = random_llama()
    ours = load_tensors(converted(tmp_path, model, kind))
    name = "model.layers.0.mlp.down_proj.weight"
    original = arrays(model)[name]
    stored = getattr(gguf.GGMLQuantizationType, kind)
    expected = gguf.quants.dequantize(gguf.quants.quantize(original, stored), stored)
    assert str(ours[name].dtype) == f"torch.{dtype}"
    assert np.array_equal(ours[name].float().numpy(), expected)
    for name, original in arrays(model).items():
        error = np.abs(ours[name].float().numpy() - original).max()
        assert error <= tolerance * np.abs(original).max(), name


def test_hashes_and_progress_tell_what_was_written(tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "m.gguf", arrays(random_llama()), CONFIG, TOKENIZER)
    target = tmp_path / "model"
    target.mkdir()
    seen: list[tuple[int, int]] = []
    for file in convert_gguf(source, target, lambda done, total: seen.append((done, total))):
        data = (target / file.name).read_bytes()
        assert (file.num_bytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    total = sum(value.nbytes for value in load_file(target / "model.safetensors").values())
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)


def test_tokenizer_and_template_survive(tmp_path: Path) -> None:
    target = converted(tmp_path, random_llama())
    reference: Any = AutoTokenizer.from_pretrained(chatml_dir(tmp_path / "reference"))
    tokenizer: Any = AutoTokenizer.from_pretrained(target)
    for text in (*CORPUS, "<|im_start|>a<|im_end|>", "한글 🙂 12345"):
        assert tokenizer.encode(text) == reference.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text
    chat = [{"role": "user", "content": "e2e4"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False) == reference.apply_chat_template(
        chat, tokenize=False
    )
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")


def planted(tmp_path: Path, name: str) -> Path:
    """A GGUF with one fault."""
    path = tmp_path / "model.gguf"
    tensors = arrays(random_llama())
    if name == "unknown weight":
        write_gguf(path, tensors, CONFIG, TOKENIZER)
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"blk.0.ffn_up.weight", b"blk.0.ffn_xx.weight"))
        return path
    data = bytearray(write_gguf(path, tensors, CONFIG, TOKENIZER).read_bytes())
    if name == "version":
        data[4] = 9
    elif name == "magic":
        data[:4] = b"GGML"
    elif name == "truncated head":
        del data[2000:]
    elif name == "truncated weights":
        del data[len(data) // 2 :]
    elif name == "architecture":
        data[:] = data.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0mamba", 1)
    elif name == "metadata":
        data[:] = data.replace(b"llama.context_length", b"llama.context_lengtx", 1)
    elif name == "tokenizer":
        data[:] = data.replace(b"\x05\0\0\0\0\0\0\0gpt-2", b"\x05\0\0\0\0\0\0\0gpt-x", 1)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("version", "GGUF version 9; versions 2 and 3"),
        ("magic", "is no GGUF file"),
        ("truncated head", "truncated or damaged"),
        ("truncated weights", "truncated or damaged"),
        ("architecture", "unknown GGUF architecture 'mamba'.*llama-server -m"),
        ("metadata", r"lacks the metadata 'llama\.context_length'"),
        ("tokenizer", "unknown tokenizer 'gpt2'/'gpt-x'"),
        ("unknown weight", r"no place for the weight 'blk\.0\.ffn_xx\.weight'"),
    ],
)
def test_planted_faults_are_named(tmp_path: Path, fault: str, words: str) -> None:
    target = tmp_path / "model"
    target.mkdir()
    with pytest.raises(ModelError, match=words) as caught:
        convert_gguf(planted(tmp_path, fault), target)
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_an_os_error(tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "m.gguf", arrays(random_llama()), CONFIG, TOKENIZER)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        convert_gguf(source, tmp_path / "model")


def test_the_real_model_answers(smollm2_dir: Path) -> None:
    """transformers loads our directory and the model knows a capital."""
    tokenizer: Any = AutoTokenizer.from_pretrained(smollm2_dir)
    model: Any = AutoModelForCausalLM.from_pretrained(smollm2_dir)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    ids = tokenizer(prompt + "The capital of France is", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = model(ids, logits_to_keep=1).logits[0, -1]
    assert tokenizer.decode(logits.argmax()) == " Paris"
    assert logits.softmax(-1).max() > 0.5
