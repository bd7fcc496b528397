"""No serious accessibility fault by axe-core, which npm brings for this drill alone."""

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="no fastapi here (pip install madang[web])")

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from arena.web.server import Handle

AXE = "axe-core@4.14.1"
PAGES = (
    "runs",
    "runs/1",
    "runs/1/standings",
    "runs/1/games",
    "runs/1/schedule",
    "runs/1/latency",
    "runs/1/failures",
    "players/2",
    "games/1",
    "games/6?ply=3",
)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("skipped: no npm here to fetch axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-save", "--ignore-scripts", AXE]
    if subprocess.run(command, cwd=folder, check=False).returncode:
        pytest.skip(f"skipped: npm cannot fetch {AXE}")
    return Path(folder, "node_modules/axe-core/axe.min.js").read_text()


@pytest.mark.drill
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault(
    server: "Handle", browser: "Browser", axe: str, scheme: str
) -> None:
    context = browser.new_context(bypass_csp=True)  # for axe's own script
    page = context.new_page()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found = []
    for path in PAGES:
        page.goto(server.url + path)
        page.evaluate(axe)
        report = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        found += [
            f"{path}: {fault['impact']} {fault['id']} at {fault['nodes'][0]['target']}"
            for fault in report["violations"]
            if fault["impact"] in ("serious", "critical")
        ]
    context.close()
    assert found == []
