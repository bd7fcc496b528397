"""How many threads torch may use: the cores this process really has, set once."""

import os
from functools import lru_cache
from pathlib import Path

import torch

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # cgroup 2: "quota period" in microseconds, or "max …"


@lru_cache(maxsize=1)
def use_cores() -> int:
    """Lower torch's choice (its physical cores, or OMP_NUM_THREADS) to what affinity and the
    container's quota allow: more threads than cores wait for each other in every product."""
    count = min(torch.get_num_threads(), len(os.sched_getaffinity(0)), _quota())
    torch.set_num_threads(max(1, count))
    return count


def _quota() -> int:
    try:
        quota, period = QUOTA.read_text().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return 1 << 16
