"""One peer: its environment, its process, jobs to it and results from it."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).parent


class PeerFailed(Exception):
    """One line: what did not start or broke off."""


@dataclass
class Peer:
    """`name` as the table shows it; `command` after the interpreter of its environment."""

    name: str
    mode: str
    precision: str
    python: Path
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    _process: "subprocess.Popen[str] | None" = None
    _errors: "IO[str] | None" = None

    def start(self) -> None:
        """Load the model; raises PeerFailed with the last line it wrote."""
        if not self.python.exists():
            raise PeerFailed(f"not installed ({self.python} is missing)")
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (lives as long as the process)
        script, *rest = self.command
        self._process = subprocess.Popen(
            [str(self.python), str(HERE / script), *rest],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **self.environment},
            start_new_session=True,
        )
        self.version = str(self._read()["ready"])

    def run(self, games: Sequence[Any]) -> dict[str, Any]:
        """Play these games; what loop.Run says, and `peak_mb` of the process and its children."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"games": games}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(self._last_words()) from None
        result = self._read()
        return {**result, "peak_mb": _peak_mb(self._process.pid)}

    def stop(self) -> None:
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
        self._process = None

    def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        if not text:
            raise PeerFailed(self._last_words())
        found: dict[str, Any] = json.loads(text)
        return found

    def _last_words(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors if line.strip()]
        return lines[-1][:200] if lines else "it ended without a word"


def _peak_mb(pid: int) -> float:
    """Largest resident sizes of a process and all below it, added up; Linux."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            if os.getsid(int(lines["Pid"])) == pid and "VmHWM" in lines:
                total += int(lines["VmHWM"].split()[0]) / 1024
        except (OSError, ValueError, KeyError):
            continue
    return total
