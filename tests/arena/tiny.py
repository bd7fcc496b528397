"""A small random model that speaks ChatML: everything of a language model but sense."""

from pathlib import Path

from tests.engine.model_kit import chatml_dir
from tests.engine.runner_kit import write_checkpoint


def tiny_model(folder: Path) -> Path:
    """Writes its directory; returns it."""
    chatml_dir(folder)
    return write_checkpoint(folder, vocab_size=420, bos_token_id=1, eos_token_id=2)
