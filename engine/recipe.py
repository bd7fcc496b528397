"""What to do with a model that this engine cannot run: the commands of docs/backends.md."""

from pathlib import Path


def elsewhere(model: Path) -> str:
    """How to run a model, a directory or a GGUF file, behind an endpoint, and that player."""
    if model.is_file():
        start = f"llama-server -m {model} --port 8080 -np 8 -c 32768"
        player = f"endpoint:{model.stem}?base_url=http://localhost:8080/v1&constraint=grammar"
    else:
        start = f"vllm serve {model} --port 8000"
        player = f"endpoint:{model}?base_url=http://localhost:8000/v1&constraint=structured_outputs"
    return f"run it behind an endpoint instead: `{start}`, then the player '{player}'"
