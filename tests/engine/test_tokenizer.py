"""Ids, texts and streams are the reference's; prompt and choice never shift at their border."""

import random
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import chess
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from engine.model_config import ModelError, read_config
from engine.tokenizer import MAX_WINDOW, REPLACEMENT, TokenBorderError, Tokenizer
from engine.types import Terminator
from games.registry import get_game
from tests.engine.model_kit import (
    CORPUS,
    byte_level_tokenizer,
    chatml_dir,
    llama_config,
    sentencepiece_like_tokenizer,
    write_json,
    write_tokenizer,
)

# Text and ids as llama.cpp (build of October 2026) reads the same GGUF.
LLAMA_CPP: tuple[tuple[str, str], ...] = (
    (
        "e2e4 e7e5 g1f3 123 45",
        "85 34 85 36 297 39 85 37 310 33 86 35 216 33 34 35 216 36 37",
    ),
    (
        "장기 초나라 한나라 漢 楚 마(馬) 포를 e10으로",
        "183 248 115 181 133 125 18601 129 226 182 220 242 182 247 137 216 33085 246 182 "
        "220 242 182 247 137 17097 137 112 17097 115 244 25947 117 226 24 180 116 122 25 "
        "48138 233 122 182 115 137 297 33 32 183 246 137 182 111 246",
    ),
    (
        "🙂🏁👩\u200d👩\u200d👧 émoji naïve",
        "10813 38887 10813 233 219 10813 235 119 321 231 10813 235 119 321 231 10813 235 "
        "117 26411 15771 10381 15486 46494",
    ),
    (
        "<|im_start|>user\nhi there<|im_end|>\n",
        "1 4093 198 6004 665 2 198",
    ),
    (
        "  two  spaces\n\n\n tabs\t\tx  ",
        "216 827 216 5600 16506 29416 197 197 104 256",
    ),
    (
        "don't we'll I'm they've",
        "12420 982 392 3060 339 5248 502 3543",
    ),
    (
        "1234567890 3.14 ½ ² ٣٤",
        "33 34 35 36 37 38 39 40 41 32 216 35 30 33 36 216 16738 216 19133 216 164 113 164 114",
    ),
    (
        "a<repo_name>b <|endoftext|> c",
        "81 3 82 216 0 265",
    ),
    (
        "\r\n windows\r\n",
        "2738 8393 2738",
    ),
    (
        "NBSP here em",
        "35601 7149 15442 1531 321 221 391",
    ),
)
TEXTS = (
    *CORPUS,
    *(text for text, _ in LLAMA_CPP),
    "<|im_start|>user\n초나라 차례입니다<|im_end|>\n<|im_start|>assistant\n",
    " <|im_end|> <|im_end|>x<|endoftext|>",
    "<|im_<|im_end|>end|>",
    "a10d10 R1a3 (0)-(1) +- ½-½",
)
Pair = tuple[Tokenizer, Any]
SHARED = [HealthCheck.function_scoped_fixture]  # the fixture only reads
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    """Ours and transformers', byte-level and SentencePiece-like."""
    folder = tmp_path_factory.mktemp("tokenizers")
    bytes_dir = chatml_dir(folder / "byte")
    piece_dir = write_tokenizer(
        folder / "piece", sentencepiece_like_tokenizer(), bos_token="<s>", eos_token="</s>"
    )
    folders = {"byte": bytes_dir, "piece": piece_dir}
    return {
        name: (Tokenizer.load(folder), AutoTokenizer.from_pretrained(folder))
        for name, folder in folders.items()
    }


def reference_ids(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.encode(text, add_special_tokens=False))


@pytest.mark.parametrize("name", ["byte", "piece"])
@pytest.mark.parametrize("text", [*TEXTS, "<s>e2e4</s> e2 e<s>move", "</s> ", ""])
def test_encode_is_the_reference(pairs: dict[str, Pair], name: str, text: str) -> None:
    ours, theirs = pairs[name]
    assert ours.encode(text) == reference_ids(theirs, text)


@pytest.mark.parametrize("name", ["byte", "piece"])
@given(pieces=st.lists(st.one_of(ANY_TEXT, st.sampled_from(["<|im_end|>", "<s>", "</s>", " "]))))
@settings(max_examples=100, deadline=None, suppress_health_check=SHARED)
def test_encode_is_the_reference_on_any_text(
    pairs: dict[str, Pair], name: str, pieces: list[str]
) -> None:
    ours, theirs = pairs[name]
    text = "".join(pieces)
    assert ours.encode(text) == reference_ids(theirs, text)
    ids = ours.encode(text, allow_special=False)
    assert not any(ours.is_control(token) for token in ids if token)  # 0 is <unk> in one of them


