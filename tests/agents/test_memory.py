"""How the KV budget of a run is split among its engines."""

import pytest

from agents.memory import MemoryOptions, engine_key, kv_shares
from agents.spec import LlmSpec, RandomSpec, SpecError, load_spec


def llm(model: str, **engine: object) -> LlmSpec:
    spec = load_spec({"kind": "llm", "model": model, "name": model, "engine": engine})
    assert isinstance(spec, LlmSpec)
    return spec


def split(total: int | None, *specs: LlmSpec) -> dict[str, int]:
    """Bytes by the model's name."""
    shares = kv_shares([RandomSpec(), *specs], MemoryOptions(kv_cache_bytes=total))
    names = {engine_key(spec): spec.model for spec in specs}
    return {names[key]: size for key, size in shares.items()}


def test_without_a_budget_nothing_is_split() -> None:
    assert split(None, llm("a"), llm("b")) == {}


def test_equal_parts_and_stated_ones() -> None:
    assert split(1000, llm("a"), llm("b")) == {"a": 500, "b": 500}
    assert split(1000, llm("a", kv_fraction=0.5), llm("b"), llm("c")) == {
        "a": 500,
        "b": 250,
        "c": 250,
    }
    assert split(1000, llm("a", kv_fraction=0.7), llm("b", kv_fraction=0.3)) == {"a": 700, "b": 300}


def test_players_on_one_engine_have_one_part() -> None:
    assert split(1000, llm("a"), llm("a"), llm("b")) == {"a": 500, "b": 500}


def test_who_states_a_pool_takes_no_part() -> None:
    assert split(1000, llm("a", kv_cache_memory_bytes=7), llm("b")) == {"b": 1000}
    assert split(1000, llm("a", num_gpu_blocks_override=7), llm("b")) == {"b": 1000}


@pytest.mark.parametrize(
    ("total", "specs", "words"),
    [
        (None, [llm("a", kv_fraction=0.5)], r"a: kv_fraction is a part of \[memory\] kv_cache_by"),
        (9, [llm("a", kv_fraction=0.7), llm("b", kv_fraction=0.6)], "is 1.3: it cannot be above 1"),
        (9, [llm("a", kv_fraction=1.0), llm("b")], "is 1: leave some to the models without one"),
        (9, [llm("a", kv_fraction=0.5, num_gpu_blocks_override=3)], "both size the KV pool"),
    ],
)
def test_what_cannot_be_split_is_said(total: int | None, specs: list[LlmSpec], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        split(total, *specs)
