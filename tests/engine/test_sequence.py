"""One sequence: forced tokens, forks, ends, text."""

import pytest

from engine.choices import ChoiceSet
from engine.sequence import Sequence
from engine.text import OutputText
from engine.types import (
    Completion,
    EngineError,
    Request,
    SamplingParams,
    SequenceOutput,
    TokenIds,
)

from .drive import Drive
from .fake_runner import FakeRunner, answer_alone
from .test_text import Pieces


def sequence(
    request: Request,
    *,
    eos: TokenIds = (),
    max_model_len: int = 100,
    pieces: list[str] | None = None,
) -> Sequence:
    choices = None if request.choices is None else ChoiceSet.build(request.choices)
    text = None if pieces is None else OutputText(Pieces(pieces), request.sampling.stop)
    return Sequence(
        request,
        submitted=0.0,
        max_model_len=max_model_len,
        eos_token_ids=frozenset(eos),
        choices=choices,
        text=text,
    )


def feed(s: Sequence, token: int, now: float = 1.0) -> str:
    """One step over all that is pending, which draws `token`."""
    return s.accept(s.step(s.num_pending), SequenceOutput(token=token, logprob=-1.0), now)


def done(s: Sequence) -> Completion:
    result = s.result(2.0)
    assert isinstance(result, Completion)
    return result


def test_rows_ask_for_a_token_only_at_their_end() -> None:
    s = sequence(Request("r", (1, 2, 3, 4)))
    first = s.step(3)
    assert (first.tokens, first.start, first.sample, first.trie) == ((1, 2, 3), 0, None, None)
    assert s.accept(first, SequenceOutput(), 1.0) == ""
    assert (s.num_pending, s.is_decoding, s.first_token) == (1, False, None)
    last = s.step(1)
    assert last.sample is not None
    assert (last.tokens, last.start, last.sample.position) == ((4,), 3, 4)
    assert last.sample.history == ()
    feed(s, 7)
    assert (s.tokens, s.num_computed, s.num_pending, s.is_decoding) == ([1, 2, 3, 4, 7], 4, 1, True)


def test_history_is_there_only_for_a_repetition_penalty() -> None:
    s = sequence(Request("r", (1, 2), SamplingParams(repetition_penalty=1.2)))
    feed(s, 5)
    spec = s.step(1).sample
    assert spec is not None
    assert spec.history == (1, 2, 5)


@pytest.mark.parametrize(
    ("params", "eos", "fed", "reason"),
    [
        (SamplingParams(max_tokens=3), (9,), (5, 6, 7), "length"),
        (SamplingParams(max_tokens=9), (9,), (5, 9), "stop"),
        (SamplingParams(max_tokens=2, ignore_eos=True), (9,), (9, 9), "length"),
        (SamplingParams(max_tokens=9, stop_token_ids=(4,)), (9,), (5, 4), "stop"),
        (SamplingParams(max_tokens=9, stop_token_ids=(4,), ignore_eos=True), (9,), (9, 4), "stop"),
        (SamplingParams(max_tokens=2), (9,), (5, 9), "stop"),
    ],
)
def test_ends(params: SamplingParams, eos: TokenIds, fed: TokenIds, reason: str) -> None:
    s = sequence(Request("r", (1,), params), eos=eos)
    for i, token in enumerate(fed):
        assert s.finish_reason is None, i
        feed(s, token)
    assert (done(s).finish_reason, done(s).tokens) == (reason, fed)


def test_the_model_length_ends_an_answer() -> None:
    s = sequence(Request("r", (1, 2, 3)), max_model_len=5)
    feed(s, 5)
    assert s.finish_reason is None
    feed(s, 5)
    assert done(s).finish_reason == "length"


def test_a_stop_string_ends_it_and_is_not_sent() -> None:
    request = Request("r", (1,), SamplingParams(max_tokens=9, stop=("END",)))
    s = sequence(request, pieces=["a", " E", "N", "D!"])
    assert [feed(s, token) for token in range(4)] == ["a", " ", "", ""]
    assert (done(s).text, done(s).finish_reason, done(s).tokens) == ("a ", "stop", (0, 1, 2, 3))


