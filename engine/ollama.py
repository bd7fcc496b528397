"""Finds a model in Ollama's store, which is only read: name → manifest → the blob of its GGUF file.

The store is `$OLLAMA_MODELS`, else `~/.ollama/models`, else that of the service's own user.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from .model_types import ModelError, read_json
from .wheel import HubError

MODEL_LAYER = "application/vnd.ollama.image.model"
SERVICE = Path("/usr/share/ollama/.ollama/models")
DEFAULT_HOST, DEFAULT_OWNER, DEFAULT_TAG = "registry.ollama.ai", "library", "latest"


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """`name` as Ollama lists it; `sha256` of the file, which is its name there."""

    name: str
    file: Path
    sha256: str


def find(name: str) -> OllamaModel:
    """The model of that name (`qwen3`, `qwen3:0.6b`, `owner/model:tag`, `hf.co/owner/model:tag`).

    Raises HubError: no store, no such model, a model that is not one GGUF file, a blob cut short.
    """
    store = _store()
    path = _manifest_path(store, name)
    if not path.is_file():
        others = ", ".join(names(store)[:8]) or "none"
        raise HubError(
            f"Ollama has no model {name!r} in {store} (there: {others}); `ollama pull {name}`"
        )
    try:
        layers = [
            layer for layer in read_json(path)["layers"] if str(layer["mediaType"]) == MODEL_LAYER
        ]
        digests = [(str(layer["digest"]), int(layer["size"])) for layer in layers]
    except (ModelError, KeyError, TypeError, ValueError):
        raise HubError(f"{path} is damaged: `ollama pull {name}`") from None
    if len(digests) != 1 or not digests[0][0].startswith("sha256:"):
        raise HubError(f"Ollama's {name} is not one GGUF file: pull another build of it")
    digest, size = digests[0][0].removeprefix("sha256:"), digests[0][1]
    blob = store / "blobs" / f"sha256-{digest}"
    if not blob.is_file() or blob.stat().st_size != size:
        raise HubError(f"{blob} is missing or cut short: `ollama pull {name}`")
    return OllamaModel(name, blob, digest)


def names(store: Path) -> list[str]:
    """What is in a store, as Ollama would write it."""
    found = []
    for path in sorted((store / "manifests").glob("*/*/*/*")):
        host, owner, model, tag = path.parts[-4:]
        prefix = "" if host == DEFAULT_HOST else f"{host}/"
        prefix += "" if not prefix and owner == DEFAULT_OWNER else f"{owner}/"
        found.append(f"{prefix}{model}:{tag}")
    return found


def _store() -> Path:
    if named := os.environ.get("OLLAMA_MODELS"):
        store = Path(named).expanduser()
        if not (store / "manifests").is_dir():
            raise HubError(f"OLLAMA_MODELS is {named}, which holds no Ollama models")
        return store
    places = (Path("~/.ollama/models").expanduser(), SERVICE)
    for store in places:
        if (store / "manifests").is_dir():
            return store
    raise HubError(
        f"no Ollama models in {' or '.join(map(str, places))}: set OLLAMA_MODELS to where they are"
    )


def _manifest_path(store: Path, name: str) -> Path:
    model, _, tag = name.partition(":") if "/" not in name.rpartition(":")[2] else (name, "", "")
    parts = model.split("/")
    if len(parts) > 3 or any(part in ("", ".", "..") for part in (*parts, tag or DEFAULT_TAG)):
        raise HubError(f"{name!r} is no name of Ollama's: write model:tag or owner/model:tag")
    defaults = (DEFAULT_HOST, DEFAULT_OWNER)[: 3 - len(parts)]
    return store.joinpath("manifests", *defaults, *parts, tag or DEFAULT_TAG)
