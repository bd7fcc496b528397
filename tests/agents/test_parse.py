"""The answer reader: what it accepts, what it refuses, and in which order it looks."""

import pytest

from agents.parse import Reading, parse_answer
from games.base import GameState
from tests.agents.kit import position, shared_lines

START = position("chess")
BLACK = position("chess", "e2e4")
ITALIAN = position("chess", "e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5")
JANGGI = position("janggi")
HAN = position("janggi", "a4b4")
TAKE = position("chess", fen="k7/8/8/8/8/2n5/1P1B4/K7 w - - 0 40")
PAWN_ONLY = position("chess", fen="k7/8/8/8/8/2n5/1P2B3/K7 w - - 0 40")
BISHOP_ONLY = position("chess", fen="k7/8/8/8/8/2n5/P2B4/K7 w - - 0 40")
PROMOTE = position("chess", fen="8/4P1k1/8/8/8/8/6K1/8 w - - 0 60")
ROOKS = position("chess", fen="6k1/8/8/8/8/8/5PPP/R4RK1 w - - 0 30")
EN_PASSANT = position("chess", fen="rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3")
CHARIOT = position("janggi", fen="3k5/9/9/9/9/9/9/9/4K4/R8 w - - 0 1")
CHECKED = position("janggi", fen="3k5/9/3R5/9/9/9/9/9/9/5K3 b - - 0 1")

MOVES: list[tuple[GameState, str, str]] = [
    (START, "e4", "e2e4"),
    (START, "G1F3", "g1f3"),
    (START, "g1 f3", "g1f3"),
    (START, "e2→e4", "e2e4"),
    (START, "E2e4", "e2e4"),
    (START, "Ng1-f3", "g1f3"),
    (START, "Ngf3", "g1f3"),
    (START, "NF3", "g1f3"),
    (START, "nf3", "g1f3"),
    (START, "Nf3+", "g1f3"),
    (START, "♘f3", "g1f3"),
    (START, "Ｎｆ３", "g1f3"),
    (START, "e\u200b4", "e2e4"),
    (START, "e&#52;", "e2e4"),
    (START, "**e4**", "e2e4"),
    (START, "```\nd4\n```", "d2d4"),
    (START, "### Final Answer\n\n**Nf3**", "g1f3"),
    (START, "Final Answer:\n```\ne4\n```", "e2e4"),
    (START, "I first thought of d4. Final Answer: d4\n\nWait.\n\nFinal Answer: e4", "e2e4"),
    (START, "Final Answer: e4\n\nd4 was close.", "e2e4"),
    (START, "Final Answer: e4\n\nFinal Answer:", "e2e4"),
    (START, '{"candidates": ["Nc3"], "rejected": "f4", "move": "Nf3", "reply": "Nc6"}', "g1f3"),
    (START, '{"move": "d4", "why": "final answer: e4 is worse"}', "d2d4"),
    (START, '{"move": "e4", "alternatives": [{"move": "d4"}]}', "e2e4"),
    (START, '{"move": "d4", }', "d2d4"),
    (START, "<move>d2d4</move>", "d2d4"),
    (START, "&lt;move&gt;e4&lt;/move&gt;", "e2e4"),
    (START, "I will use <move> tags. e4 is tempting.\n<move>d4</move>", "d2d4"),
    (START, r"The answer is $\boxed{\text{e4}}$.", "e2e4"),
    (START, "1. e4 e5 2. Nf3", "e2e4"),
    (START, "e4 e5", "e2e4"),
    (START, "최종 답: e4", "e2e4"),
    (START, "저는 Nf3를 두겠습니다.", "g1f3"),
    (START, "다음 수는 e4입니다.", "e2e4"),
    (START, "Respuesta final: e4", "e2e4"),
    (START, "最终答案：d4。", "d2d4"),
    (START, "<think>d4? Final Answer: d4</think>\n\ne4", "e2e4"),
    (START, "d4 maybe\n</think>\ne4", "e2e4"),
    (START, "knight to f3", "g1f3"),
    (START, "I move my pawn from e2 to e4.", "e2e4"),
    (START, "My move: e4. If c5, then Nf3", "e2e4"),
    (START, "I will not resign. Final Answer: e4", "e2e4"),
    (START, "Nf3 (knight develops)", "g1f3"),
    (START, "Nf3\n\nThis develops the knight.", "g1f3"),
    (START, "1. Nf3\n\nThis develops the knight.", "g1f3"),
    (BLACK, "1... c5", "c7c5"),
    (BLACK, "1…e5", "e7e5"),
    (BLACK, "<p><b>e5</b></p>", "e7e5"),
    (ITALIAN, "O–O", "e1g1"),
    (ITALIAN, "0-0", "e1g1"),
    (ITALIAN, "o-o", "e1g1"),
    (ITALIAN, "I castle kingside.", "e1g1"),
    (ITALIAN, "Bxf7++", "c4f7"),
    (TAKE, "bxc3", "b2c3"),
    (TAKE, "Bxc3", "d2c3"),
    (PROMOTE, "e8=Q", "e7e8q"),
    (PROMOTE, "e8Q", "e7e8q"),
    (PROMOTE, "e8(Q)", "e7e8q"),
    (PROMOTE, "e8/Q", "e7e8q"),
    (PROMOTE, "e7e8N", "e7e8n"),
    (ROOKS, "Rfd1", "f1d1"),
    (EN_PASSANT, "exf6 e.p.", "e5f6"),
    (EN_PASSANT, "exf6ep", "e5f6"),
    (JANGGI, "B1C3", "b1c3"),
    (JANGGI, "79졸78", "i4h4"),
    (JANGGI, "79楚卒78", "i4h4"),
    (JANGGI, "P79-78", "i4h4"),
    (JANGGI, "Hb1-c3", "b1c3"),
    (JANGGI, "pass", "e2e2"),
    (JANGGI, "@@@@", "e2e2"),
    (JANGGI, "한수 쉼", "e2e2"),
    (JANGGI, "I will not pass here. Final Answer: b1c3", "b1c3"),
    (HAN, "Final Answer: PASS", "e9e9"),
    (HAN, "12漢馬33", "b10c8"),
    (HAN, "저는 a7b7로 두겠습니다.", "a7b7"),
    (CHARIOT, "a1a10", "a1a10"),
    (CHARIOT, "01차11장군", "a1a10"),
]


