"""A recorded sample run, a server over it, and Debian's Chromium."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arena.store import Store

from . import sample

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

    from arena.web.server import Handle

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the sample run (run 1, games 1 to 10)."""
    path = tmp_path_factory.mktemp("web") / "sample 한국?#.db"
    with Store.open(path) as store:
        sample.finish(sample.build(store))
    return path


@pytest.fixture(scope="session")
def store(record: Path) -> Iterator[Store]:
    with Store.open(record, create=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def server(record: Path) -> Iterator["Handle"]:
    """The viewer over the sample run, in a thread."""
    pytest.importorskip("fastapi", reason="no fastapi here (pip install madang[web])")
    from arena.web.server import start_background

    handle = start_background(record)
    yield handle
    handle.stop()


@pytest.fixture(scope="module")  # its driver keeps an event loop in the main thread
def browser() -> Iterator["Browser"]:
    """Headless Chromium of Debian; Playwright's own download is not needed."""
    if not CHROMIUM.exists():
        pytest.skip(f"skipped: no {CHROMIUM} (Debian: apt install chromium fonts-noto-cjk)")
    api = pytest.importorskip(
        "playwright.sync_api", reason="no playwright (pip install madang[test])"
    )
    with api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def context(browser: "Browser") -> Iterator["BrowserContext"]:
    opened = browser.new_context(viewport={"width": 1280, "height": 800})
    opened.set_default_timeout(20_000)
    faults: list[str] = []  # raising inside a handler would take the driver down
    opened.on("weberror", lambda fault: faults.append(str(fault.error)))
    opened.on("dialog", lambda dialog: faults.append(dialog.message))
    yield opened
    opened.close()
    assert faults == []
