"""Takes up a model that lies elsewhere, in place: a directory, a GGUF file, Ollama's or the hub's.

Nothing there is written or copied. A directory is only named in our manifest; of a GGUF file the
small files (config, tokenizer) are made once and its weights are a link. Everything is looked
through before the model counts as added: configuration, names, shapes and types of all weights,
tokenizer and template.
"""

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import hf_cache, ollama, shelf
from .convert import Written, write_texts
from .gguf_file import GgufFile
from .gguf_weights import precision_of
from .known import KNOWN
from .model_config import ModelError, read_config
from .shelf import Entry, ModelInfo
from .tokenizer import Tokenizer
from .weights import GGUF, load_tensors
from .wheel import HubError, Progress, disk_sentence, models_dir, sha256_of

SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
KEPT = (".json", ".safetensors", ".jinja")  # of a directory: their sizes are remembered


@dataclass(frozen=True, slots=True)
class _Found:
    """What a source turned out to be: a directory or a GGUF file."""

    path: Path
    name: str
    source: str
    sha256: str = ""
    licence: str = ""


def add(
    source: str,
    name: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    *,
    quiet: bool = False,
) -> ModelInfo:
    """Take up PATH, `hf:ID` or `ollama:NAME` under a name of its own (None: made from the source).

    The same source may be added again. Raises HubError, NoNetwork; ModelError as loading would.
    """
    tell = progress or (lambda _: None)
    try:
        found = _find(source, quiet)
        name = _checked_name(name or found.name)
        with shelf.lock(name, tell):
            if shelf.has(name) and (old := shelf.info(name)).source != found.source:
                raise HubError(
                    f"{name} is the name of another model already (from {old.source}): "
                    "choose one with --name"
                )
            with shelf.workplace(name) as work:
                _register(found, name, work / "model", tell)
                shelf.put(work / "model", name)
    except OSError as error:
        raise HubError(disk_sentence(name or source, error)) from None
    return shelf.info(name)


def remove(name: str) -> None:
    """Forget a model: its folder in the cache goes, files used in place stay. Raises HubError."""
    if not shelf.has(name):
        raise HubError(f"{name} is not here: `arena model list` shows what is")
    try:
        with shelf.lock(name, lambda _: None):
            shutil.rmtree(models_dir() / name)
    except OSError as error:
        raise HubError(disk_sentence(name, error)) from None


def adopt(file: Path) -> Path:
    """The hidden directory of a GGUF file that is named by its path, made on first use."""
    file = file.resolve()
    stat = file.stat()
    key = hashlib.sha256(f"{file}\n{stat.st_size}\n{stat.st_mtime_ns}".encode()).hexdigest()
    name = f".gguf-{key[:16]}"
    try:
        with shelf.lock(name, lambda _: None):
            if not shelf.has(name):
                with shelf.workplace(name) as work:
                    found = _Found(file, name, str(file))
                    _register(found, name, work / "model", lambda _: None, hashed=False)
                    shelf.put(work / "model", name)
                _forget_others(file, name)
    except OSError as error:
        raise HubError(disk_sentence(file.name, error)) from None
    return models_dir() / name


def _forget_others(file: Path, name: str) -> None:
    """Remove what was made of the GGUF file before it changed."""
    for folder in models_dir().glob(".gguf-*"):
        link = folder / GGUF
        if folder.name != name and link.is_symlink() and link.resolve() == file:
            shutil.rmtree(folder, ignore_errors=True)


def stored_precision(path: Path) -> str:
    """Of a model directory or a GGUF file, as players' names write it. Raises ModelError."""
    if path.is_dir() and not (path / GGUF).exists():
        dtype = read_config(path).dtype
        return SHORT.get(dtype, dtype)
    file = GgufFile(path / GGUF if path.is_dir() else path)
    try:
        return precision_of(file)
    finally:
        file.close()


def _find(source: str, quiet: bool) -> _Found:
    if source.startswith("ollama:"):
        model = ollama.find(source.removeprefix("ollama:"))
        name = model.name.rpartition("/")[2].replace(":", "-")
        return _Found(model.file, name, f"Ollama {model.name}", model.sha256)
    if source.startswith("hf:"):
        hub = hf_cache.find(source.removeprefix("hf:"), quiet)
        name = hub.path.stem if hub.path.is_file() else hub.id.partition("@")[0].rpartition("/")[2]
        return _Found(hub.path, name, f"Hugging Face {hub.id} at {hub.revision[:12]}")
    path = Path(source).expanduser().resolve()
    if not path.exists():
        raise HubError(f"{source} does not exist: give a path, hf:ID or ollama:NAME")
    if path.is_dir() and not (path / "config.json").is_file():
        files = sorted(path.glob("*.gguf"))
        hint = f"; name one file of it, such as {files[0]}" if files else ""
        raise HubError(f"{path} is no model directory: it has no config.json{hint}")
    return _Found(path, path.name if path.is_dir() else path.stem, str(path))


def _checked_name(name: str) -> str:
    cleaned = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")
    if not cleaned:
        raise HubError(f"{name!r} is no name for a model: give one with --name")
    if cleaned in KNOWN:
        raise HubError(f"{cleaned} is the name of a known model: choose another with --name")
    return cleaned


def _register(
    found: _Found,
    name: str,
    target: Path,
    tell: Callable[[Progress], None],
    *,
    hashed: bool = True,
) -> None:
    """Make the entry in `target`, which is not there yet. Raises ModelError for a faulty model."""
    target.mkdir()
    if found.path.is_dir():
        files = _files_of(found.path)
        entry = _entry(found, name, found.path, files, location=str(found.path))
    else:
        tell(Progress(name, "verify", 0, found.path.stat().st_size))
        try:
            entry = _entry(found, name, target, _link(found, target, hashed))
        except ModelError as error:  # our half-made directory is of no use to the reader
            raise ModelError(str(error).replace(str(target), str(found.path))) from None
    entry.write(target)


def _entry(
    found: _Found,
    name: str,
    folder: Path,
    files: tuple[Written, ...],
    location: str | None = None,
) -> Entry:
    """Everything that loading would look at is looked at."""
    config = read_config(folder)
    load_tensors(folder, config).close()
    Tokenizer.load(folder)
    sha256 = next((file.sha256 for file in files if file.name == GGUF), "")
    return Entry(
        name=name,
        source=found.source,
        sha256=sha256,
        precision=stored_precision(folder),
        licence=found.licence or _licence(folder),
        parameters=config.num_parameters,
        download_bytes=0,
        files=files,
        location=location,
    )


def _files_of(folder: Path) -> tuple[Written, ...]:
    paths = sorted(path for path in folder.iterdir() if path.suffix in KEPT)
    return tuple(Written(str(path), path.stat().st_size, "") for path in paths)


def _link(found: _Found, target: Path, hashed: bool) -> tuple[Written, ...]:
    """The small files of a GGUF model, and the link to its weights."""
    file = GgufFile(found.path)
    try:
        digest = sha256_of(found.path) if hashed else ""
        if found.sha256 and digest != found.sha256:
            raise HubError(f"{found.path} is not what its name says (its sha256 is another)")
        texts = write_texts(file, target)
    finally:
        file.close()
    (target / GGUF).symlink_to(found.path)
    return (*texts, Written(GGUF, found.path.stat().st_size, digest))


def _licence(folder: Path) -> str:
    """As a GGUF file says, else unknown."""
    if not (folder / GGUF).exists():
        return "unknown"
    file = GgufFile((folder / GGUF).resolve())
    try:
        return str(file.fields.get("general.license", "unknown"))
    finally:
        file.close()
