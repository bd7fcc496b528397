"""Continuous batching on one thread: requests in, tokens and choice probabilities out."""
