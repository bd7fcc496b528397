"""Models are used where they lie: directories, GGUF files, Ollama's store, the hub's cache."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import hub, shelf
from engine.convert import convert_gguf
from engine.gguf_file import GgufFile
from engine.hub import HubError
from engine.model_config import ModelError, expected_shapes, read_config
from engine.tokenizer import Tokenizer
from engine.weights import load_tensors
from engine.wheel import sha256_of
from tests.engine.gguf_kit import write_gguf
from tests.engine.model_kit import byte_level_tokenizer, chatml_dir, llama_config, write_json

TOKENIZER = byte_level_tokenizer()
CONFIG = llama_config(vocab_size=TOKENIZER.get_vocab_size(), dtype="bfloat16")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADANG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OLLAMA_MODELS", raising=False)


def model_dir(folder: Path, **changes: Any) -> Path:
    """A Hugging Face style directory of random weights."""
    chatml_dir(folder)
    write_json(folder / "config.json", {**CONFIG, **changes})
    shapes = expected_shapes(read_config(folder))
    tensors = {name: torch.randn(shape).bfloat16() for name, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def gguf_file(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path.parent / "shape.json", CONFIG)
    (path.parent / "config.json").write_text(json.dumps(CONFIG))
    shapes = expected_shapes(read_config(path.parent))
    (path.parent / "config.json").unlink()
    (path.parent / "shape.json").unlink()
    rng = np.random.default_rng(seed)
    tensors = {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    return write_gguf(path, tensors, CONFIG, TOKENIZER, "F16")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_directory_is_used_in_place(tmp_path: Path) -> None:
    folder = model_dir(tmp_path / "My Model")
    before = contents(folder)
    info = hub.add(str(folder))
    assert (info.name, info.path, info.precision) == ("my-model", folder, "bf16")
    assert info.compute_precision == "float32"
    config = read_config(folder)
    assert info.parameters == config.num_parameters
    assert info.weights_bytes == 4 * (config.num_parameters + config.vocab_size * 16)
    assert info.kv_bytes_per_token == 2 * 2 * 2 * 4 * 4  # K and V, layers, kv heads, size, bytes
    assert hub.path("my-model") == hub.ensure("my-model") == folder
    assert hub.precision("my-model") == hub.precision(str(folder)) == "bf16"
    assert [p.name for p in (hub.models_dir() / "my-model").iterdir()] == ["madang.json"]
    assert "my-model" in [model.name for model in hub.list_models()]
    assert hub.add(str(folder)) == info  # again
    hub.remove("my-model")
    assert contents(folder) == before
    assert not shelf.has("my-model")


def test_a_gguf_file_is_used_in_place(tmp_path: Path) -> None:
    file = gguf_file(tmp_path / "files" / "Tiny-F16.gguf")
    info = hub.add(str(file), "tiny")
    assert (info.name, info.precision, info.licence) == ("tiny", "f16", "unknown")
    folder = hub.path("tiny")
    assert (folder / "model.gguf").resolve() == file
    (tmp_path / "whole").mkdir()
    convert_gguf(file, tmp_path / "whole")
    expected = load_file(tmp_path / "whole" / "model.safetensors")
    ours = load_tensors(folder)
    assert set(ours) == set(expected)
    assert all(torch.equal(ours[name], expected[name]) for name in expected)
    kept = ours["model.norm.weight"]
    ours.close()
    assert torch.equal(kept, expected["model.norm.weight"])
    assert Tokenizer.load(folder).encode("e2e4")
    hub.remove("tiny")
    assert file.is_file()


def test_a_gguf_file_may_be_named_by_its_path(tmp_path: Path) -> None:
    file = gguf_file(tmp_path / "m.gguf")
    folder = hub.path(str(file))
    made = (folder / "config.json").stat().st_mtime_ns
    assert hub.ensure(str(file)) == folder
    assert (folder / "config.json").stat().st_mtime_ns == made
    assert hub.precision(str(file)) == "f16"
    assert [m.name for m in hub.list_models()] == ["gemma3-270m", "smollm2-135m"]
    first = load_tensors(folder)["model.norm.weight"]
    gguf_file(file, seed=1)
    os.utime(file, ns=(1, 1))
    again = hub.path(str(file))
    assert again != folder
    assert not folder.exists()
    assert not torch.equal(load_tensors(again)["model.norm.weight"], first)


def test_a_file_that_went_away_is_told(tmp_path: Path) -> None:
    file = gguf_file(tmp_path / "m.gguf")
    hub.add(str(file))
    file.unlink()
    with pytest.raises(HubError, match=r"m\.gguf is missing.*add it again, or run `arena model re"):
        hub.path("m")
    fault = hub.show("m").fault
    assert fault is not None
    assert "m.gguf is missing" in fault
    assert "m" in [model.name for model in hub.list_models()]


def test_names(tmp_path: Path) -> None:
    first, second = model_dir(tmp_path / "a"), model_dir(tmp_path / "b")
    hub.add(str(first), "One")
    with pytest.raises(HubError, match=r"one is the name of another model already.*--name"):
        hub.add(str(second), "one")
    with pytest.raises(HubError, match="smollm2-135m is the name of a known model"):
        hub.add(str(first), "smollm2-135m")
    for name in ("..", "///", "."):
        with pytest.raises(HubError, match="no name for a model"):
            hub.add(str(first), name)
    with pytest.raises(HubError, match="did you mean one"):
        hub.path("onne")
    with pytest.raises(HubError, match="zwei is not here"):
        hub.remove("zwei")


Fault = Callable[[Path], None]


def lacks_weight(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, folder / "model.safetensors")


def truncated(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-7])


def whole_numbers(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"] = torch.ones(16, dtype=torch.int8)
    save_file(tensors, folder / "model.safetensors")


def more_layers(folder: Path) -> None:
    write_json(folder / "config.json", {**CONFIG, "num_hidden_layers": 3})


def other_rope(folder: Path) -> None:
    write_json(folder / "config.json", {**CONFIG, "rope_scaling": {"rope_type": "longrope"}})


def other_architecture(folder: Path) -> None:
    write_json(folder / "config.json", {**CONFIG, "architectures": ["MambaForCausalLM"]})


def short_tokenizer(folder: Path) -> None:
    chatml_dir(folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.embed_tokens.weight"] = torch.ones(600, 16)
    save_file(tensors, folder / "model.safetensors")
    write_json(folder / "config.json", {**CONFIG, "vocab_size": 600})


def bad_template(folder: Path) -> None:
    chatml_dir(folder, chat_template="{% for %}")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lacks_weight, r"model\.norm\.weight missing from the weights.*vllm serve .*endpoint:"),
        (truncated, "truncated or damaged"),
        (whole_numbers, "stored as I8"),
        (more_layers, r"layers\.2\..* missing.*vllm serve"),
        (other_rope, "unknown rope type 'longrope'.*vllm serve"),
        (other_architecture, "unknown architecture 'MambaForCausalLM'.*vllm serve"),
        (short_tokenizer, r"the tokenizer has 41\d tokens, the model's embedding 600"),
        (bad_template, "chat template"),
    ],
)
def test_a_faulty_model_is_not_added(tmp_path: Path, fault: Fault, words: str) -> None:
    folder = model_dir(tmp_path / "m")
    fault(folder)
    with pytest.raises((HubError, ModelError), match=words) as caught:
        hub.add(str(folder))
    assert "\n" not in str(caught.value)
    left = [p.name for p in hub.models_dir().iterdir() if not p.name.endswith(".lock")]
    assert left == []


def test_a_faulty_gguf_file_is_named_by_its_own_path(tmp_path: Path) -> None:
    file = gguf_file(tmp_path / "m.gguf")
    data = file.read_bytes().replace(b"output_norm.weight", b"blk.0.ffn_up.biasX".ljust(18))
    file.write_bytes(data)
    with pytest.raises(ModelError, match=r"m\.gguf: no place for the weight") as caught:
        hub.add(str(file))
    assert f"llama-server -m {file}" in str(caught.value)


def test_a_gguf_file_that_contradicts_itself_is_named_by_its_own_path(tmp_path: Path) -> None:
    """Fewer layers than its metadata say."""
    file = gguf_file(tmp_path / "m.gguf")
    key = b"llama.block_count" + (4).to_bytes(4, "little")
    assert key + b"\2" in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(key + b"\2", key + b"\3"))
    with pytest.raises(ModelError, match=rf"{file}: weight .*layers\.2.* missing") as caught:
        hub.add(str(file))
    assert ".pull-" not in str(caught.value)


def test_the_recipe_names_a_player_that_can_be_read(tmp_path: Path) -> None:
    from agents.spec import EndpointSpec, parse_spec

    folder = model_dir(tmp_path / "m")
    other_architecture(folder)
    with pytest.raises(ModelError) as caught:
        hub.add(str(folder))
    player = str(caught.value).rpartition("the player '")[2].rstrip("'")
    spec = parse_spec(player)
    assert isinstance(spec, EndpointSpec)
    assert (spec.model, spec.base_url) == (str(folder), "http://localhost:8000/v1")


# Ollama


def ollama_store(root: Path, name: str = "library/tiny/latest") -> Path:
    """As Ollama lays it out: a manifest a tag, blobs by their hash."""
    file = gguf_file(root / "made.gguf")
    digest = sha256_of(file)
    (root / "blobs").mkdir()
    shutil.move(file, root / "blobs" / f"sha256-{digest}")
    manifest = root / "manifests" / "registry.ollama.ai" / name
    manifest.parent.mkdir(parents=True)
    size = (root / "blobs" / f"sha256-{digest}").stat().st_size
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:0", "size": 1},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}",
         "size": size},
    ]  # fmt: skip
    write_json(manifest, {"schemaVersion": 2, "layers": layers})
    return root


@pytest.mark.parametrize(
    ("place", "asked", "name"),
    [
        ("library/tiny/latest", "tiny", "tiny"),
        ("library/tiny/1b-q4", "tiny:1b-q4", "tiny-1b-q4"),
        ("somebody/tiny/latest", "somebody/tiny", "tiny"),
    ],
)
def test_ollama_models_are_found_and_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, asked: str, name: str
) -> None:
    store = ollama_store(tmp_path / ".ollama" / "models", place)
    before = contents(store)
    for path in (store, *store.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    info = hub.add(f"ollama:{asked}")
    assert (info.name, info.source) == (name, f"Ollama {asked}")
    assert load_tensors(hub.path(name))["model.norm.weight"].shape == (16,)
    assert contents(store) == before
    moved = tmp_path / "moved"
    shutil.copytree(store, moved)
    monkeypatch.setenv("OLLAMA_MODELS", str(moved))
    again = hub.add(f"ollama:{asked}")
    assert (hub.path(name) / "model.gguf").resolve().is_relative_to(moved)
    assert again.sha256 == info.sha256


def test_faults_of_an_ollama_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str, words: str) -> None:
        with pytest.raises(HubError, match=words) as caught:
            hub.add(f"ollama:{name}")
        assert "\n" not in str(caught.value)

    refused("tiny", "no Ollama models in .*set OLLAMA_MODELS")
    store = ollama_store(tmp_path / "store")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    refused("tiny", "holds no Ollama models")
    monkeypatch.setenv("OLLAMA_MODELS", str(store))
    refused("huge:70b", r"no model 'huge:70b' .*there: tiny:latest.*`ollama pull huge:70b`")
    refused("../../etc/passwd", "no name of Ollama's")
    blob = next((store / "blobs").iterdir())
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refused("tiny", "is not what its name says")
    blob.write_bytes(whole[:-1])
    refused("tiny", "missing or cut short")
    manifest = next((store / "manifests").rglob("latest"))
    manifest.write_text('{"layers": 3}')
    refused("tiny", "damaged: `ollama pull tiny`")
    write_json(manifest, {"layers": []})
    refused("tiny", "is not one GGUF file")


# Hugging Face's cache


def cached(cache: Path, repository: str = "org/tiny", commit: str = "c0ffee" * 6) -> Path:
    """A snapshot as huggingface_hub lays it out: links to blobs, and the name of a revision."""
    root = cache / ("models--" + repository.replace("/", "--"))
    made = model_dir(root / "made")
    snapshot = root / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (root / "blobs").mkdir()
    for i, file in enumerate(sorted(made.iterdir())):
        shutil.move(file, root / "blobs" / f"{i}")
        (snapshot / file.name).symlink_to(Path("../../blobs") / f"{i}")
    made.rmdir()
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(commit)
    return snapshot


def test_the_hubs_cache_is_used_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    snapshot = cached(tmp_path / "hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    info = hub.add("hf:org/tiny", quiet=True)
    assert (info.name, info.path) == ("tiny", snapshot)
    assert info.source == f"Hugging Face org/tiny at {('c0ffee' * 6)[:12]}"
    assert load_tensors(hub.path("tiny"))["model.norm.weight"].dtype is torch.bfloat16


OFFLINE = """
import sys
from engine import hub
try:
    hub.add(sys.argv[1], quiet=True)
