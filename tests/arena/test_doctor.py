"""Each check tells the truth of a made-up machine; none raises."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from arena import doctor
from arena.doctor import Check, check_all, clashes


def by_name() -> dict[str, Check]:
    return {check.name: check for check in check_all()}


@pytest.fixture(autouse=True)
def no_torch_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing torch takes seconds; one test below asks it for real."""
    done = subprocess.CompletedProcess([], 0, "2.13.0|no GPU|2\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def test_this_machine_is_told() -> None:
    checks = by_name()
    assert checks["python"].state == "ok"
    assert checks["packages"].state == "ok"
    assert checks["import names"].state == "ok"
    assert checks["torch"].detail == "2.13.0, no GPU, 2 threads"


def test_a_missing_package_is_named_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("chess", "no-such-package"))
    monkeypatch.setattr(doctor, "LOCAL", ("no-such-engine",))
    checks = by_name()
    assert checks["packages"] == Check(
        "packages", "fail", "missing no-such-package: pip install madang"
    )
    assert checks["local engine"].state == "warn"
    assert "madang[local]" in checks["local engine"].detail


def test_a_missing_engine_names_its_debian_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ENGINES", ("no-such-fish",))
    assert by_name()["no-such-fish"].detail == "not here: apt-get install no-such-fish"


def test_a_broken_torch_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = subprocess.CompletedProcess([], 1, "", "Traceback\nOSError: libx.so is missing")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: broken)
    assert by_name()["torch"].detail == "cannot be imported: OSError: libx.so is missing"


def test_a_check_that_breaks_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(path: Path) -> Any:
        raise OSError("no such disk")

    monkeypatch.setattr(shutil, "disk_usage", breaks)
    assert "no such disk" in by_name()["space"].detail


def test_no_clash_here() -> None:
    assert clashes() == []


def test_a_foreign_package_of_our_name_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        if name == "agents":
            return ModuleSpec(name, None, origin=str(tmp_path / "agents" / "__init__.py"))
        return real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    (sentence,) = clashes()
    assert sentence.startswith("the import name 'agents' belongs to ")
    assert "\n" not in sentence


def test_a_known_namesake_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.distribution
    monkeypatch.setattr(
        importlib.metadata,
        "distribution",
        lambda name: real("chess") if name == "openai-agents" else real(name),
    )
    assert any("pip uninstall openai-agents" in sentence for sentence in clashes())
