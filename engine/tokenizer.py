"""Text to token ids and back, on the `tokenizers` package.

Text is cut at control tokens (special added tokens) here, and what lies between is encoded with
control-token strings as plain text; both give the ids of encoding the whole, because the package
itself cuts there first. Encodings of such segments are cached: a prompt that grows by its last
message re-encodes that message alone, and the legal moves of a position are encoded from the last
control token of the prompt on.
"""

import json
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from .chat import MARK, ChatTemplate, Marker, Message, RenderedPrompt, special_names
from .model_config import ModelConfig, ModelError, ids_of, read_json
from .types import EngineError, Terminator, TokenIds

REPLACEMENT = "\ufffd"
MAX_WINDOW = 8  # tokens
PADDING = 0.01  # of an embedding's rows may have no token: Qwen's have 0.3 %
Prompt = RenderedPrompt | str | Sequence[Message]


class TokenBorderError(EngineError):
    """The tokens of prompt + choice do not begin with the prompt's tokens."""


class Tokenizer:
    """One model's tokenizer and chat template. Safe to share between threads."""

    def __init__(self, folder: Path, core: Any, config: dict[str, Any]) -> None:
        names = special_names(folder, config)
        _add_named(core, names)
        before = core.encode("").ids[:1]  # what is put before every text
        core.encode_special_tokens = True  # control-token strings are text; we cut at the others
        core.no_truncation()
        core.no_padding()
        self._folder = folder
        self._core = core
        self._later = _without_prefix(core)
        added = core.get_added_tokens_decoder()
        self._control: dict[str, int] = {
            token.content: i for i, token in added.items() if token.special
        }
        self._pattern = _pattern([token for token in added.values() if token.special])
        self.bos_token_id: int | None = _first(self._named_ids(names, "bos_token"))
        self.eos_token_ids: TokenIds = self._named_ids(names, "eos_token")
        begins = [i for i in before if i == self.bos_token_id or i not in self.eos_token_ids]
        begin = "".join(core.id_to_token(i) for i in begins)
        self._template = ChatTemplate.load(folder, config, Marker(self._control), begin)
        self._byte_ids = _byte_fallback_ids(core)
        self._plain = lru_cache(maxsize=1024)(self._encode_plain)
        self._choice = lru_cache(maxsize=65536)(self._encode_choice)

    @classmethod
    def load(cls, model_dir: Path | str) -> "Tokenizer":
        """Read tokenizer.json, tokenizer_config.json and the end tokens. Raises ModelError."""
        from tokenizers import Tokenizer as Core

        folder = Path(model_dir)
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise ModelError(
                f"{folder} has no tokenizer.json; make it where transformers is installed with "
                "`AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)`"
            )
        try:
            core = Core.from_str(file.read_text(encoding="utf-8"))
        except Exception as error:  # the package raises bare Exceptions
            raise ModelError(f"{file} cannot be read: {error}") from None
        config = folder / "tokenizer_config.json"
        try:
            tokenizer = cls(folder, core, read_json(config) if config.is_file() else {})
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ModelError(
                f"{folder}: a value in one of its JSON files is of the wrong kind: {error}"
            ) from None
        tokenizer._check_fits(_rows(folder))
        return tokenizer

    @property
    def vocab_size(self) -> int:
        """Tokens, added ones included. The model may have more rows than that."""
        size: int = self._core.get_vocab_size(with_added_tokens=True)
        return size

    @property
    def has_chat_template(self) -> bool:
        return self._template.exists

    def check_fits(self, config: ModelConfig) -> None:
        """Raises ModelError if the model has no embedding for an ordinary token, or embeddings
        without a token beyond what pads a vocabulary."""
        self._check_fits(config.vocab_size)

    def _check_fits(self, rows: int | None) -> None:
        if rows is None:
            return
        ordinary = self._core.get_vocab_size(with_added_tokens=False)
        if ordinary <= rows and self.vocab_size >= rows * (1 - PADDING):
            return
        raise ModelError(
            f"{self._folder}: the tokenizer has {max(ordinary, self.vocab_size)} tokens, the "
            f"model's embedding {rows}; tokenizer and weights are of different models"
        )

    def encode(self, text: str, *, allow_special: bool = True, add_bos: bool = False) -> TokenIds:
        """Token ids of a text. `allow_special`: control-token strings in it are control tokens.

        No begin token is added unless `add_bos`, and then only where the text has none.
        """
        ids = self._cut(text) if allow_special else self._plain(text, True)
        if add_bos and self.bos_token_id is not None and ids[:1] != (self.bos_token_id,):
            ids = (self.bos_token_id, *ids)
        return ids

    def decode(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of some tokens; bytes that make no character become U+FFFD."""
        text: str = self._core.decode(list(token_ids), skip_special_tokens=skip_special)
        return text

    def stream(self) -> "DecodeStream":
        """A fresh incremental detokenizer."""
        return DecodeStream(self)

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[dict[str, Any]] | None = None,
        **switches: Any,
    ) -> RenderedPrompt:
        """The prompt of some messages by the model's chat template. Raises TemplateError."""
        return self._template.render(
            messages, add_generation_prompt=add_generation_prompt, tools=tools, **switches
        )

    def encode_prompt(self, prompt: Prompt) -> TokenIds:
        """Ids of a prompt: template control tokens are control tokens, content never is.

        A plain string is trusted; messages are rendered first. The begin token is there exactly if
        the template writes it, as with transformers.
        """
        return self._cut(self._rendered(prompt).marked)

    def encode_choices(
        self, prompt: Prompt, choices: Sequence[str], terminator: Terminator = "none"
    ) -> tuple[TokenIds, ...]:
        """The tokens of each choice as they follow the prompt, without the prompt's.

        Encoded from the last control token of the prompt on. `eos` appends the token that ends a
        turn; `newline` encodes the choice with a line feed. Raises TokenBorderError where prompt +
        choice does not begin with the prompt's tokens, ValueError for an empty choice.
        """
        marked = self._rendered(prompt).marked
        end = max((match.end() for match in self._pattern.finditer(marked)), default=0)
        tail = marked[end:].replace(MARK, "")
        closing = "\n" if terminator == "newline" else ""
        last = (self.end_of_turn_id,) if terminator == "eos" else ()
        return tuple(self._choice(tail, choice, closing, end == 0) + last for choice in choices)

    @cached_property
    def end_of_turn_id(self) -> int:
        """The token with which the chat template ends an answer, else the first end token."""
        if self.has_chat_template:
            talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bcd"}]
            marked = self.render(talk, add_generation_prompt=False).marked
            match = self._pattern.search(marked, marked.rfind("bcd"))
            if match and (token := self._control_id(match[0])) in self.eos_token_ids:
                return token
        if not self.eos_token_ids:
            raise ModelError(f"{self._folder} names no end token (eos_token_id in config.json)")
        return self.eos_token_ids[0]

    def is_control(self, token_id: int) -> bool:
        """Whether this is a control token, which has no text of its own."""
        return token_id in self._control_ids

    def is_byte(self, token_id: int) -> bool:
        """Whether this is one of the `<0x..>` tokens of a byte-fallback tokenizer."""
        return token_id in self._byte_ids

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        return frozenset(self._control.values())

    def _rendered(self, prompt: Prompt) -> RenderedPrompt:
        if isinstance(prompt, str):
            return RenderedPrompt.trusted(prompt)
        return prompt if isinstance(prompt, RenderedPrompt) else self.render(prompt)

    def _cut(self, marked: str) -> TokenIds:
        """Control tokens by their ids, the text between them encoded as such."""
        ids: list[int] = []
        start = 0
        for match in self._pattern.finditer(marked):
            if match.start() > start:
                ids += self._plain(marked[start : match.start()].replace(MARK, ""), start == 0)
            ids.append(self._control_id(match[0]))
            start = match.end()
        if start < len(marked):
            ids += self._plain(marked[start:].replace(MARK, ""), start == 0)
        return tuple(ids)

    def _control_id(self, text: str) -> int:
        return self._control[text if text in self._control else text.strip()]

    def _encode_plain(self, text: str, first: bool) -> TokenIds:
        core = self._core if first else self._later
        return tuple(core.encode(_valid(text), add_special_tokens=False).ids)

    def _encode_choice(self, tail: str, choice: str, closing: str, first: bool) -> TokenIds:
        if not choice:
            raise ValueError("a choice is empty")
        before = self._plain(tail, first) if tail else ()
        whole = self._encode_plain(tail + choice + closing, first)
        if whole[: len(before)] != before or len(whole) == len(before):
            raise TokenBorderError(
                f"the tokens of the prompt's end {tail[-24:]!r} change when {choice!r} follows; "
                "end the prompt at a control token or a line"
            )
        return whole[len(before) :]

    def _named_ids(self, names: dict[str, str], key: str) -> TokenIds:
        """Ids under `<key>_id` in the generation and model configuration, then the named token."""
        found: list[int] = []
        for name in ("generation_config.json", "config.json"):
            file = self._folder / name
            raw = read_json(file) if file.is_file() else {}
            raw = {**raw.get("text_config", {}), **raw}
            found += ids_of(raw.get(f"{key}_id"))
        named = self._core.token_to_id(names[key]) if key in names else None
        if named is not None:
            found = [*found, named] if key == "eos_token" else [named, *found]
        return tuple(dict.fromkeys(found))


class DecodeStream:
    """Text of tokens that arrive one by one, whole characters only.

    The pieces joined are exactly the decoded whole. Only what may yet become a character is held
    back: the last U+FFFD of the decoded window, and runs of byte-fallback tokens, which decode
    together.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._window: list[int] = []  # since the last clean border, with one token of context
        self._sent = 0  # characters of the window's text that are out

    def push(self, token_id: int) -> str:
        """The text that this token completes, often empty inside a character."""
        if self._tokenizer.is_control(token_id):
            return ""
        self._window.append(token_id)
        if self._tokenizer.is_byte(token_id):
            return ""
        text = self._tokenizer.decode(self._window)
        stable = len(text) - (1 if text.endswith(REPLACEMENT) else 0)
        piece = text[self._sent : stable]
        self._sent = max(self._sent, stable)
        if stable == len(text):
            self._restart(1)
        elif len(self._window) > MAX_WINDOW:  # a run of lone bytes
            self._restart(4, held=1)  # an unfinished character has at most three
        return piece

    def _restart(self, num_tokens: int, held: int = 0) -> None:
        """Keep the last tokens as context; all of their text but `held` characters is out."""
        self._window = self._window[-num_tokens:]
        self._sent = len(self._tokenizer.decode(self._window)) - held

    def finish(self) -> str:
        """What was held back; incomplete bytes come as U+FFFD."""
        text = self._tokenizer.decode(self._window)
        piece = text[self._sent :]
        self._sent = len(text)
        return piece


def _valid(text: str) -> str:
    """Lone surrogates, which a JSON string can bring and UTF-8 cannot hold, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _first(ids: TokenIds) -> int | None:
    return ids[0] if ids else None


def _add_named(core: Any, names: dict[str, str]) -> None:
    """Tokens that tokenizer_config.json names as special are special, as in transformers."""
    from tokenizers import AddedToken

    special = {t.content for t in core.get_added_tokens_decoder().values() if t.special}
    missing = sorted(set(names.values()) - special)
    known = [token for token in missing if core.token_to_id(token) is not None]
    core.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in known])


