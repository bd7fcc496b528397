"""Dequantised weights on disk while a model takes part in waves, so that its returns need not
dequantise them again: a mapped file of floats costs a fifth of the time.

Spills lie under the cache directory, one a runner, named after the process; `remove` takes one
away, and those of processes that have died are swept by the next. Where the disk has no room there
is none, and weights are dequantised again.
"""

import logging
import os
import shutil
import tempfile
from pathlib import Path

from engine.model_config import ModelConfig
from engine.weights import GGUF, load_tensors
from engine.wheel import models_dir

log = logging.getLogger(__name__)
ROOM = 2  # times a spill's bytes that must be free


def spill(source: Path, config: ModelConfig) -> Path | None:
    """A model directory with the weights of `source` as float32 or as they lie there; None: they
    can be mapped from where they are, or there is no room. Memory: all weights once, for a while.
    """
    from safetensors.torch import save_file

    if not (source / GGUF).exists():
        return None
    home = models_dir().parent / "waves"
    folder: Path | None = None
    try:
        home.mkdir(parents=True, exist_ok=True)
        _sweep(home)
        if shutil.disk_usage(home).free < ROOM * 4 * config.num_parameters:
            log.warning("%s has no room for dequantised weights: swaps take longer", home)
            return None
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=home))
        shutil.copy(source / "config.json", folder)
        weights = load_tensors(source, config)
        try:
            save_file({name: weights[name] for name in weights}, folder / "model.safetensors")
        finally:
            weights.close()
    except OSError as error:
        log.warning("no dequantised weights are kept in %s (%s): swaps take longer", home, error)
        remove(folder)
        return None
    return folder


def remove(folder: Path | None) -> None:
    """Take a spill away; None and what is gone already pass."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(home: Path) -> None:
    """Take away what processes that no longer run have left."""
    for folder in home.iterdir():
        owner = folder.name.partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            remove(folder)
