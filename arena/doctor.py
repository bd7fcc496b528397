"""What this machine has of what the arena can use, and what to do about what it lacks.

`check_all` never imports torch or the engine into this process and never raises: each check is one
line with a state. `fail` means that nothing can be played; `warn` that something cannot. What the
players of a configuration need is asked by `arena.doctor_players`.
"""

import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

PACKAGES = ("arena", "games", "agents", "engine", "kernels")
NAMESAKES = {"kernels": "kernels", "openai-agents": "agents"}
"""Distributions that are known to own one of our import names."""
NEEDED = ("alembic", "chess", "jinja2", "numpy", "pydantic", "rich", "scipy", "sqlalchemy", "typer")
LOCAL = ("torch", "safetensors", "tokenizers", "gguf")
ENGINES = ("stockfish", "fairy-stockfish")
TORCH_S = 120
_PROBE = """
import json, sys, torch
gpus = []
if torch.cuda.is_available():
    for number in range(torch.cuda.device_count()):
        gpus.append([torch.cuda.get_device_name(number), *torch.cuda.mem_get_info(number)])
models = {}
from agents.local import footprint
for name in sys.argv[1:]:
    try:
        models[name] = footprint(name)
    except Exception as error:
        models[name] = str(error)
threads = torch.get_num_threads()
print(json.dumps({"torch": torch.__version__, "threads": threads, "gpus": gpus, "models": models}))
"""


@dataclass(frozen=True, slots=True)
class Check:
    """As `agents.base.Check`, which may belong to somebody else: that is what is looked for."""

    name: str
    state: Literal["ok", "warn", "fail"]
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
    checks = (_python, _needed, _names, _local, _memory, _models, _engines, _endpoints, _broker)
    for check in (*checks, _space):
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


def _memory() -> Iterator[Check]:
    available, total = available_memory()
    if total:
        yield Check("memory", "ok", f"{_gb(available)} of {_gb(total)} available")


def available_memory() -> tuple[int, int]:
    """(bytes available, bytes in all), as Linux tells; zeros where it does not."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        return sizes["MemAvailable"], sizes["MemTotal"]
    except (OSError, ValueError, KeyError, IndexError):
        return 0, 0


def _models() -> Iterator[Check]:
    """Torch, GPU and the models' memory are asked of another process, so that this one stays
    small."""
    try:
        from engine.hub import list_models
    except ImportError as error:
        yield Check("models", "warn", f"{error.name} is missing: pip install 'madang[local]'")
        return
    models = list_models()
    here = [model.name for model in models if model.path is not None]
    probe = _probe(here) if _versions(("torch",))[0] else None
    if isinstance(probe, Check):
        yield probe
    elif probe is not None:
        yield from _torch(probe)
    sizes = probe.get("models", {}) if isinstance(probe, dict) else {}
    for model in models:
        if model.path is None:
            size = model.download_bytes // 1_000_000
            text = f"not here: arena model pull {model.name} ({size} MB; a run pulls it by itself)"
            yield Check(f"model {model.name}", "warn", text)
        else:
            yield _fits(model.name, str(model.path), sizes.get(model.name))


def find_model(name: str) -> tuple[Literal["ok", "warn"], str]:
    """Whether a model is here, and where or why not."""
    try:
        from engine.hub import HubError, path
    except ImportError as error:
        return "warn", f"{error.name} is missing: pip install 'madang[local]'"
    try:
        return "ok", str(path(name))
    except HubError as error:
        return "warn", str(error)


def _probe(models: Sequence[str]) -> dict[str, Any] | Check:
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _PROBE, *models], capture_output=True, text=True, timeout=TORCH_S
        )
    except subprocess.TimeoutExpired:
        return Check("torch", "warn", f"did not import in {TORCH_S} s: reinstall it")
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["no message"])[-1]
        return Check("torch", "warn", f"cannot be imported: {last}")
    found: dict[str, Any] = json.loads(asked.stdout)
    return found


def _torch(probe: Mapping[str, Any]) -> Iterator[Check]:
    gpus = probe["gpus"]
    words = f"{probe['torch']}, {probe['threads']} threads"
    yield Check("torch", "ok", words if gpus else f"{words}, no GPU")
    for name, free, total in gpus:
        yield Check("GPU", "ok", f"{name}, {_gb(free)} of {_gb(total)} free")


def _fits(name: str, where: str, size: object) -> Check:
    """A model that is here, and whether its weights fit into what is available."""
    if not isinstance(size, int):
        fault = f": {size}" if size else ""
        return Check(f"model {name}", "warn" if size else "ok", where + fault)
    available, _ = available_memory()
    words = f"{where}, {_gb(size)} of memory for its weights"
    if available and size > available:
        text = f"{words}: more than the {_gb(available)} available"
        return Check(f"model {name}", "warn", text)
    return Check(f"model {name}", "ok", words)


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _engines() -> Iterator[Check]:
    from agents.uci_client import find_binary

    for engine in ENGINES:
        path = find_binary(engine)
        if path is None:
            yield Check(engine, "warn", f"not here: apt-get install {engine}")
        else:
            yield Check(engine, "ok", str(path))


def _endpoints() -> Iterator[Check]:
    yield _extra("endpoints", ("httpx",), "endpoint", "ask models behind HTTP")


def _broker() -> Iterator[Check]:
    """A broker may run anywhere: here it is only told whether one could be started."""
    yield _extra("MQTT", ("aiomqtt",), "mqtt", "play with remote players")
    path = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if path is None:
        text = "no mosquitto here: apt-get install mosquitto, or name a broker elsewhere"
        yield Check("broker", "warn", text)
    else:
        yield Check("broker", "ok", f"{path}; start it with: mosquitto -p 1883")


def _extra(name: str, packages: tuple[str, ...], extra: str, purpose: str) -> Check:
    here, missing = _versions(packages)
    if missing:
        text = f"missing {', '.join(missing)}: pip install 'madang[{extra}]' to {purpose}"
        return Check(name, "warn", text)
    return Check(name, "ok", ", ".join(here))


def _space() -> Iterator[Check]:
    free = shutil.disk_usage(Path.cwd()).free
    state: Literal["ok", "warn"] = "ok" if free > 1_000_000_000 else "warn"
    yield Check("disk", state, f"{_gb(free)} free in {Path.cwd()}")
