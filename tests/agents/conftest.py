"""Fixtures of the agents' tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .broker import Broker, running_broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A mosquitto of the test's own, without persistence."""
    with running_broker(tmp_path) as made:
        yield made
