"""The texts of the prompts, one file a language, and the layouts that use them."""

from collections.abc import Mapping
from types import MappingProxyType

from .en import ENGLISH
from .es import SPANISH
from .ko import KOREAN
from .layout import Layout, Template, Words

LANGUAGES: Mapping[str, Words] = MappingProxyType({"en": ENGLISH, "ko": KOREAN, "es": SPANISH})

LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "history": Layout(1, ("moves",)),
        "position": Layout(1, ("moves", "fen")),
        "fen": Layout(1, ("moves", "fen", "legal")),
        "board": Layout(1, ("moves", "board")),
    }
)

TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {
        (name if code == "en" else f"{name}-{code}"): Template(
            name if code == "en" else f"{name}-{code}", layout, words
        )
        for name, layout in LAYOUTS.items()
        for code, words in LANGUAGES.items()
    }
)

__all__ = ["LANGUAGES", "LAYOUTS", "TEMPLATES", "Layout", "Template", "Words"]