@pytest.mark.parametrize(("state", "answer", "uci"), MOVES, ids=[text for _, text, _ in MOVES])
def test_reads_the_move(state: GameState, answer: str, uci: str) -> None:
    reading = parse_answer(state, answer)
    assert (reading.kind, reading.uci) == ("move", uci)
    assert reading.span is not None
    assert 0 <= reading.span[0] < reading.span[1] <= len(answer)


FAILURES: list[tuple[GameState, str, str]] = [
    (START, "", "empty"),
    (START, " \n\t", "empty"),
    (START, "<think>I should play e4.</think>", "empty"),
    (START, "<think>Final Answer: e4", "truncated"),
    (START, "White should develop quickly.", "unparsable"),
    (START, "The pawn on e4 and the knight on f3 work together against d4.", "unparsable"),
    (START, "Final Answer: not e4", "unparsable"),
    (START, "Final Answer: e4 is not possible", "unparsable"),
    (START, "Cf3", "illegal"),
    (START, "e4 or d4", "ambiguous"),
    (START, "Final Answer: e4/d4", "ambiguous"),
    (START, "Final Answer: e4, d4", "ambiguous"),
    (START, "e4\n\nd4", "ambiguous"),
    (START, "My move is e4.\nMy move is d4.", "ambiguous"),
    (START, "- e4\n- d4\n- c4", "ambiguous"),
    (START, "**24... Nf3**\nNow White forces a draw.", "unparsable"),
    (START, "**24. Nf3**\nNow White forces a draw.", "unparsable"),
    (START, "--", "illegal"),
    (START, "0000", "illegal"),
    (START, "Z0", "illegal"),
    (START, "@@@@", "illegal"),
    (START, "Final Answer: --", "illegal"),
    (START, "I pass.", "unparsable"),
    (START, "O-O", "illegal"),
    (START, "e7e5", "illegal"),
    (START, "e2e9", "unparsable"),
    (START, '{"move": null}', "unparsable"),
    (START, 'e4 is good.\n{"move": "e2e5"}', "illegal"),
    (START, "Nf3 hits e5.\nFinal Answer: Bb6", "illegal"),
    (START, "  a b c d e f g h\n8 r n b q\n2 P P P P\n  a b c d e f\n1", "unparsable"),
    (START, "Bс4", "unparsable"),  # the second letter is Cyrillic
    (START, "I'm sorry, but I can't help with that.", "refused"),
    (START, "I resign.", "resign"),
    (START, "RESIGN", "resign"),
    (START, "Final Answer: resign", "resign"),
    (START, "기권합니다.", "resign"),
    (START, "Black should resign soon.", "unparsable"),
    (START, "I offer a draw.", "draw_offer"),
    (BISHOP_ONLY, "bxc3", "illegal"),
    (PAWN_ONLY, "Bxc3", "illegal"),
    (TAKE, "BXC3", "ambiguous"),
    (PROMOTE, "e8", "ambiguous"),
    (PROMOTE, "e7e8", "ambiguous"),
    (PROMOTE, "e8=K", "illegal"),
    (ROOKS, "Rd1", "ambiguous"),
    (JANGGI, "0000", "unparsable"),
    (JANGGI, "79마78", "illegal"),
    (JANGGI, "7978", "unparsable"),
    (JANGGI, "j1j2", "unparsable"),
    (JANGGI, "a11a10", "unparsable"),
    (JANGGI, "h3e3", "illegal"),
    (JANGGI, "pass is not what I want", "unparsable"),
    (CHARIOT, "a1a1", "illegal"),
    (CHARIOT, "a1a11", "unparsable"),
    (CHARIOT, "빅장", "unparsable"),
    (CHECKED, "pass", "illegal"),
]


