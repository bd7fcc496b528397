"""What can be configured or typed is documented, and what is documented exists."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.main import get_command

from agents.memory import MemoryOptions
from agents.policy import Policy
from agents.spec import SPECS, EngineOptions
from arena.adjudicate import DrawRule, ResignRule
from arena.cli import app
from arena.config import OpeningsConfig, RefereeConfig, RunConfig, SectionConfig
from arena.sprt import Sprt

DOCS = Path(__file__).resolve().parents[1] / "docs"
CONFIGURATION = (DOCS / "configuration.md").read_text("utf-8")
COMMANDS = (DOCS / "commands.md").read_text("utf-8")


def part(heading: str) -> str:
    """The text under a second-level heading of the configuration."""
    (found,) = re.findall(rf"(?ms)^## {re.escape(heading)}.*?(?=^## |\Z)", CONFIGURATION)
    return str(found)


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("[run]", RunConfig),
        ("[[games]]", SectionConfig),
        ("[engine]", EngineOptions),
        ("[memory]", MemoryOptions),
        ("[[players]]", Policy),
        *(("[[players]]", spec) for spec in SPECS.values()),
    ],
)
def test_every_key_is_documented(heading: str, model: type[BaseModel]) -> None:
    text = part(heading)
    missing = [key for key in model.model_fields if f"`{key}`" not in text]
    assert missing == []


def test_every_key_of_the_inner_tables_is_documented() -> None:
    text = part("[[games]]")
    for key in OpeningsConfig.model_fields:
        assert f"`openings.{key}`" in text
    (referee,) = re.findall(r"(?m)^\| `referee` .*$", text)
    for key in RefereeConfig.model_fields:
        assert re.search(rf"\b{key}\b", referee), key
    for rule in (DrawRule, ResignRule, Sprt):
        for field in dataclasses.fields(rule):
            assert re.search(rf"\b{field.name} = ", text), field.name


def test_no_key_is_documented_that_is_none() -> None:
    tables = (("[run]", RunConfig), ("[[games]]", SectionConfig), ("[memory]", MemoryOptions))
    for heading, model in tables:
        keys = re.findall(r"(?m)^\| `([a-z_]+)` \|", part(heading))
        assert set(keys) == set(model.model_fields), heading


def commands(command: Any, path: str = "arena") -> list[tuple[str, Any]]:
    """Every command by its full name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(path, command)]
    return [found for name, sub in inner.items() for found in commands(sub, f"{path} {name}")]


@pytest.mark.parametrize(("name", "command"), commands(get_command(app)))
def test_every_command_and_flag_is_documented(name: str, command: Any) -> None:
    found = re.findall(rf"(?ms)^## {re.escape(name)}(?: [A-Z\[].*?)?\n.*?(?=^## |\Z)", COMMANDS)
    assert len(found) == 1, name
    flags = {option for p in command.params if p.name != "help" for option in p.opts}
    flags = {flag for flag in flags if flag.startswith("-")}
    assert set(re.findall(r"`(--?[a-z-]+)`", found[0])) == flags
