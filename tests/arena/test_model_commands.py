"""`arena model add/list/show/remove` as a user types them."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from arena.cli import app
from engine.model_config import expected_shapes, read_config
from tests.engine.gguf_kit import write_gguf
from tests.engine.model_kit import byte_level_tokenizer, llama_config, write_json


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small GGUF file, and an empty home."""
    monkeypatch.setenv("MADANG_HOME", str(tmp_path / "home"))
    tokenizer = byte_level_tokenizer()
    shape = {"hidden_size": 64, "intermediate_size": 96}
    config = llama_config(vocab_size=tokenizer.get_vocab_size(), **shape)
    write_json(tmp_path / "config.json", config)
    rng = np.random.default_rng(0)
    shapes = expected_shapes(read_config(tmp_path))
    tensors = {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    return write_gguf(tmp_path / "Tiny.gguf", tensors, config, tokenizer, "Q8_0")


def arena(*words: str) -> str:
    result = CliRunner().invoke(app, ["model", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_add_list_show_remove(file: Path) -> None:
    said = arena("add", str(file))
    assert "tiny  0M  q8_0→fp32  0 MiB + 0.5 KiB a token" in said
    assert "llm:tiny:constrained" in said
    listed = json.loads(arena("list", "--json"))["models"]
    assert [model["name"] for model in listed] == ["gemma3-270m", "smollm2-135m", "tiny"]
    (tiny,) = [model for model in listed if model["name"] == "tiny"]
    assert tiny == json.loads(arena("show", "tiny", "--json"))
    assert tiny == json.loads(arena("add", str(file), "--json"))
    assert tiny["kv_bytes_per_token"] == 512
    assert tiny["fault"] is None
    assert "not here; arena model pull smollm2-135m" in arena("list")
    assert arena("path", "tiny").strip() == tiny["path"]
    file.unlink()
    assert "Tiny.gguf is missing" in arena("list")
    arena("remove", "tiny")
    assert "tiny" not in arena("list")
