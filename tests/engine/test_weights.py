"""Weights are checked before they are used; every planted fault is named in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.model_config import ModelError, expected_shapes, read_config
from engine.weights import load_tensors
from tests.engine.model_kit import llama_config, write_json

Tensors = dict[str, torch.Tensor]
INDEX = "model.safetensors.index.json"


def tensors_for(folder: Path) -> Tensors:
    generator = torch.Generator().manual_seed(7)
    shapes = expected_shapes(read_config(folder))
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_json(tmp_path / "config.json", llama_config())
    return tmp_path


def write(folder: Path, tensors: Tensors, shards: int = 1) -> None:
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return
    where: dict[str, str] = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {key: value for i, (key, value) in enumerate(tensors.items()) if i % shards == shard}
        save_file(part, folder / name)
        where |= dict.fromkeys(part, name)
    write_json(folder / INDEX, {"weight_map": where})


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_reads_back_every_weight(folder: Path, shards: int, dtype: torch.dtype) -> None:
    tensors = {name: value.to(dtype) for name, value in tensors_for(folder).items()}
    write(folder, tensors, shards)
    weights = load_tensors(folder)
    assert set(weights) == set(tensors)
    assert all(torch.equal(weights[name], tensors[name]) for name in tensors)
    kept = weights["model.norm.weight"]
    weights.close()
    assert torch.equal(kept, tensors["model.norm.weight"])


def test_a_stored_head_that_repeats_tied_embeddings_is_left_out(folder: Path) -> None:
    tensors = tensors_for(folder)
    write(folder, tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()})
    assert "lm_head.weight" not in load_tensors(folder)


def test_a_stored_head_that_differs_is_used(folder: Path) -> None:
    tensors = tensors_for(folder)
    head = tensors["model.embed_tokens.weight"] + 1
    write(folder, tensors | {"lm_head.weight": head})
    assert torch.equal(load_tensors(folder)["lm_head.weight"], head)


def test_an_untied_model_must_have_its_head(folder: Path) -> None:
    write(folder, tensors_for(folder))
    write_json(folder / "config.json", llama_config(tie_word_embeddings=False))
    with pytest.raises(ModelError, match=r"weight lm_head\.weight missing"):
        load_tensors(folder)


def test_computed_buffers_of_old_checkpoints_are_ignored(folder: Path) -> None:
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}
    write(folder, tensors_for(folder) | extra)
    assert set(load_tensors(folder)) == set(expected_shapes(read_config(folder)))


def without(name: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("model.layers.1.mlp.up_proj.weight"), r"layers\.1\.mlp\.up_proj\.weight missing"),
        (lambda t: t | {"model.layers.2.mlp.up_proj.weight": torch.ones(2)},
         r"layers\.2\.mlp\.up_proj\.weight left over"),
        (lambda t: t | {"model.norm.weight": torch.ones(15)},
         r"model\.norm\.weight has shape \[15\], config\.json asks for \[16\]"),
        (lambda t: t | {"model.norm.weight": torch.ones(16, dtype=torch.int8)},
         r"model\.norm\.weight is stored as I8"),
        (lambda t: {}, "missing"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shards", [1, 2])
def test_planted_faults_are_named(
    folder: Path, change: Callable[[Tensors], Tensors], words: str, shards: int
) -> None:
    tensors = change(tensors_for(folder))
    write(folder, tensors, shards if tensors else 1)
    with pytest.raises(ModelError, match=words) as caught:
        load_tensors(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0, 5, 200, -8])
def test_truncated_files_are_named(folder: Path, keep: int) -> None:
    write(folder, tensors_for(folder), 2)
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"model-00002-of-00002.*truncated or damaged"):
        load_tensors(folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    write(folder, tensors_for(folder), 2)
    (folder / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model-00001-of-00002.*missing"):
        load_tensors(folder)


def test_an_index_that_lies_is_refused(folder: Path) -> None:
    write(folder, tensors_for(folder), 2)
    names = dict.fromkeys(tensors_for(folder), "model-00001-of-00002.safetensors")
    write_json(folder / INDEX, {"weight_map": names})
    with pytest.raises(ModelError, match="not in the shard the index names"):
        load_tensors(folder)
    write_json(folder / INDEX, {"weight_map": dict.fromkeys(names, "../evil.safetensors")})
    with pytest.raises(ModelError, match="not a file of its directory"):
        load_tensors(folder)
    write_json(folder / INDEX, {"weight_map": dict.fromkeys(names, 3)})
    with pytest.raises(ModelError, match="names something that is no file"):
        load_tensors(folder)


def test_pickled_weights_are_refused(folder: Path) -> None:
    torch.save(tensors_for(folder), folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin.*never loaded.*save_pretrained"):
        load_tensors(folder)


def test_no_weights_at_all(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        load_tensors(folder)