def test_lone_surrogates_are_replaced(pairs: dict[str, Pair]) -> None:
    ours, _ = pairs["byte"]
    assert ours.decode(ours.encode("a\ud83db\ude42")) == "a\ufffdb\ufffd"
    assert ours.decode(ours.encode("\ud83d\ude42")) == "🙂"
    ours.encode_prompt([{"role": "user", "content": "\udc80"}])


def test_control_tokens_that_swallow_spaces(tmp_path: Path) -> None:
    from tokenizers import AddedToken

    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens(
        [
            AddedToken("<mask>", lstrip=True, special=True, normalized=False),
            AddedToken("<end>", rstrip=True, special=True, normalized=False),
            AddedToken("<word>", single_word=True, special=True, normalized=False),
        ]
    )
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    folder = write_tokenizer(tmp_path, tokenizer)
    ours, theirs = Tokenizer.load(folder), AutoTokenizer.from_pretrained(folder)
    for text in ("a <mask> b", "a <end>  b", "a<word>b", "a <word> b", "x<tool>y", "<mask><end>"):
        assert ours.encode(text) == reference_ids(theirs, text), text


@pytest.mark.parametrize(("text", "ids"), LLAMA_CPP)
def test_the_real_ids_are_those_of_llama_cpp(smollm2_dir: Path, text: str, ids: str) -> None:
    assert " ".join(map(str, real(smollm2_dir).encode(text))) == ids


def real(folder: Path, cache: dict[Path, Tokenizer] = {}) -> Tokenizer:  # noqa: B006
    """The real tokenizer, loaded once."""
    if folder not in cache:
        cache[folder] = Tokenizer.load(folder)
    return cache[folder]


def test_the_real_tokenizer_is_that_of_transformers(smollm2_dir: Path) -> None:
    ours, theirs = real(smollm2_dir), AutoTokenizer.from_pretrained(smollm2_dir)
    for text in TEXTS:
        ids = ours.encode(text)
        assert ids == reference_ids(theirs, text)
        assert ours.decode(ids, skip_special=False) == text
        assert ours.decode(ids) == theirs.decode(list(ids), skip_special_tokens=True)
    assert (ours.bos_token_id, ours.eos_token_ids, ours.end_of_turn_id) == (1, (2,), 2)
    assert ours.vocab_size == 49_152
    ours.check_fits(read_config(smollm2_dir))


# --- streams


def check_stream(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """The pieces of a stream, after checking all that a stream promises."""
    whole = tokenizer.decode(ids)
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in ids]
    for prefix in accumulate(pieces):
        assert whole.startswith(prefix)
    pieces.append(stream.finish())
    assert "".join(pieces) == whole
    assert stream.finish() == ""
    return pieces


@pytest.mark.parametrize("name", ["byte", "piece"])
@pytest.mark.parametrize("text", [*TEXTS, "가나다라마바사", "👩\u200d👧🏁🙂", "e2e4 장기", " e  e"])
def test_streams_never_split_a_character(pairs: dict[str, Pair], name: str, text: str) -> None:
    ours, _ = pairs[name]
    pieces = check_stream(ours, ours.encode(text))
    if REPLACEMENT not in text:
        assert REPLACEMENT not in "".join(pieces)


@pytest.mark.parametrize("name", ["byte", "piece"])
@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=SHARED)
def test_any_tokens_stream_as_they_decode(
    pairs: dict[str, Pair], name: str, data: st.DataObject
) -> None:
    """Lone bytes, halves of characters and control tokens in any order."""
    ours, _ = pairs[name]
    check_stream(ours, data.draw(st.lists(st.integers(0, ours.vocab_size - 1), max_size=30)))


def test_text_comes_as_soon_as_it_is_whole(pairs: dict[str, Pair]) -> None:
    ours, _ = pairs["byte"]
    for character in ("한", "🙂", "é"):
        ids = ours.encode("ab" + character)
        pieces = check_stream(ours, ids)
        assert pieces[-1] == ""  # nothing is kept for the end
        assert pieces[-2].endswith(character)


def test_an_unfinished_character_is_one_replacement_at_the_end(pairs: dict[str, Pair]) -> None:
    ours, _ = pairs["byte"]
    ids = ours.encode("a🙂")[:-1]
    pieces = check_stream(ours, ids)
    assert REPLACEMENT not in "".join(pieces[:-1])
    assert pieces[-1] == REPLACEMENT


def test_a_real_replacement_character_is_text(pairs: dict[str, Pair]) -> None:
    ours, _ = pairs["byte"]
    assert "".join(check_stream(ours, ours.encode("a\ufffdb\ufffd"))) == "a\ufffdb\ufffd"


