"""Reads the weights of a model directory: safetensors, or one model.gguf → tensors by name.

Weights are read lazily from mapped files, one tensor at a time, after every name, shape and dtype
was checked against the configuration. Of a vision model the text half is taken. Pickled weights
(`.bin`, `.pt`) are refused. Torch is imported on first use only.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .gguf_file import GgufFile
from .gguf_weights import GgufWeights
from .model_config import ModelConfig, ModelError, expected_shapes, read_config, read_json
from .recipe import elsewhere

if TYPE_CHECKING:
    import torch

__all__ = ["GGUF", "ModelConfig", "ModelError", "Weights", "load_tensors", "read_config"]

GGUF = "model.gguf"  # in a directory beside config.json: its weights, often a link
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
DTYPES = ("F32", "F16", "BF16")  # as safetensors names them
TEXT_HALF = ("model.language_model.", "language_model.model.", "language_model.")
SEEING = ("vision_tower.", "multi_modal_projector.")


class Weights(Mapping[str, "torch.Tensor"]):
    """The checked weights of one directory, each read when asked for, in its stored dtype.

    `close()` lets go of the files; tensors already read stay valid.
    """

    def __init__(self, shards: Mapping[str, Path]) -> None:
        self._shards = dict(shards)  # weight name → the file that holds it
        self._stored: dict[str, str] = {}  # weight name → its name in the file, where another
        self._files: dict[Path, Any] = {}
        self._stack = ExitStack()
        try:
            for path in sorted(set(self._shards.values())):
                self._files[path] = self._stack.enter_context(_open(path))
        except BaseException:
            self._stack.close()
            raise

    def __getitem__(self, name: str) -> "torch.Tensor":
        file = self._files[self._shards[name]]
        tensor: torch.Tensor = file.get_tensor(self._stored.get(name, name))
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._shards)

    def __len__(self) -> int:
        return len(self._shards)

    def layout(self, name: str) -> tuple[str, tuple[int, ...]]:
        """The stored dtype (safetensors' name) and shape, without reading the weight."""
        view = self._files[self._shards[name]].get_slice(self._stored.get(name, name))
        return str(view.get_dtype()), tuple(view.get_shape())

    def drop(self, name: str) -> None:
        """Hide a weight that the model does not use."""
        del self._shards[name]

    def rename(self, name: str, to: str) -> None:
        """Give a weight another name than its file does."""
        self._shards[to] = self._shards.pop(name)
        self._stored[to] = name

    def misplaced(self) -> list[str]:
        """Weights that are not in the shard where the index puts them."""
        held = {path: set(file.keys()) for path, file in self._files.items()}
        return sorted(
            name
            for name, path in self._shards.items()
            if self._stored.get(name, name) not in held[path]
        )

    def close(self) -> None:
        self._files.clear()
        self._stack.close()


def _open(path: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(path, framework="pt")
    except FileNotFoundError:
        raise ModelError(f"weight file {path} is missing; fetch the model again") from None
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"weight file {path} is truncated or damaged ({error}); fetch the model again"
        ) from None


Checked = Weights | GgufWeights


def load_tensors(model_dir: Path | str, config: ModelConfig | None = None) -> Checked:
    """The weights of a directory by Hugging Face name, checked against its configuration.

    The head is `weights.get("lm_head.weight")`, or the embedding where that is absent: a stored
    head that only repeats tied embeddings is left out, one that differs is kept and used (as
    transformers does). Raises ModelError: no weights, truncated or missing shards, a missing or
    left-over weight, a wrong dtype or shape.
    """
    folder = Path(model_dir)
    config = config or read_config(folder)
    weights = _opened(folder)
    try:
        _check_names(folder, weights, expected_shapes(config))
        _check_layouts(folder, weights, expected_shapes(config))
        _settle_head(weights, config)
    except BaseException:
        weights.close()
        raise
    return weights


def holds_all_shards(folder: Path) -> bool:
    """Whether the safetensors files that a directory names are all there; none is opened."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return (folder / "model.safetensors").exists()
    shards = set((read_json(index).get("weight_map") or {}).values())
    return bool(shards) and all((folder / str(shard)).exists() for shard in shards)


def _opened(folder: Path) -> Checked:
    if (folder / GGUF).exists() or (folder / GGUF).is_symlink():
        file = GgufFile((folder / GGUF).resolve())
        try:
            return GgufWeights(file)
        except BaseException:
            file.close()
            raise
    weights = Weights(_shard_map(folder))
    if any(name.startswith(TEXT_HALF) for name in weights):
        _take_text_half(weights)
    return weights


def _take_text_half(weights: Weights) -> None:
    """Gemma 3 with eyes: both ways in which transformers has named its parts."""
    for name in list(weights):
        prefix = next((p for p in TEXT_HALF if name.startswith(p)), None)
        if name.removeprefix("model.").startswith(SEEING):
            weights.drop(name)
        elif prefix is not None:
            rest = name.removeprefix(prefix)
            weights.rename(name, rest if rest == HEAD else f"model.{rest}")


def _shard_map(folder: Path) -> dict[str, Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = read_json(index).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise ModelError(f"{index} has no weight_map")
        if not all(isinstance(shard, str) for shard in names.values()):
            raise ModelError(f"{index}: its weight_map names something that is no file")
        for shard in set(names.values()):
            if Path(shard).name != shard:
                raise ModelError(f"{index} names {shard!r}, which is not a file of its directory")
        return {name: folder / shard for name, shard in names.items()}
    single = folder / "model.safetensors"
    if not single.exists():
        raise ModelError(_no_weights(folder))
    with _open(single) as file:
        return dict.fromkeys(file.keys(), single)


def _no_weights(folder: Path) -> str:
    pickled = sorted(p.name for p in folder.glob("*") if p.suffix in (".bin", ".pt", ".pth"))
    if pickled:
        return (
            f"{folder} holds pickled weights only ({pickled[0]}), which are never loaded: "
            "convert them to safetensors where the model was made, for example with "
            "transformers' save_pretrained, or fetch a repository that has model.safetensors"
        )
    return f"{folder} has no model.safetensors and no model.safetensors.index.json"


def _check_names(folder: Path, weights: Checked, expected: Mapping[str, tuple[int, ...]]) -> None:
    for name in list(weights):
        if name.endswith("rotary_emb.inv_freq"):  # old checkpoints store what is computed
            weights.drop(name)
    if missing := sorted(set(expected) - set(weights)):
        raise ModelError(
            f"{folder}: {_listing(missing)} missing from the weights; fetch the model again, or "
            + elsewhere(_source(folder))
        )
    if left_over := sorted(set(weights) - set(expected) - {HEAD}):
        raise ModelError(
            f"{folder}: {_listing(left_over)} left over, config.json has no place for it; "
            + elsewhere(_source(folder))
        )
    if misplaced := weights.misplaced():
        raise ModelError(f"{folder}: {_listing(misplaced)} not in the shard the index names")


def _source(folder: Path) -> Path:
    """What another program would be given to run."""
    return (folder / GGUF).resolve() if (folder / GGUF).exists() else folder


def _listing(names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"weight {names[0]}{more}"


def _check_layouts(folder: Path, weights: Checked, expected: Mapping[str, tuple[int, ...]]) -> None:
    shapes = {HEAD: expected[EMBEDDING], **expected}
    for name in weights:
        dtype, shape = weights.layout(name)
        if dtype not in DTYPES:
            raise ModelError(
                f"{folder}: weight {name} is stored as {dtype}, not as {' or '.join(DTYPES)}"
            )
        if shape != shapes[name]:
            raise ModelError(
                f"{folder}: weight {name} has shape {list(shape)}, "
                f"config.json asks for {list(shapes[name])}"
            )


def _settle_head(weights: Checked, config: ModelConfig) -> None:
    """Drop a stored head that repeats the tied embeddings."""
    import torch

    if (
        config.tie_word_embeddings
        and HEAD in weights
        and torch.equal(weights[HEAD], weights[EMBEDDING])
    ):
        weights.drop(HEAD)