def _pattern(tokens: Sequence[Any]) -> "re.Pattern[str]":
    """Matches a control token, the longest first, with the spaces it swallows."""
    parts = []
    for token in sorted(tokens, key=lambda t: len(t.content), reverse=True):
        left, right = (r"\s*" if side else "" for side in (token.lstrip, token.rstrip))
        before, after = (r"(?<!\w)", r"(?!\w)") if token.single_word else ("", "")
        parts.append(f"{left}{before}{re.escape(token.content)}{after}{right}")
    return re.compile("|".join(parts) or "(?!)")


def _rows(folder: Path) -> int | None:
    """Rows of the embedding as config.json says, of a vision model its text half's."""
    file = folder / "config.json"
    raw = read_json(file) if file.is_file() else {}
    size = raw.get("vocab_size", (raw.get("text_config") or {}).get("vocab_size"))
    return size if isinstance(size, int) else None


def _without_prefix(core: Any) -> Any:
    """The tokenizer for text that follows a control token.

    SentencePiece-like tokenizers put a space before the first piece of a text only.
    """
    from tokenizers import Tokenizer as Core

    top = _state(core.pre_tokenizer)
    if not any(item["prepend_scheme"] == "first" for item in _prepend_schemes(top)):
        return core
    parts = json.loads(core.to_str())
    for item in _prepend_schemes(parts["pre_tokenizer"]):
        if item["prepend_scheme"] == "first":
            item["prepend_scheme"] = "never"
    later = Core.from_str(json.dumps(parts))
    later.encode_special_tokens = True
    return later


def _state(part: Any) -> dict[str, Any]:
    """A part of a tokenizer as tokenizer.json writes it."""
    state: dict[str, Any] = {} if part is None else json.loads(part.__getstate__())
    return state


def _prepend_schemes(top: dict[str, Any]) -> list[dict[str, Any]]:
    """The pre-tokenizers that put a space before text, nested ones too."""
    return [item for item in (top, *top.get("pretokenizers", [])) if "prepend_scheme" in item]


def _byte_fallback_ids(core: Any) -> frozenset[int]:
    if "ByteFallback" not in json.dumps(_state(core.decoder)):
        return frozenset()
    ids = (core.token_to_id(f"<0x{byte:02X}>") for byte in range(256))
    return frozenset(i for i in ids if i is not None)