def test_an_end_token_has_no_text_and_lets_go_what_was_held() -> None:
    request = Request("r", (1,), SamplingParams(max_tokens=9, stop=("END",)))
    s = sequence(request, eos=(9,), pieces=["a", " E"])
    assert [feed(s, token) for token in (0, 1, 9)] == ["a", " ", "E"]
    assert done(s).text == "a E"


def test_forced_tokens_are_appended_without_a_pass() -> None:
    request = Request("r", (1, 2), choices=((5, 6, 7), (5, 6, 8, 9, 10), (5, 6, 8, 9, 11)))
    s = sequence(request)
    assert s.tokens == [1, 2, 5, 6], "the root has one child"
    step = s.step(s.num_pending)
    assert step.sample is not None
    assert (step.tokens, step.sample.position, step.sample.allowed) == ((1, 2, 5, 6), 4, (7, 8))
    feed(s, 8)
    assert s.tokens == [1, 2, 5, 6, 8, 9]
    step = s.step(s.num_pending)
    assert step.tokens == (8, 9), "rows of the next step, since it is needed"
    feed(s, 11)
    found = done(s)
    assert (found.choice, found.finish_reason) == (2, "choice")
    assert found.tokens == (5, 6, 8, 9, 11)
    assert found.logprobs == (None, None, -1.0, None, -1.0)
    assert (found.stats.forced_tokens, found.stats.computed_tokens) == (3, 6)


def test_forced_tokens_at_the_end_are_never_computed() -> None:
    s = sequence(Request("r", (1,), choices=((5, 6, 7), (8, 9))))
    feed(s, 5)
    assert done(s).tokens == (5, 6, 7)
    assert done(s).stats.computed_tokens == 1


def test_a_single_choice_needs_no_pass_at_all() -> None:
    drive = Drive()
    drive.add(Request("r", (1, 2), choices=((5, 6),)))
    found = drive.completion("r")
    assert (found.tokens, found.choice, found.stats.computed_tokens) == ((5, 6), 0, 0)
    assert drive.runner.plans == []


def test_a_fork_asks_for_its_childrens_probabilities() -> None:
    s = sequence(Request("r", (1,), choices=((5,), (5, 6), (5, 7))))
    assert s.tokens == [1, 5]
    step = s.step(2)
    assert step.trie is not None
    assert (step.sample, step.num_rows, step.trie.edges) == (None, 2, ((-1, 6), (-1, 7)))
    s.accept(step, SequenceOutput(edge_logprobs=(-3.0, -3.0)), 1.0)
    assert (done(s).choice, done(s).tokens, done(s).logprobs) == (0, (5,), (None,))
    s = sequence(Request("r", (1,), choices=((5,), (5, 6), (5, 7))))
    s.accept(s.step(2), SequenceOutput(edge_logprobs=(-3.0, -0.1)), 1.0)
    assert (done(s).choice, done(s).tokens, done(s).logprobs) == (2, (5, 7), (None, -0.1))


def test_a_runner_that_answers_nothing_is_an_error() -> None:
    s = sequence(Request("r", (1,)))
    with pytest.raises(EngineError, match="no token"):
        s.accept(s.step(1), SequenceOutput(), 1.0)
    s = sequence(Request("r", (1,), choices=((1,), (2,)), score=True))
    with pytest.raises(EngineError, match="no log-probabilities"):
        s.accept(s.step(1), SequenceOutput(token=1), 1.0)


def test_walks_and_seeds_are_as_alone_whatever_the_neighbours() -> None:
    """EF09, EF10: a seed draws the same in any slot beside any neighbours; another seed may not."""
    choices = tuple((a, b, c) for a in (3, 4) for b in (5, 6, 7) for c in (8, 9))

    def request(name: str, seed: int, walk: bool) -> Request:
        params = SamplingParams(max_tokens=8, temperature=1.0, seed=seed)
        return Request(name, (1, 2, 3), params, choices if walk else None)

    for walk in (False, True):
        drive = Drive(FakeRunner(num_blocks=200))
        seeds = [5, 1, 5, 2, 3, 5]
        drive.run(*(request(f"r{i}", seed, walk) for i, seed in enumerate(seeds)))
        found = [drive.completion(f"r{i}").tokens for i in range(len(seeds))]
        assert found[0] == found[2] == found[5] == answer_alone(request("x", 5, walk), 32, 128)
        assert len(set(found)) > 1
