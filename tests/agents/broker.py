"""A real mosquitto for tests."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
MISSING = "skipped: no mosquitto (Debian: apt install mosquitto mosquitto-clients)"


class Broker:
    """A mosquitto of the test's own, without persistence."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._config = folder / "mosquitto.conf"
        self._config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n")
        self.start()

    def start(self) -> None:
        command = [str(MOSQUITTO), "-c", str(self._config)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        raise AssertionError("mosquitto does not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """A broker on a port of its own; skips the test where none is installed."""
    if MOSQUITTO is None:
        pytest.skip(MISSING)
    made = Broker(folder)
    try:
        yield made
    finally:
        made.kill()
