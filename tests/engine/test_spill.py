"""A GGUF model that leaves memory and comes back from a mapped copy of its weights."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import engine.spill
from engine.model_config import ModelError, read_config
from engine.runner import ModelRunner
from engine.spill import spill
from tests.engine.runner_kit import last_logits, make_runner, tokens_of, write_checkpoint
from tests.engine.test_gguf_models import SHAPE, in_place, random_model, written


@pytest.fixture
def waves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where spills go in this test."""
    monkeypatch.setenv("MADANG_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "waves"


def gguf_folder(folder: Path, architecture: str = "gemma3", kind: str = "Q8_0") -> Path:
    is_gemma = architecture == "gemma3"
    model = random_model(architecture, "gemma3" if is_gemma else "default")
    more = {"attention__sliding_window": 50} if is_gemma else {}
    file = written(folder / "m.gguf", architecture, model, kind, **more)
    return in_place(folder / "m", file)


def spills(waves: Path) -> list[Path]:
    return sorted(waves.iterdir()) if waves.exists() else []


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_it_comes_back_with_the_same_bits_and_leaves_nothing(
    tmp_path: Path, waves: Path, architecture: str
) -> None:
    runner = make_runner(gguf_folder(tmp_path, architecture))
    tokens = tokens_of(1, 60, SHAPE["vocab_size"])
    before = last_logits(runner, tokens)
    assert spills(waves) == []
    for _ in range(3):
        runner.offload()
        runner.reload()
        assert torch.equal(last_logits(runner, tokens), before)
    (made,) = spills(waves)
    assert made.name.startswith(f"{os.getpid()}-")
    runner.close()
    assert spills(waves) == []


def test_without_room_it_is_read_from_its_own_file(
    tmp_path: Path, waves: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.spill, "ROOM", 10**12)
    runner = make_runner(gguf_folder(tmp_path))
    tokens = tokens_of(1, 60, SHAPE["vocab_size"])
    before = last_logits(runner, tokens)
    runner.offload()
    runner.reload()
    assert torch.equal(last_logits(runner, tokens), before)
    assert spills(waves) == []
    runner.close()


def test_a_home_that_cannot_be_written_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MADANG_HOME", str(tmp_path / "file"))
    folder = gguf_folder(tmp_path)
    assert spill(folder, read_config(folder)) is None
    assert "swaps take longer" in caplog.text


def test_safetensors_are_mapped_where_they_lie(tmp_path: Path, waves: Path) -> None:
    runner = make_runner(write_checkpoint(tmp_path / "a"))
    runner.offload()
    runner.reload()
    assert spills(waves) == []
    runner.close()


def test_what_dead_processes_left_is_swept(tmp_path: Path, waves: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    left, living = waves / f"{done.stdout.strip()}-abc", waves / f"{os.getppid()}-abc"
    for folder in (left, living):
        folder.mkdir(parents=True)
    source = gguf_folder(tmp_path)
    made = spill(source, read_config(source))
    assert made is not None
    assert spills(waves) == sorted((living, made))


def test_a_file_that_changed_is_refused_though_a_spill_is_there(
    tmp_path: Path, waves: Path
) -> None:
    folder = gguf_folder(tmp_path)
    runner: ModelRunner = make_runner(folder)
    runner.offload()
    os.utime(tmp_path / "m.gguf", ns=(1, 1))
    with pytest.raises(ModelError, match="has changed since it was loaded"):
        runner.reload()
    runner.close()