except hub.NoNetwork as error:
    print(error)
"""


def test_no_network_is_one_sentence(tmp_path: Path) -> None:
    """With nothing, and with half a snapshot in the cache."""
    snapshot = cached(tmp_path / "hub", "org/half")
    (snapshot / "model.safetensors").unlink()
    environment = {
        **os.environ,
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HUB_CACHE": str(tmp_path / "hub"),
        "NO_PROXY": "127.0.0.1",
    }
    for name, words in (("hf:org/none", "is not in the"), ("hf:org/half", "has no tokenizer.json")):
        ran = subprocess.run(
            [sys.executable, "-c", OFFLINE, name],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert ran.stdout.startswith(f"{name} {words}")
        assert "no network" in ran.stdout
        assert ran.stdout.count("\n") == 1
    with pytest.raises(HubError, match="is no id"):
        hub.add("hf:one-word")


def test_a_path_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(HubError, match="does not exist: give a path, hf:ID or ollama:NAME"):
        hub.add(str(tmp_path / "nowhere"))
    with pytest.raises(HubError, match=r"has no config\.json"):
        hub.add(str(tmp_path))
    file = gguf_file(tmp_path / "x.gguf")
    with pytest.raises(HubError, match=rf"name one file of it, such as {file}"):
        hub.add(str(tmp_path))
    (tmp_path / "notes.txt").write_text("hello, world")
    with pytest.raises(ModelError, match=r"notes\.txt is no GGUF file"):
        hub.add(str(tmp_path / "notes.txt"))
    assert GgufFile(file).architecture == "llama"
