"""What players are called: model, precision and mode belong to the name, and no two coincide."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from .spec import (
    KNOWN_MODELS,
    AgentSpec,
    EndpointSpec,
    LlmSpec,
    MqttSpec,
    ScriptedSpec,
    SpecError,
    UciSpec,
)

_SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "auto": "fp32"}


def default_name(spec: AgentSpec) -> str:
    """The name of a player that was given none: `smollm2-135m:q4_1→fp32:constrained`.

    Precision is the file's, then the computation's where it differs.
    """
    if isinstance(spec, LlmSpec):
        label = short_name(spec.model)
        stored = file_precision(spec.model)
        computed = spec.engine.quantization or _SHORT[spec.engine.dtype]
        precision = computed if stored in ("", computed) else f"{stored}→{computed}"
        return f"{label}:{precision}:{spec.mode}"
    if isinstance(spec, EndpointSpec):
        return f"{spec.model}@{urlsplit(spec.base_url).netloc}:{spec.mode}"
    if isinstance(spec, UciSpec):
        return _uci_name(spec)
    if isinstance(spec, MqttSpec):
        return f"mqtt:{spec.agent}"
    if isinstance(spec, ScriptedSpec):
        return f"scripted:{spec.behaviour}"
    return spec.kind


def short_name(model: str) -> str:
    """A model's name, or the last part of its path or id."""
    return Path(model).name.removesuffix(".gguf") if "/" in model else model


def name_players(specs: Sequence[AgentSpec]) -> tuple[AgentSpec, ...]:
    """The players with every name filled in. Raises SpecError where two given names coincide.

    Players without a name of their own that would coincide get what tells them apart (template,
    temperature, …), else a number.
    """
    given = Counter(spec.name for spec in specs if spec.name)
    for name, count in given.items():
        if count > 1:
            raise SpecError(f"two players are called {name!r}: name one of them {name + '-2'!r}")
    bases = [spec.name or default_name(spec) for spec in specs]
    shared = {name for name, count in Counter(bases).items() if count > 1}
    taken = set(given)
    named: list[AgentSpec] = []
    for spec, base in zip(specs, bases, strict=True):
        name = base
        if not spec.name and (base in shared or base in taken):
            name = _distinct(spec, base, specs, taken)
        taken.add(name)
        named.append(spec.model_copy(update={"name": name}))
    return tuple(named)


def file_precision(model: str) -> str:
    """Precision of a model's file: known by name, as its directory's config.json says, else as the
    engine's hub knows it (an added model, a GGUF file); "" where nothing tells."""
    if model in KNOWN_MODELS:
        return KNOWN_MODELS[model]
    folder = Path(model)
    try:
        if (folder / "config.json").is_file() and not (folder / "model.gguf").is_file():
            config = json.loads((folder / "config.json").read_text("utf-8"))
            dtype = str(config.get("dtype") or config["torch_dtype"])
            return _SHORT.get(dtype, dtype)
        from .local import stored_precision  # which needs what the engine needs

        return stored_precision(model)
    except (ImportError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


def _uci_name(spec: UciSpec) -> str:
    limits = [("n", spec.nodes), ("d", spec.depth), ("ms", spec.movetime), ("elo", spec.elo)]
    tail = "".join(f":{short}{value}" for short, value in limits if value is not None)
    return Path(spec.path).name + tail


def _distinct(spec: AgentSpec, base: str, specs: Sequence[AgentSpec], taken: set[str]) -> str:
    name = base
    if isinstance(spec, LlmSpec | EndpointSpec):
        alike = [other for other in specs if isinstance(other, LlmSpec | EndpointSpec)]
        for field in ("template", "notation", "temperature", "terminator"):
            values = {getattr(other, field) for other in alike}
            if len(values) > 1:
                name += f":{_worded(field, getattr(spec, field))}"
    if name not in taken:
        return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _worded(field: str, value: object) -> str:
    return f"t{value}" if field == "temperature" else str(value)
