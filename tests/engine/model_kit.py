"""Small model directories and tokenizers, made on the spot."""

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CORPUS = (
    "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 O-O Nf6+ Qxf7# a2a10 d10e9",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "장기에서 초나라가 먼저 둡니다. 마와 상, 포와 차. 한나라 楚 漢",
    "The side to move plays a legal move. 🙂🏁 Answer with one move.",
    "user assistant system\n<answer> don't we'll",
)


def byte_level_tokenizer(*, control: tuple[str, ...] = CONTROL) -> Tokenizer:
    """GPT-2's kind, trained on a few lines; control tokens get the first ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(control),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def sentencepiece_like_tokenizer() -> Tokenizer:
    """Llama 2's kind: a space before the first piece only, bytes where no token fits."""
    control = ("<unk>", "<s>", "</s>")
    letters = "▁abcdefgh12345678장기 move"
    tokens = [*control, *(f"<0x{byte:02X}>" for byte in range(256)), *dict.fromkeys(letters)]
    merges = [("▁", "m"), ("▁m", "o"), ("e", "2"), ("e2", "e"), ("▁", "e")]
    tokens += ["".join(pair) for pair in merges]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)]
    )  # fmt: skip
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in control]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def write_tokenizer(folder: Path, tokenizer: Tokenizer, **config: Any) -> Path:
    """tokenizer.json and tokenizer_config.json; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    values = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    write_json(folder / "tokenizer_config.json", values)
    return folder


def chatml_dir(folder: Path, **config: Any) -> Path:
    """A directory with a byte-level tokenizer that speaks ChatML."""
    names = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "chat_template": CHATML}
    return write_tokenizer(folder, byte_level_tokenizer(), **{**names, **config})


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def llama_config(**changes: Any) -> dict[str, Any]:
    """config.json of a very small Llama."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 32,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **changes,
    }
