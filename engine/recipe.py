"""What to do with a model that this engine cannot run: the commands of docs/backends.md."""

from pathlib import Path


def elsewhere(model: Path) -> str:
    """How to run a model, a directory or a GGUF file, behind an endpoint, and that player."""
    if model.is_file():
        start = f"llama-server -m {model} --port 8080 -np 8 -c 32768"
        player, port, constraint = model.stem, 8080, "grammar"
    else:
        start = f"vllm serve {model} --port 8000"
        player, port, constraint = str(model), 8000, "structured_outputs"
    query = f"base_url=http://localhost:{port}/v1&mode=constrained&constraint={constraint}"
    return (
        f"run it behind an endpoint instead: `{start}`, then the player 'endpoint:{player}?{query}'"
    )
