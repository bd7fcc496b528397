"""Player specs, the command line's short form, and names."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from agents.naming import default_name, name_players
from agents.spec import (
    KNOWN_MODELS,
    EngineOptions,
    LlmSpec,
    MaterialSpec,
    RandomSpec,
    ScriptedSpec,
    SpecError,
    UciSpec,
    load_spec,
    parse_spec,
)
from engine import hub
from engine.config import EngineConfig
from engine.model_config import expected_shapes, read_config
from tests.engine.gguf_kit import write_gguf
from tests.engine.model_kit import byte_level_tokenizer, llama_config, write_json


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("random", RandomSpec()),
        ("material?name=M", MaterialSpec(name="M")),
        ("stockfish", UciSpec(path="stockfish")),
        ("fairy-stockfish?nodes=3", UciSpec(path="fairy-stockfish", nodes=3)),
        (
            "uci:/path/to/engine?nodes=1000&option.Hash=16&option.Ponder=false",
            UciSpec(path="/path/to/engine", nodes=1000, options={"Hash": 16, "Ponder": False}),
        ),
        ("uci:/e?args=-u,x.py", UciSpec(path="/e", args=("-u", "x.py"))),
        ("smollm2-135m", LlmSpec(model="smollm2-135m")),
        (
            "smollm2-135m:choice?template=board&temperature=0.7&policy.attempts=1",
            LlmSpec.model_validate(
                {
                    "model": "smollm2-135m",
                    "mode": "choice",
                    "template": "board",
                    "temperature": 0.7,
                    "policy": {"attempts": 1},
                }
            ),
        ),
        ("llm:/path/to/model:choice", LlmSpec(model="/path/to/model", mode="choice")),
        ("llm:/path/to/model", LlmSpec(model="/path/to/model")),
        ("llm:/odd:path/to/model", LlmSpec(model="/odd:path/to/model")),
        (
            "llm:/m:free?engine.max_num_seqs=8",
            LlmSpec(model="/m", mode="free", engine=EngineOptions(max_num_seqs=8)),
        ),
        ("scripted:crash", ScriptedSpec(behaviour="crash")),
        ("scripted:e2e4,g1f3", ScriptedSpec(moves=("e2e4", "g1f3"))),
    ],
)
def test_the_short_form(text: str, spec: object) -> None:
    assert parse_spec(text) == spec


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stokfish", "unknown player 'stokfish' (did you mean 'stockfish'?)"),
        ("smollm2-135m:choise", "unknown mode 'choise' (did you mean 'choice'?)"),
        ("smollm2-135m?tempature=1", "unknown key 'tempature' (did you mean 'temperature'?)"),
        ("smollm2-135m?policy.atempts=1", "'policy.atempts' (did you mean 'attempts'?)"),
        ("smollm2-135m?engine.max_seqs=1", "'engine.max_seqs' (did you mean 'max_num_seqs'?)"),
        ("smollm2-135m?template=bord", "unknown template 'bord' (did you mean 'board'?)"),
        ("smollm2-135m?notation=sann", "notation: input should be 'uci', 'san'"),
        ("smollm2-135m?temperature=hot", "not 'hot'"),
        ("smollm2-135m?policy=3&policy.attempts=2", "both as a value and as a table"),
        ("uci:x?nodes=0", "nodes: input should be greater than or equal to 1, not 0"),
        ("random:x", "unknown player 'random:x'"),
        ("", "unknown player ''"),
    ],
)
def test_a_wrong_short_form_is_one_line_that_names_the_fix(text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"kind": "lm"}, "unknown kind 'lm' (did you mean 'llm'?)"),
        ({}, "a player needs a kind"),
        ({"kind": "llm"}, "model: field required"),
        ({"kind": "random", "nme": "x"}, "unknown key 'nme' (did you mean 'name'?)"),
    ],
)
def test_a_wrong_table_is_one_line_that_names_the_fix(data: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(data)
    assert words in str(caught.value)


def test_a_spec_survives_its_stored_form() -> None:
    for text in ("random", "stockfish?option.Hash=1", "smollm2-135m:think?policy.tokens=9"):
        spec = parse_spec(text)
        assert load_spec(spec.model_dump(mode="json")) == spec


def test_engine_options_are_the_engine_s_settings() -> None:
    settings = {field.name for field in fields(EngineConfig)} - {"model", "seed"}
    shared = {"kv_fraction"}  # becomes kv_cache_memory_bytes when all models are known
    assert set(EngineOptions.model_fields) - shared == settings


def test_known_models_are_the_hub_s() -> None:
    assert dict(KNOWN_MODELS) == {m.name: m.precision for m in hub.KNOWN.values()}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("smollm2-135m", "smollm2-135m:q4_1→fp32:constrained"),
        ("smollm2-135m:choice?engine.dtype=bfloat16", "smollm2-135m:q4_1→bf16:choice"),
        ("llm:/no/model:free", "model:fp32:free"),
        ("uci:/opt/berserk?depth=3", "berserk:d3"),
        ("stockfish?elo=1400", "stockfish:elo1400"),
        ("scripted:stall", "scripted:stall"),
        ("random", "random"),
    ],
)
def test_names_carry_model_precision_and_mode(text: str, name: str) -> None:
    assert default_name(parse_spec(text)) == name


def test_a_model_directory_says_its_own_precision(tmp_path: Any) -> None:
    (tmp_path / "config.json").write_text('{"torch_dtype": "bfloat16"}')
    name = default_name(LlmSpec(model=str(tmp_path)))
    assert name == f"{tmp_path.name}:bf16→fp32:constrained"


def test_gguf_files_and_added_models_say_their_own_precision(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADANG_HOME", str(tmp_path / "home"))
    tokenizer = byte_level_tokenizer()
    config = llama_config(vocab_size=tokenizer.get_vocab_size(), num_hidden_layers=1)
    write_json(tmp_path / "config.json", config)
    shapes = expected_shapes(read_config(tmp_path))
    tensors = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    file = write_gguf(tmp_path / "Tiny-Q.gguf", tensors, config, tokenizer, "F16")
    assert default_name(LlmSpec(model=str(file))) == "Tiny-Q:f16→fp32:constrained"
    hub.add(str(file), "mine")
    assert default_name(LlmSpec(model="mine", mode="choice")) == "mine:f16→fp32:choice"


def test_players_that_coincide_get_what_tells_them_apart() -> None:
    texts = ["smollm2-135m", "smollm2-135m?template=fen", "random", "random", "random"]
    names = [spec.name for spec in name_players([parse_spec(text) for text in texts])]
    base = "smollm2-135m:q4_1→fp32:constrained"
    assert names == [f"{base}:history", f"{base}:fen", "random", "random-2", "random-3"]


def test_a_default_name_steps_aside_for_a_given_one() -> None:
    names = [s.name for s in name_players([parse_spec("random"), RandomSpec(name="random")])]
    assert names == ["random-2", "random"]


def test_two_given_names_that_coincide_are_an_error_with_a_suggestion() -> None:
    with pytest.raises(SpecError, match="two players are called 'A': name one of them 'A-2'"):
        name_players([RandomSpec(name="A"), MaterialSpec(name="A")])
