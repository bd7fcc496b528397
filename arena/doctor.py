"""What this machine has of what the arena can use, and what to do about what it lacks.

`check_all` never imports torch or the engine into this process and never raises: each check is one
line with a state. `fail` means that nothing can be played; `warn` that something cannot.
"""

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["ok", "warn", "fail"]
PACKAGES = ("arena", "games", "agents", "engine", "kernels")
NAMESAKES = {"kernels": "kernels", "openai-agents": "agents"}
"""Distributions that are known to own one of our import names."""
NEEDED = ("alembic", "chess", "jinja2", "numpy", "pydantic", "rich", "scipy", "sqlalchemy", "typer")
LOCAL = ("torch", "safetensors", "tokenizers", "gguf")
ENGINES = ("stockfish", "fairy-stockfish")
TORCH_S = 120
_PROBE = (
    "import torch; cuda = torch.cuda.is_available(); "
    "print(torch.__version__, torch.cuda.get_device_name(0) if cuda else 'no GPU', "
    "torch.get_num_threads(), sep='|')"
)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: State
    detail: str


def clashes() -> list[str]:
    """One sentence for each of our import names that another distribution owns. Fast."""
    home = Path(__file__).resolve().parent.parent
    found = []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            found.append(
                f"the import name {package!r} belongs to {origin or 'nothing'} and not to madang: "
                "uninstall what brings it, or use a virtual environment of its own"
            )
    for distribution, package in NAMESAKES.items():
        try:
            importlib.metadata.distribution(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        found.append(
            f"the distribution {distribution!r} owns madang's import name {package!r}: "
            f"pip uninstall {distribution}, or use a virtual environment of its own"
        )
    return found


def check_all() -> Iterator[Check]:
    """Every check, in the order a person should read them."""
    for check in (_python, _needed, _names, _local, _torch, _models, _engines, _space):
        yield from _guarded(check)


def _guarded(check: "Callable[[], Iterator[Check]]") -> Iterator[Check]:
    try:
        yield from check()
    except Exception as error:
        yield Check(check.__name__.strip("_"), "warn", f"the check itself failed: {error!r}")


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    yield Check("python", "ok" if good else "fail", version if good else f"{version}: need 3.11")


def _versions(names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """(`name version` of those installed, names of those missing)."""
    here, missing = [], []
    for name in names:
        try:
            here.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    return here, missing


def _needed() -> Iterator[Check]:
    here, missing = _versions(NEEDED)
    if missing:
        yield Check("packages", "fail", f"missing {', '.join(missing)}: pip install madang")
    else:
        yield Check("packages", "ok", ", ".join(here))


def _names() -> Iterator[Check]:
    found = clashes()
    for sentence in found:
        yield Check("import names", "fail", sentence)
    if not found:
        yield Check("import names", "ok", f"{', '.join(PACKAGES)} are madang's own")


def _local() -> Iterator[Check]:
    here, missing = _versions(LOCAL)
    if missing:
        text = f"missing {', '.join(missing)}: pip install 'madang[local]' to run models here"
        yield Check("local engine", "warn", text)
    else:
        yield Check("local engine", "ok", ", ".join(here))


def _torch() -> Iterator[Check]:
    """Asked of another process, so that this one stays small."""
    if not _versions(("torch",))[0]:
        return
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=TORCH_S
        )
    except subprocess.TimeoutExpired:
        yield Check("torch", "warn", f"did not import in {TORCH_S} s: reinstall it")
        return
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["no message"])[-1]
        yield Check("torch", "warn", f"cannot be imported: {last}")
        return
    version, gpu, threads = asked.stdout.strip().split("|")
    yield Check("torch", "ok", f"{version}, {gpu}, {threads} threads")


def _models() -> Iterator[Check]:
    try:
        from engine.hub import list_models
    except ImportError as error:
        yield Check("models", "warn", f"{error.name} is missing: pip install 'madang[local]'")
        return
    for model in list_models():
        if model.path is None:
            size = model.download_bytes // 1_000_000
            text = f"not here: arena model pull {model.name} ({size} MB; a run pulls it by itself)"
            yield Check(f"model {model.name}", "warn", text)
        else:
            yield Check(f"model {model.name}", "ok", str(model.path))


def _engines() -> Iterator[Check]:
    from agents.uci_client import find_binary

    for engine in ENGINES:
        path = find_binary(engine)
        if path is None:
            yield Check(engine, "warn", f"not here: apt-get install {engine}")
        else:
            yield Check(engine, "ok", str(path))


def _space() -> Iterator[Check]:
    free = shutil.disk_usage(Path.cwd()).free
    state: State = "ok" if free > 1_000_000_000 else "warn"
    yield Check("disk", state, f"{free / 1e9:.1f} GB free in {Path.cwd()}")
