"""A GGUF file's tokenizer as the tokenizer.json and tokenizer_config.json of the same model.

Byte-level BPE (GPT-2's kind: SmolLM2, Llama 3, Qwen) and SentencePiece's BPE (Llama 2, Mistral,
Gemma), whose merges follow from the scores of its pieces.
"""

from dataclasses import dataclass
from typing import Any

from .gguf_file import GgufFile
from .model_types import ModelError
from .recipe import elsewhere

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # token types
SPACE = "▁"


@dataclass(frozen=True, slots=True)
class _Split:
    """How text is cut before merging: GPT-2's way, after single digits, or by a pattern.

    `whole`: a piece that is a token itself is not built from merges.
    """

    pattern: str | None = None
    digits: bool = False
    nfc: bool = False
    whole: bool = False


SPLITS = {
    "gpt-2": _Split(),
    "smollm": _Split(digits=True),
    "qwen2": _Split(QWEN2, nfc=True),
    "deepseek-r1-qwen": _Split(QWEN2, nfc=True),
    "llama-bpe": _Split(LLAMA3, whole=True),
}


def tokenizer_json(file: GgufFile) -> str:
    """The `tokenizers` package's own form. Raises ModelError for an unknown kind."""
    from tokenizers import AddedToken, processors

    fields = file.fields
    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre", "gpt-2")
    tokens: list[str] = file.need_field("tokenizer.ggml.tokens")
    types: list[int] = file.need_field("tokenizer.ggml.token_type")
    if len(types) != len(tokens):
        raise ModelError(f"{file.path.name}: {len(tokens)} tokens, but {len(types)} token types")
    if kind == "gpt2" and pre in SPLITS:
        tokenizer = _byte_level(file, tokens, SPLITS[pre])
    elif kind == "llama":
        tokenizer = _sentencepiece(file, tokens, types)
    else:
        raise ModelError(
            f"{file.path.name}: unknown tokenizer {kind!r}/{pre!r}; {elsewhere(file.path)}"
        )
    tokenizer.add_tokens(
        [
            AddedToken(token, special=token_type != USER_DEFINED, normalized=False)
            for token, token_type in zip(tokens, types, strict=True)
            if token_type in (UNKNOWN, CONTROL, USER_DEFINED)
        ]
    )
    if adds_bos(file):
        bos_id = file.need_field("tokenizer.ggml.bos_token_id")
        bos = tokens[bos_id]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, bos_id)]
        )
    text: str = tokenizer.to_str(pretty=True)
    return text


def tokenizer_config(file: GgufFile) -> dict[str, Any]:
    """Special tokens and chat template."""
    fields = file.fields
    tokens = fields["tokenizer.ggml.tokens"]
    names = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}
    ids = {short: fields.get(f"tokenizer.ggml.{name}_token_id") for name, short in names.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{short}_token": tokens[i] for short, i in ids.items() if i is not None},
        "model_max_length": file.get("context_length"),
        "clean_up_tokenization_spaces": False,
        "chat_template": fields.get("tokenizer.chat_template"),
    }


def adds_bos(file: GgufFile) -> bool:
    """Whether a text begins with the begin token; SentencePiece's do where nothing is said."""
    spm = file.fields.get("tokenizer.ggml.model") == "llama"
    return bool(file.fields.get("tokenizer.ggml.add_bos_token", spm))


def _byte_level(file: GgufFile, tokens: list[str], split: _Split) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    merges = [tuple(pair.split(" ")) for pair in file.need_field("tokenizer.ggml.merges")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=split.whole))
    tokenizer.decoder = decoders.ByteLevel()
    if split.nfc:
        tokenizer.normalizer = normalizers.NFC()
    steps: list[Any] = [
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split.pattern is None)
    ]
    if split.digits:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    if split.pattern is not None:
        steps.insert(0, pre_tokenizers.Split(Regex(split.pattern), "isolated"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    return tokenizer


def _sentencepiece(file: GgufFile, tokens: list[str], types: list[int]) -> Any:
    """Bytes where no piece fits; a space before the first piece unless the file says no."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocabulary = {token: i for i, token in enumerate(tokens)}
    unknown = file.fields.get("tokenizer.ggml.unknown_token_id")
    tokenizer = Tokenizer(
        models.BPE(
            vocabulary,
            _merges(file, tokens, types),
            unk_token=None if unknown is None else tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if file.fields.get("tokenizer.ggml.add_space_prefix", True):
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
            replacement=SPACE, prepend_scheme="first", split=False
        )
        steps.append(decoders.Strip(" ", 1, 0))
    else:
        tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def _merges(file: GgufFile, tokens: list[str], types: list[int]) -> list[tuple[str, str]]:
    """Every way to build a piece of two others, the best scored piece first."""
    scores: list[float] = file.need_field("tokenizer.ggml.scores")
    if len(scores) != len(tokens):
        raise ModelError(f"{file.path.name}: {len(tokens)} tokens, but {len(scores)} scores")
    ids = {token: i for i, token in enumerate(tokens) if types[i] == NORMAL}
    merges = []
    for piece in sorted(ids, key=lambda piece: -scores[ids[piece]]):
        halves = ((piece[:i], piece[i:]) for i in range(1, len(piece)))
        found = [pair for pair in halves if pair[0] in ids and pair[1] in ids]
        merges += sorted(found, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    return merges