@pytest.mark.parametrize(
    ("state", "answer", "kind"), FAILURES, ids=[repr(text) for _, text, _ in FAILURES]
)
def test_refuses(state: GameState, answer: str, kind: str) -> None:
    assert parse_answer(state, answer).kind == kind


@pytest.mark.parametrize(
    ("state", "answer", "kind"),
    [
        (START, "Final Answer: e4", "move"),
        (START, "Final Answer: e4\nbecause it", "move"),
        (START, "Final Answer: N", "truncated"),
        (START, "Let us compare e4, d4 and", "truncated"),
        (START, "I play e4 because", "truncated"),
        (START, "", "truncated"),
        (PROMOTE, "Final Answer: e8", "truncated"),
        (PROMOTE, "Final Answer: e8=Q", "move"),
        (CHARIOT, "a1a1", "truncated"),
        (CHARIOT, "a1a10", "move"),
        (ITALIAN, "O-O", "move"),
    ],
)
def test_a_cut_answer_counts_only_if_nothing_legal_goes_on_from_it(
    state: GameState, answer: str, kind: str
) -> None:
    assert parse_answer(state, answer, truncated=True).kind == kind


def test_a_short_castling_that_may_be_a_long_one_is_cut() -> None:
    both = position("chess", fen="r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    assert parse_answer(both, "O-O", truncated=True).kind == "truncated"
    assert parse_answer(both, "O-O-O", truncated=True).uci == "e1c1"


def test_a_move_that_many_fit_lists_them() -> None:
    assert parse_answer(ROOKS, "Rd1") == Reading("ambiguous", span=(0, 3), detail="a1d1, f1d1")


def test_a_prompt_that_opened_thinking_is_told() -> None:
    assert parse_answer(START, "maybe e4", reasoning=True).kind == "truncated"
    assert parse_answer(START, "maybe d4</think>e4", reasoning=True).uci == "e2e4"


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("Say: Final Answer: **Nf3** now", "Nf3"),
        ("<think>d4</think> \u200be4!", "e4!"),
        ("정답：&nbsp;e4", "e4"),
        ("x" * 60_000 + "\nFinal Answer: e4", "e4"),
    ],
)
def test_the_span_is_of_the_answer_as_given(answer: str, read: str) -> None:
    span = parse_answer(START, answer).span
    assert span is not None
    assert answer[slice(*span)] == read


def test_an_illegal_move_that_is_written_out_is_kept() -> None:
    assert parse_answer(START, "e2e5").uci == "e2e5"


@pytest.mark.parametrize("name", ["chess_real", "chess_synthetic", "janggi_synthetic"])
def test_every_answer_of_the_outside_data_is_read_as_expected(name: str) -> None:
    wrong = []
    for line in shared_lines(f"answers/{name}.jsonl"):
        if line["game"] == "janggi":
            rules = f"fsf-{line['variant']}"
            state = position("janggi", *line["moves"], fen=line["start_fen"], rules=rules)
        else:
            state = position("chess", fen=line["fen"])
        cut = line["finish_reason"] == "length"
        reading = parse_answer(state, line["answer"], truncated=cut)
        right = [line["expected"], *line["also_accepted"]]
        if not any(
            reading.kind == one["kind"] and (one["kind"] != "move" or reading.uci == one["uci"])
            for one in right
        ):
            wrong.append((line["id"], reading))
    assert not wrong
