"""Tokenizers rebuilt from GGUF metadata against transformers' own way of rebuilding them."""

from pathlib import Path
from typing import Any

import gguf
import pytest

from engine.convert import write_texts
from engine.gguf_file import GgufFile
from engine.model_config import ModelError
from engine.tokenizer import Tokenizer
from tests.engine.gguf_kit import add_tokenizer
from tests.engine.model_kit import CORPUS, byte_level_tokenizer

TEXTS = (
    *CORPUS,
    "Hello world",
    " a  b   c    d",
    "lines\n\n\n and\ttabs\t\t",
    "don't WE'LL 1234567 1,000.50",
    "한국어 楚 漢 🙂🏁 \u0000",
    "<b>bold</b> def f(x):\n    return x**2\n",
    "aaaaaaaaaaaaaaaa e2e4e7e5",
    "",
)
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def header(path: Path, architecture: str) -> Any:
    """A GGUF writer with the metadata of a small model, no tensors."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(16)
    writer.add_feed_forward_length(16)
    writer.add_head_count(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_sliding_window(16)
    return writer


def finished(writer: Any, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def byte_level(path: Path, pre: str) -> Path:
    writer = header(path, "qwen2")
    add_tokenizer(writer, byte_level_tokenizer())
    writer.kv_data[0]["tokenizer.ggml.pre"].value = pre
    return finished(writer, path)


def sentencepiece(path: Path, architecture: str, *, spaces: int = 0) -> Path:
    """Pieces of a few merges by falling score; `spaces`: longest user-defined run of spaces."""
    letters = dict.fromkeys("▁abcdefghilmnoprstuvwxy0123456789.,:/한국어")
    merged = ["▁t", "he", "▁the", "in", "▁a", "an", "e2", "e4", "e2e4", "▁m", "ov", "▁move", "aa",
              "aaa", "aaaa", "ma", "or", "▁w", "▁wor", "ld", "▁world"]  # fmt: skip
    runs = [" " * count for count in range(2, spaces + 1)]
    tokens: list[tuple[str, float, int]] = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL),
        ("</s>", 0, CONTROL), ("<end_of_turn>", 0, CONTROL), ("\n", 0, USER_DEFINED)]  # fmt: skip
    tokens += [(run, -1000.0, USER_DEFINED) for run in runs]
    tokens += [(f"<0x{byte:02X}>", 0, BYTE) for byte in range(256)]
    pieces = [*merged, *letters]
    tokens += [(piece, -float(i), NORMAL) for i, piece in enumerate(pieces)]
    writer = header(path, architecture)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([text for text, _, _ in tokens])
    writer.add_token_scores([float(score) for _, score, _ in tokens])
    writer.add_token_types([kind for _, _, kind in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if architecture == "gemma3":
        writer.add_add_space_prefix(False)
    return finished(writer, path)


def made(folder: Path, file: Path) -> Path:
    folder.mkdir()
    write_texts(GgufFile(file), folder)
    return folder


def oracle(file: Path) -> Any:
    """transformers' tokenizer of the same metadata."""
    from transformers.integrations.gguf.gguf_tokenizer_mapping import (
        convert_gguf_tokenizer,
        get_gguf_tokenizer,
    )

    architecture, values, _ = get_gguf_tokenizer(str(file))
    return convert_gguf_tokenizer(architecture, values)[0]


@pytest.mark.parametrize("pre", ["qwen2", "llama-bpe", "deepseek-r1-qwen"])
def test_byte_level_splits(tmp_path: Path, pre: str) -> None:
    file = byte_level(tmp_path / "m.gguf", pre)
    ours, theirs = Tokenizer.load(made(tmp_path / "m", file)), oracle(file)
    for text in TEXTS:
        assert list(ours.encode(text)) == theirs.encode(text, add_special_tokens=False).ids, text
        assert ours.decode(ours.encode(text)) == text


def test_qwen_composes_hangul(tmp_path: Path) -> None:
    """As its own tokenizer.json does: decomposed syllables are the composed ones."""
    ours = Tokenizer.load(made(tmp_path / "m", byte_level(tmp_path / "m.gguf", "qwen2")))
    assert ours.encode("\u1112\u1161\u11ab") == ours.encode("한")


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_sentencepiece(tmp_path: Path, architecture: str) -> None:
    """Llama's space before a text is one with a space that is there, as in transformers."""
    file = sentencepiece(tmp_path / "m.gguf", architecture, spaces=5 * (architecture == "gemma3"))
    ours, theirs = Tokenizer.load(made(tmp_path / "m", file)), oracle(file)
    for text in TEXTS:
        assert list(ours.encode(text)) == theirs.encode(text, add_special_tokens=False).ids, text
        whole = ours.decode(ours.encode(text))
        assert whole == (text[1:] if architecture == "llama" and text[:1] == " " else text)
        stream = ours.stream()
        pieces = [stream.push(token) for token in ours.encode(text)]
        assert "".join(pieces) + stream.finish() == whole
    assert ours.bos_token_id == 1
    assert ours.eos_token_ids == (2, 3)  # what ends a turn as well
    assert ours.encode_prompt(ours.render([{"role": "user", "content": "e2e4"}]))[:1] == (1,)


def test_a_run_of_spaces_is_cut_at_the_longest_token(tmp_path: Path) -> None:
    """As llama.cpp cuts it; five of seven spaces, then two."""
    file = sentencepiece(tmp_path / "m.gguf", "gemma3", spaces=5)
    ours = Tokenizer.load(made(tmp_path / "m", file))
    assert [ours.decode([token]) for token in ours.encode("a" + " " * 7)] == ["a", " " * 5, "  "]


def test_lists_of_unequal_length_are_named(tmp_path: Path) -> None:
    writer = header(tmp_path / "m.gguf", "qwen2")
    add_tokenizer(writer, byte_level_tokenizer())
    writer.kv_data[0]["tokenizer.ggml.token_type"].value.pop()
    file = finished(writer, tmp_path / "m.gguf")
    with pytest.raises(ModelError, match=r"m\.gguf: 418 tokens, but 417 token types"):
        made(tmp_path / "m", file)
