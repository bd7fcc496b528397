"""A model directory that an engine loads and an agent can play with: small, random, seeded."""

from pathlib import Path

from .model_kit import chatml_dir
from .runner_kit import write_checkpoint


def small_model(folder: Path, seed: int) -> Path:
    """Random weights and a byte-level ChatML tokenizer; returns the folder."""
    return chatml_dir(write_checkpoint(folder, seed, vocab_size=420, eos_token_id=2))
