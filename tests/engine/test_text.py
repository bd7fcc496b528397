"""Stop strings and pieces of text, over every split of a text into tokens."""

import codecs
from collections.abc import Iterator, Sequence

import pytest

from engine.text import OutputText


class Pieces:
    """A detokenizer whose token i is the i-th piece."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def push(self, token_id: int) -> str:
        return self._pieces[token_id]

    def finish(self) -> str:
        return ""


class Utf8:
    """A detokenizer whose tokens are bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        return self._decoder.decode(bytes([token_id]))

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)


def splits(text: str) -> Iterator[list[str]]:
    """All ways to cut a text into pieces."""
    if not text:
        yield []
    for i in range(1, len(text) + 1):
        for rest in splits(text[i:]):
            yield [text[:i], *rest]


def run(pieces: Sequence[str], stops: Sequence[str]) -> tuple[str, list[str], bool]:
    """The final text, what was sent step by step, and whether a stop string ended it."""
    text, sent = OutputText(Pieces(pieces), stops), []
    for token in range(len(pieces)):
        text.push(token)
        if text.stopped:
            break
        sent.append(text.take())
    text.finish()
    sent.append(text.take(everything=True))
    return text.text, sent, text.stopped


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("a movSTOP x", ["STOP"], "a mov"),
        ("STOPSTOP", ["STOP"], ""),
        ("aabaabx", ["aabx"], "aab"),
        ("abcdxxx", ["abcd", "bc"], "a"),
        ("xxabc", ["bc", "abc"], "xx"),
        ("one\n\ntwo", ["\n\n", "two"], "one"),
        ("abcabd", ["abx"], None),
        ("말을 둔다.", ["둔"], "말을 "),
    ],
)
def test_a_stop_ends_the_text_however_it_is_cut(
    text: str, stops: list[str], expected: str | None
) -> None:
    """EF22: earliest match, across every token border, and none of it is ever sent."""
    for pieces in splits(text):
        final, sent, stopped = run(pieces, stops)
        assert stopped == (expected is not None), pieces
        assert final == (text if expected is None else expected), pieces
        assert "".join(sent) == final, pieces


def test_text_is_sent_as_soon_as_it_cannot_be_a_stop() -> None:
    _, sent, _ = run(["a", "S", "T", "x", "S", "y"], ["STOP"])
    assert sent == ["a", "", "", "STx", "", "Sy", ""]
    _, sent, _ = run(["ab", "cd"], [])
    assert sent == ["ab", "cd", ""]


def test_streams_never_split_characters() -> None:
    """EF21: pieces joined are the whole decode; no replacement character before the end."""
    data = "한국 장기 將 👩‍👧 ok".encode() + b"\xf0\x9f"
    text, sent = OutputText(Utf8(), ["zzz"]), []
    for byte in data:
        text.push(byte)
        sent.append(text.take())
    assert "\ufffd" not in "".join(sent)
    text.finish()
    sent.append(text.take(everything=True))
    assert "".join(sent) == data.decode(errors="replace") == text.text
