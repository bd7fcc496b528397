"""From messages to the text of a prompt, by the model's own chat template.

The text is what transformers' `apply_chat_template` renders. Control-token strings inside content
(a player named `<|im_end|>`) must never become control tokens, so before rendering each of them
gets a private mark inside, and so does the edge of a string that could be half of one. After
rendering, a control-token string without a mark was written by the template; one with a mark came
from content and is plain text. Ordinary content has no marks and renders as it always would.

A base model has no template. It is given the messages' texts one after the other, an empty line
after each, which it continues.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from .model_config import ModelError, read_json
from .sandbox import BoundedEnvironment, TemplateError, budget

MARK = "\ufdd0"  # a Unicode noncharacter: never in text meant for interchange
MARK_ESCAPED = "\\ufdd0"  # as JSON with ensure_ascii writes it
REASONING = ("reasoning_content", "thinking", "reasoning")

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """`text` is the prompt for the record; `marked` also tells content from control tokens."""

    text: str
    marked: str

    @classmethod
    def trusted(cls, text: str) -> "RenderedPrompt":
        """A text whose control-token strings are all meant as such."""
        clean = text.replace(MARK, "")
        return cls(clean, clean)


class Marker:
    """Marks the control-token strings of one tokenizer inside content."""

    def __init__(self, control_tokens: Iterable[str]) -> None:
        tokens = sorted(set(control_tokens), key=len, reverse=True)
        self._whole = re.compile("|".join(map(re.escape, tokens)) or "(?!)")
        self._heads = {token[:i] for token in tokens for i in range(1, len(token))}
        self._tails = {token[i:] for token in tokens for i in range(1, len(token))}
        self._longest = max(map(len, tokens), default=0)

    def mark(self, value: Any) -> Any:
        """The same value with every string in it marked, keys included."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self.mark(key): self.mark(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mark(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        text = self._whole.sub(_split_token, text.replace(MARK, ""))
        reach = range(1, min(self._longest, len(text) + 1))
        if any(text[:i] in self._tails for i in reach):
            text = MARK + text
        if any(text[-i:] in self._heads for i in reach):
            text += MARK
        return text


def _split_token(match: "re.Match[str]") -> str:
    return match[0][:1] + MARK + match[0][1:]


class ChatTemplate:
    """One model's template and the names of its special tokens."""

    def __init__(
        self,
        sources: Mapping[str, str],
        names: Mapping[str, str],
        marker: Marker,
        origin: str,
        begin: str = "",
    ) -> None:
        """`begin`: the control tokens before a text, where no template writes them."""
        self._marker = marker
        self._begin = begin
        self._names = dict(names)
        self._origin = origin
        environment = BoundedEnvironment()
        try:
            self._templates = {
                name: environment.template_of(source) for name, source in sources.items()
            }
        except (jinja2.TemplateError, RecursionError, TemplateError) as error:
            raise ModelError(f"chat template of {origin}: {_line(error)}") from None

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], marker: Marker, begin: str = ""
    ) -> "ChatTemplate":
        """Template and special-token names of a directory; `config` is tokenizer_config.json."""
        names = {**_token_names(folder), **_names_in(config)}
        return cls(_sources(folder, config), names, marker, str(folder), begin)

    @property
    def exists(self) -> bool:
        return bool(self._templates)

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **switches: Any,
    ) -> RenderedPrompt:
        """`switches` are the template's own, such as enable_thinking.

        Raises TemplateError: no messages, messages the template refuses, a template that asks for
        too much; without a template, tools or a content that is no text.
        """
        if not messages:
            raise TemplateError("a chat needs at least one message")
        if not self._templates:
            return self._plain(messages, tools)
        name = "tool_use" if tools and "tool_use" in self._templates else "default"
        template = self._templates.get(name) or next(iter(self._templates.values()))
        values = {
            **self._names,
            "messages": self._marker.mark([_normal(message) for message in messages]),
            "tools": self._marker.mark(list(tools)) if tools is not None else None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **switches,
        }
        marked = self._rendered(template, values).replace(MARK_ESCAPED, MARK)
        return RenderedPrompt(marked.replace(MARK, ""), marked)

    def _plain(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None
    ) -> RenderedPrompt:
        texts = [message.get("content") for message in messages]
        if tools or not all(isinstance(text, str) for text in texts):
            raise TemplateError(f"{self._origin} has no chat template: it takes plain text only")
        marked = self._begin + "".join(f"{self._marker.mark(text)}\n\n" for text in texts)
        return RenderedPrompt(marked.replace(MARK, ""), marked)

    def _rendered(self, template: jinja2.Template, values: Mapping[str, Any]) -> str:
        try:
            with budget():
                return template.render(values)
        except TemplateError as error:
            raise TemplateError(f"{self._origin}: {error}") from None
        except Exception as error:  # whatever a stranger's template does wrong
            raise TemplateError(
                f"the chat template of {self._origin} refuses: {_line(error)}"
            ) from None


def _line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _normal(message: Message) -> dict[str, Any]:
    """Without absent values, and with reasoning under every name that templates read."""
    kept = {key: value for key, value in message.items() if value is not None}
    reasoning = next((kept[name] for name in REASONING if name in kept), None)
    if reasoning is None:
        return kept
    return {"thinking": reasoning, **kept, "reasoning_content": reasoning}


def _sources(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    file = folder / "chat_template.jinja"
    if file.is_file():
        try:
            return {"default": file.read_text(encoding="utf-8")}
        except (OSError, ValueError) as error:
            raise ModelError(f"{file} cannot be read: {error}") from None
    found = config.get("chat_template")
    if found is None and (folder / "chat_template.json").is_file():
        found = read_json(folder / "chat_template.json").get("chat_template")
    if isinstance(found, list):
        return {str(item["name"]): str(item["template"]) for item in found}
    return {} if found is None else {"default": str(found)}


def _token_names(folder: Path) -> dict[str, str]:
    file = folder / "special_tokens_map.json"
    return _names_in(read_json(file)) if file.is_file() else {}


def _names_in(config: Mapping[str, Any]) -> dict[str, str]:
    """bos_token, eos_token, … → their strings; written as a string or as {"content": string}."""
    names = {}
    for key, value in config.items():
        text = value.get("content") if isinstance(value, Mapping) else value
        if key.endswith("_token") and isinstance(text, str):
            names[key] = text
    return names


def special_names(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens a directory names: {"eos_token": "<|im_end|>", …}."""
    return {**_token_names(folder), **_names_in(config)}