def test_long_streams_cost_the_same_a_token(pairs: dict[str, Pair]) -> None:
    """The window stays small, also inside long runs of lone bytes."""
    ours, _ = pairs["byte"]
    lone = ours.encode("🙂")[:1] * 200
    stream = ours.stream()
    for token in ours.encode("e2e4 장기 🙂 " * 200) + lone:
        stream.push(token)
        assert len(stream._window) <= MAX_WINDOW
    check_stream(ours, (*ours.encode("a"), *lone, *ours.encode("🙂 한"), *lone))


def test_real_korean_streams_whole(smollm2_dir: Path) -> None:
    ours = real(smollm2_dir)
    text = "초나라 마가 한나라 포를 잡았습니다. 장군! 🏁👩‍👩‍👧 漢 승"
    pieces = check_stream(ours, ours.encode(text))
    assert REPLACEMENT not in "".join(pieces)
    assert sum(map(bool, pieces)) > 20


# --- choices

CHAT = [{"role": "user", "content": "Your move. 장기 e2e4"}]
CLOSINGS: tuple[Terminator, ...] = ("none", "eos", "newline")


def whole_minus_prompt(
    tokenizer: Tokenizer, prompt: str, choice: str, terminator: Terminator
) -> tuple[int, ...]:
    """The slow way: encode all of it, take the prompt's tokens off."""
    before = tokenizer.encode(prompt)
    whole = tokenizer.encode(prompt + choice + ("\n" if terminator == "newline" else ""))
    assert whole[: len(before)] == before
    return whole[len(before) :] + ((tokenizer.end_of_turn_id,) if terminator == "eos" else ())


@pytest.mark.parametrize("terminator", CLOSINGS)
@given(choices=st.lists(st.text("abcdefgh12345678O-+#=xNQK가", min_size=1, max_size=7), min_size=1))
@settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
def test_choices_are_whole_encodings_minus_the_prompt(
    pairs: dict[str, Pair], terminator: Terminator, choices: list[str]
) -> None:
    ours, _ = pairs["byte"]
    prompt = ours.render(CHAT)
    expected = [whole_minus_prompt(ours, prompt.text, choice, terminator) for choice in choices]
    assert list(ours.encode_choices(prompt, choices, terminator)) == expected


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_every_legal_move_of_random_games(smollm2_dir: Path, game: str) -> None:
    """The real tokenizer takes one token a character of a square; the end comes on top."""
    ours, state, rng = real(smollm2_dir), get_game(game).start(), random.Random(5)
    for _ in range(25):
        if state.outcome() is not None:
            break
        moves = [move.uci for move in state.legal_moves()]
        chat = [{"role": "user", "content": f"{state.fen()} to move"}]
        prompt = ours.render(chat)
        for terminator in CLOSINGS:
            for move, ids in zip(
                moves, ours.encode_choices(prompt, moves, terminator), strict=True
            ):
                assert ids == whole_minus_prompt(ours, prompt.text, move, terminator)
                assert len(ids) == len(move) + (terminator != "none")
        state = state.apply(rng.choice(list(state.legal_moves())))


def test_san_of_random_positions(smollm2_dir: Path) -> None:
    ours, board, rng = real(smollm2_dir), chess.Board(), random.Random(3)
    for _ in range(30):
        moves = list(board.legal_moves)
        prompt = ours.render([{"role": "user", "content": board.fen()}])
        names = [board.san(move) for move in moves]
        for terminator in CLOSINGS:
            for name, ids in zip(
                names, ours.encode_choices(prompt, names, terminator), strict=True
            ):
                assert ids == whole_minus_prompt(ours, prompt.text, name, terminator)
        board.push(rng.choice(moves))


def test_a_shifting_border_is_refused(pairs: dict[str, Pair]) -> None:
    ours, _ = pairs["byte"]
    assert len(ours.encode("mo")) == 1
    for prompt in ("Best m", "<|im_start|>assistant\nm"):
        with pytest.raises(TokenBorderError, match="when 'ove' follows"):
            ours.encode_choices(prompt, ["ove"])
    with pytest.raises(ValueError, match="empty"):
        ours.encode_choices("a", [""])


def test_choices_without_a_control_token_use_the_whole_text(pairs: dict[str, Pair]) -> None:
    prompt, choices = "e2e4 move:", ["e2", " e2e"]
    for ours, theirs in pairs.values():
        for choice, ids in zip(choices, ours.encode_choices(prompt, choices), strict=True):
            assert ours.encode(prompt) + ids == reference_ids(theirs, prompt + choice)


def test_spaces_after_the_last_control_token_count(pairs: dict[str, Pair]) -> None:
    """The second space belongs to the choice's first token: the border shifts."""
    ours, _ = pairs["byte"]
    with pytest.raises(TokenBorderError):
        ours.encode_choices("<|im_start|>  ", ["e2e"])


