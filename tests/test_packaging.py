"""The distribution: its packages, its guards, what its documents promise."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("arena", "games", "agents", "engine", "kernels")


def _project() -> dict[str, object]:
    data: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return data


def test_version_stays_below_the_name_clash() -> None:
    major, minor = str(_project()["version"]).split(".")[:2]
    assert (int(major), int(minor)) < (0, 9)


def test_kernels_imports_nothing_and_says_version_zero() -> None:
    tree = ast.parse((ROOT / "kernels" / "__init__.py").read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert '__version__ = "0.0.0"' in (ROOT / "kernels" / "__init__.py").read_text()


def test_constraints_pin_every_dependency_that_pyproject_names() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    project = _project()
    named: list[str] = list(project["dependencies"])  # type: ignore[call-overload]
    for extra in project["optional-dependencies"].values():  # type: ignore[attr-defined]
        named.extend(extra)
    for requirement in named:
        name = re.split(r"[;>=\[]", requirement)[0].strip().lower().replace("_", "-")
        assert name in pins, f"constraints.txt has no pin for {name}"
    assert "torch==2.13.0" in lines


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("module", ["arena.cli", "agents.factory", "games.registry"])
def test_imports_without_torch(module: str) -> None:
    """A tournament of random and UCI players must start where torch is not installed."""
    code = (
        "import sys\n"
        "for name in ('torch', 'engine', 'tokenizers', 'safetensors', 'transformers', 'gguf'):\n"
        "    sys.modules[name] = None\n"
        f"import {module}\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert result.returncode == 0, result.stderr
