"""Data that lives beside the repository, and a skip where it does not."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def outside(name: str) -> Path:
    """A file under `$MADANG_SHARED/data/janggi`; skips the test if it is not there."""
    folder = Path(os.environ.get("MADANG_SHARED", ROOT.parent / "shared"))
    path = folder / "data" / "janggi" / name
    if not path.exists():
        pytest.skip("skipped: no outside data")
    return path


def outside_json(name: str) -> Any:
    return json.loads(outside(name).read_text(encoding="utf-8"))