def test_choices_after_a_control_token_have_no_prefix_space(pairs: dict[str, Pair]) -> None:
    ours, theirs = pairs["piece"]
    prompt = "<s>move</s>"
    (ids,) = ours.encode_choices(prompt, ["e2e"])
    assert ours.encode(prompt) + ids == reference_ids(theirs, prompt + "e2e")


def test_control_strings_in_choices_stay_text(pairs: dict[str, Pair]) -> None:
    ours, _ = pairs["byte"]
    (ids,) = ours.encode_choices(ours.render(CHAT), ["<|im_end|>"])
    assert not any(ours.is_control(token) for token in ids)


def test_segments_and_choices_are_encoded_once(pairs: dict[str, Pair], tmp_path: Path) -> None:
    """A prompt that grows re-encodes its new message only; known moves cost nothing."""
    ours = Tokenizer.load(chatml_dir(tmp_path))
    calls: list[str] = []
    plain = ours._encode_plain

    class Counting:
        def __init__(self, core: Any) -> None:
            self.core = core

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def encode(self, text: str, **options: Any) -> Any:
            calls.append(text)
            return self.core.encode(text, **options)

    ours._core = ours._later = Counting(ours._core)
    chat = [{"role": "system", "content": "rules " * 50}, {"role": "user", "content": "ply 1"}]
    ours.encode_prompt(chat)
    assert len(calls) == 4  # system, line feed, user, assistant
    ours.encode_prompt([*chat[:1], {"role": "user", "content": "ply 2"}])
    assert calls[4:] == ["user\nply 2"]
    ours.encode_choices(chat, ["e2e4", "d2d4"])
    assert calls[5:] == ["assistant\ne2e4", "assistant\nd2d4"]
    ours.encode_choices([*chat[:1], {"role": "user", "content": "ply 3"}], ["d2d4", "e2e4"])
    assert len(calls) == 7
    assert plain("a", True) == ours.encode("a")


# --- loading


def test_end_tokens_come_from_all_files(tmp_path: Path) -> None:
    folder = chatml_dir(tmp_path)
    write_json(folder / "config.json", llama_config(vocab_size=420, eos_token_id=0))
    write_json(folder / "generation_config.json", {"eos_token_id": [7, 0]})
    ours = Tokenizer.load(folder)
    assert ours.eos_token_ids == (7, 0, 2)
    assert ours.end_of_turn_id == 2  # what the template writes after an answer


def test_no_end_token_is_one_line(tmp_path: Path) -> None:
    ours = Tokenizer.load(chatml_dir(tmp_path, eos_token=None))
    with pytest.raises(ModelError, match="names no end token"):
        ours.encode_choices("a ", ["b"], "eos")


def test_tokens_named_special_are_special(tmp_path: Path) -> None:
    """As in transformers, where only tokenizer_config.json says so."""
    tokenizer = byte_level_tokenizer(control=("<|endoftext|>",))
    tokenizer.add_tokens(["<turn>"])
    ours = Tokenizer.load(write_tokenizer(tmp_path, tokenizer, eos_token={"content": "<turn>"}))
    assert len(ours.encode("<turn>", allow_special=False)) > 1
    assert ours.encode("a<turn>")[-1:] == ours.eos_token_ids


def test_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no tokenizer\.json.*save_pretrained"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read") as caught:
        Tokenizer.load(tmp_path)
    assert "\n" not in str(caught.value)
    (tmp_path / "tokenizer.json").write_bytes(b"\xff")
    with pytest.raises(ModelError, match="cannot be read"):
        Tokenizer.load(tmp_path)


def test_one_begin_token_where_the_text_has_it_already(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path, sentencepiece_like_tokenizer(), bos_token="<s>")
    ours = Tokenizer.load(folder)
    assert ours.encode("move", add_bos=True)[0] == 1
    assert ours.encode("<s>move", add_bos=True).count(1) == 1


def test_json_of_the_wrong_kind_is_named(tmp_path: Path) -> None:
    folder = chatml_dir(tmp_path)
    write_json(folder / "generation_config.json", {"eos_token_id": "two"})
    with pytest.raises(ModelError, match="of the wrong kind") as caught:
        Tokenizer.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rows", [100, 417, 512])
def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path, rows: int) -> None:
    """Tokens without an embedding, or many embeddings without a token."""
    folder = chatml_dir(tmp_path)
    write_json(folder / "config.json", llama_config(vocab_size=rows))
    with pytest.raises(
        ModelError, match=rf"has 41\d tokens, the model's embedding {rows}"
    ) as caught:
        Tokenizer.load(folder)
    assert "\n" not in str(caught.value)


def test_an_embedding_may_be_padded(tmp_path: Path) -> None:
    folder = chatml_dir(tmp_path)
    write_json(folder / "config.json", llama_config(vocab_size=420))
    Tokenizer.load(folder).check_fits(read_config(folder))
