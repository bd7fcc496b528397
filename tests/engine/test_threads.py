"""torch's threads wait asleep, so that other programs on the same cores cost their share only."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("given", "found"), [(None, "passive"), ("active", "active")])
def test_the_wait_policy_is_ours_unless_given(given: str | None, found: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    if given:
        environment["OMP_WAIT_POLICY"] = given
    code = "import engine, os; print(os.environ['OMP_WAIT_POLICY'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == found


def test_the_command_line_sets_it_before_torch_comes() -> None:
    """Whatever brings torch in goes through the package engine first."""
    code = (
        "import sys, agents.local, engine.engine\n"
        "import os; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "passive False"
