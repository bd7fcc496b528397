"""Continuous batching on one thread: requests in, tokens and choice probabilities out.

Imported before torch, it has torch's threads sleep while they wait for each other. By default they
spin, and where another program wants the same cores (a chess engine at the next board, a second
model) the one they wait for does not get to run: a decode step was 28 times slower beside other
work, and no faster alone. A value set by the user stands.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
