"""LLM players: four modes on a scripted backend, and the real model."""

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from agents.backend import Answer, Ask, BackendError, Scores
from agents.base import AgentError, Decision, Timing, Turn, Usage, derive_seed
from agents.llm import LlmAgent
from agents.local import LocalModel, _encode, load_tokenizer, prompt_report, rendered
from agents.prompt import Message, render_prompt
from agents.spec import EngineOptions, LlmSpec, parse_spec
from arena.cli import app
from engine.chat import RenderedPrompt
from engine.tokenizer import Tokenizer
from games.base import Move
from games.registry import get_game
from tests.agents.kit import position, turn
from tests.agents.test_prompt import walk

START = position("chess")
TIMING = Timing(1.0, 0.25, 0.5, 0.25, 0.75)


@dataclass
class Script:
    """A backend that answers what it is told to and remembers what it was asked."""

    answers: list[str] = field(default_factory=list)
    cut: bool = False
    choice: int | None = 0
    error: BackendError | None = None
    asks: list[Ask] = field(default_factory=list)
    choices: tuple[str, ...] = ()

    async def ready(self) -> None: ...

    async def generate(self, ask: Ask) -> Answer:
        self.asks.append(ask)
        if self.error:
            raise self.error
        text = self.answers[min(len(self.asks), len(self.answers)) - 1]
        return Answer(text, self.cut, TIMING, Usage(100, 60, 5), "sent")

    async def walk(self, ask: Ask, choices: tuple[str, ...]) -> Answer:
        self.asks.append(ask)
        self.choices = choices
        if self.error:
            raise self.error
        text = "?" if self.choice is None else choices[self.choice]
        return Answer(text, False, TIMING, Usage(100, 60, 4), "sent", choice=self.choice)

    async def score(self, ask: Ask, choices: tuple[str, ...]) -> Scores:
        self.asks.append(ask)
        self.choices = choices
        logprobs = tuple(-1.0 - i for i in range(len(choices)))
        mass = sum(math.exp(value) for value in logprobs)
        return Scores(logprobs, mass, 2, 1, TIMING, Usage(100, 60, 0), "sent")


def ask(script: Script, text: str, *turns: Turn) -> list[Decision]:
    agent = LlmAgent(parse_spec_llm(text), script)

    async def run() -> list[Decision]:
        return [await agent.choose(one) for one in turns or (turn(START),)]

    return asyncio.run(run())


def parse_spec_llm(text: str) -> LlmSpec:
    spec = parse_spec(text)
    assert isinstance(spec, LlmSpec)
    return spec


def test_constrained_walks_the_legal_moves_in_the_notation() -> None:
    script = Script(choice=3)
    (decision,) = ask(script, "smollm2-135m?notation=san&temperature=0.5&top_k=4")
    legal = START.legal_moves()
    assert script.choices == tuple(START.format_move(move, "san") for move in legal)
    assert decision.move == legal[3]
    attempt = decision.attempts[0]
    assert (attempt.answer, attempt.uci) == (script.choices[3], legal[3].uci)
    assert (attempt.timing, attempt.usage, attempt.prompt) == (TIMING, Usage(100, 60, 4), "sent")
    assert script.asks[0].sampling.temperature == 0.5
    assert script.asks[0].sampling.seed == derive_seed(7, 1) == attempt.seed
    assert decision.belief is None


def test_a_constrained_answer_outside_the_set_is_no_result() -> None:
    (decision,) = ask(Script(choice=None), "smollm2-135m")
    assert (decision.kind, decision.reason) == ("no_result", "constraint_ignored")


def test_choice_keeps_what_the_model_believes() -> None:
    (decision,) = ask(Script(), "smollm2-135m:choice?terminator=newline")
    legal = START.legal_moves()
    belief = decision.belief
    assert belief is not None
    assert decision.move == legal[2]
    assert belief.chosen == pytest.approx(math.exp(-3))
    assert belief.greedy == legal[1].uci
    assert belief.terminator == "newline"
    assert [uci for uci, _ in belief.top] == [move.uci for move in legal[:5]]


def test_think_scores_after_the_reasoning() -> None:
    script = Script(answers=["e4 is good "])
    (decision,) = ask(script, "smollm2-135m:think?think_tokens=9")
    thought, scored = script.asks
    assert thought.sampling.max_tokens == 9
    assert thought.opening == "<think>\n"
    assert thought.sampling.stop == ("</think>",)
    assert scored.opening == "<think>\ne4 is good\n</think>\n\n"
    attempt = decision.attempts[0]
    assert attempt.thinking == "e4 is good "
    assert attempt.usage == Usage(200, 120, 5)
    assert attempt.timing == Timing(2.0, 0.5, 1.0, 0.5, 0.75)


def test_free_asks_again_with_what_was_wrong() -> None:
    script = Script(answers=["e2e5", "O-O", "Final Answer: e4"])
    (decision,) = ask(script, "smollm2-135m:free")
    assert decision.move == Move("e2e4")
    assert [attempt.kind for attempt in decision.attempts] == ["illegal", "illegal", "move"]
    assert len({attempt.seed for attempt in decision.attempts}) == 3
    last = script.asks[2].messages
    assert [message.content for message in last[2:]] == [
        "e2e5",
        "e2e5 is not legal in this position. Already refused: e2e5. "
        "Answer again with one legal move.",
        "O-O",
        "O-O is not legal in this position. Already refused: e2e5, O-O. "
        "Answer again with one legal move.",
    ]
    assert script.asks[1].messages[:2] == script.asks[0].messages


@pytest.mark.parametrize(
    ("answer", "cut", "reason"),
    [
        ("I like it here", False, "unparsable"),
        ("e2e5", False, "illegal"),
        ("e4 or d4", False, "ambiguous"),
        ("Let us look at", True, "truncated"),
        ("", False, "empty"),
        ("I'm sorry, I can't help", False, "refused"),
    ],
)
def test_free_forfeits_by_the_last_failure(answer: str, cut: bool, reason: str) -> None:
    (decision,) = ask(Script(answers=[answer], cut=cut), "smollm2-135m:free?policy.attempts=2")
    assert (decision.kind, decision.reason) == ("forfeit", reason)
    assert len(decision.attempts) == 2
    assert "after 2 attempts" in decision.detail


def test_a_model_is_told_what_its_policy_forbids() -> None:
    script = Script(answers=["resign", "e2e4"])
    (decision,) = ask(script, "smollm2-135m:free?policy.allow_resign=false")
    assert decision.move == Move("e2e4")
    asked, again = script.asks
    assert asked.messages[1].content.endswith("You may not resign. Your move:")
    assert again.messages[-1].content.startswith("Resigning is not allowed here.")


def test_a_random_move_is_made_only_if_asked_for_and_is_marked() -> None:
    text = "smollm2-135m:free?policy.then=random_move&policy.attempts=1"
    first, again, other = ask(
        Script(answers=["no"]), text, turn(START), turn(START), turn(START, seed=8)
    )
    assert first.random_move
    assert first.move == again.move
    assert first.move != other.move
    assert first.move in START.legal_moves()


def test_a_token_budget_bounds_the_attempts() -> None:
    script = Script(answers=["no"])
    (decision,) = ask(script, "smollm2-135m:free?policy.attempts=9&policy.tokens=12&max_tokens=8")
    assert decision.reason == "budget"
    assert [one.sampling.max_tokens for one in script.asks] == [8, 7, 2]


def test_resigning_and_draw_offers_stand_where_the_policy_allows_them() -> None:
    assert ask(Script(answers=["I resign."]), "smollm2-135m:free")[0].kind == "resign"
    assert ask(Script(answers=["draw"]), "smollm2-135m:free")[0].kind == "draw_offer"
    refused = ask(
        Script(answers=["I resign.", "e4"]), "smollm2-135m:free?policy.allow_resign=false"
    )[0]
    assert refused.move == Move("e2e4")
    assert refused.attempts[0].kind == "resign"


def test_a_draw_is_offered_once_a_move_and_may_always_be_accepted() -> None:
    offer, then, accept = ask(
        Script(answers=["draw", "draw", "e4", "draw"]),
        "smollm2-135m:free",
        turn(START),
        turn(START),
        turn(START, draw_offered=True),
    )
    assert offer.kind == "draw_offer"
    assert then.move == Move("e2e4")
    assert accept.kind == "draw_offer"


@pytest.mark.parametrize("mode", ["constrained", "free"])
def test_a_failing_backend_is_no_result(mode: str) -> None:
    script = Script(error=BackendError("overloaded", "64 requests wait"))
    (decision,) = ask(script, f"smollm2-135m:{mode}")
    assert (decision.kind, decision.reason) == ("no_result", "overloaded")
    assert decision.detail == "64 requests wait"


def test_long_garbage_is_not_sent_back_whole() -> None:
    script = Script(answers=["x" * 100_000])
    (decision,) = ask(script, "smollm2-135m:free?policy.attempts=2")
    assert len(script.asks[1].messages[2].content) < 500
    assert len(decision.attempts[0].answer) == 100_000


def test_a_notation_that_the_game_lacks_is_refused_before_play() -> None:
    agent = LlmAgent(parse_spec_llm("smollm2-135m?notation=korean"), Script())
    with pytest.raises(AgentError, match="chess has no notation 'korean': it has uci, san"):
        asyncio.run(agent.new_game("1", get_game("chess"), 0))
    asyncio.run(agent.new_game("1", get_game("janggi"), 0))


def test_what_is_stored_of_a_player_says_template_and_parser() -> None:
    info = LlmAgent(parse_spec_llm("smollm2-135m:choice"), Script()).info
    assert info.name == "smollm2-135m:q4_1→fp32:choice"
    assert info.config["template_version"] == 1
    assert len(str(info.config["template_hash"])) == 16
    assert info.config["parser_version"] == 1
    assert info.deterministic
    warm = LlmAgent(parse_spec_llm("smollm2-135m?temperature=1"), Script()).info
    assert not warm.deterministic


OPTIONS = EngineOptions(
    kv_cache_memory_bytes=64 << 20, max_model_len=1024, max_num_seqs=8, max_num_batched_tokens=512
)


@pytest.fixture(scope="module")
def model(smollm2_dir: Path) -> Iterator[LocalModel]:
    """The real model, loaded once; its engine outlives an event loop."""
    model = LocalModel(str(smollm2_dir), OPTIONS)
    assert model.telemetry().loading
    asyncio.run(model.ready())
    assert not model.telemetry().loading
    yield model
    asyncio.run(model.close())


def agent_on(model: LocalModel, text: str) -> LlmAgent:
    return LlmAgent(parse_spec_llm(f"llm:{model.name}:{text}"), model)


async def in_turn(agent: LlmAgent, turns: list[Turn]) -> list[Decision]:
    return [await agent.choose(one) for one in turns]


async def together(agent: LlmAgent, turns: list[Turn]) -> list[Decision]:
    return list(await asyncio.gather(*(agent.choose(one) for one in turns)))


@pytest.mark.parametrize(
    "text", ["constrained", "choice", "think?think_tokens=4", "free?max_tokens=4&policy.attempts=1"]
)
def test_the_real_model_plays_both_games(model: LocalModel, text: str) -> None:
    turns = [turn(position(game), game_id=game) for game in ("chess", "janggi")]
    for decision, one in zip(
        asyncio.run(together(agent_on(model, text), turns)), turns, strict=True
    ):
        attempt = decision.attempts[0]
        assert attempt.usage.prompt > 50
        assert attempt.prompt.startswith("<|im_start|>system\n")
        assert attempt.timing is not None
        assert attempt.timing.total >= (attempt.timing.queue or 0.0)
        if text.startswith("free"):
            assert decision.kind in ("move", "forfeit")
            assert attempt.usage.completion <= 4
        else:
            assert decision.move in one.state.legal_moves()
        if text == "choice":
            belief = decision.belief
            assert belief is not None
            assert 0 < belief.chosen <= belief.legal_mass < 1
            assert belief.top[0] == (attempt.uci, belief.chosen)


@pytest.mark.parametrize("game", ["chess", "janggi"])
def test_arena_prompt_prints_exactly_what_is_sent(model: LocalModel, game: str) -> None:
    states = walk(game, 4)
    decision = asyncio.run(agent_on(model, "constrained").choose(turn(states[4])))
    (attempt,) = decision.attempts
    command = ["prompt", "--game", game, "--model", model.name, "--json"]
    moves = ["--moves", " ".join(move.uci for move in states[4].moves)]
    done = CliRunner().invoke(app, [*command, *moves])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["text"] == attempt.prompt
    assert printed["tokens"] == attempt.usage.prompt
    assert printed["hash"] == attempt.prompt_hash
    assert 0 < printed["reusable"] < printed["tokens"]


def test_the_real_model_plays_the_same_alone_and_among_others(model: LocalModel) -> None:
    states = [state for game in ("chess", "janggi") for state in walk(game, 1)]
    agent = agent_on(model, "constrained?temperature=0.8")
    turns = [turn(state, game_id=str(i), seed=i) for i, state in enumerate(states)]
    crowd = asyncio.run(together(agent, turns))
    alone = asyncio.run(in_turn(agent, turns))
    assert [decision.move for decision in crowd] == [decision.move for decision in alone]
    assert alone[-1].attempts[0].usage.cached > 0
    telemetry = model.telemetry()
    assert telemetry.steps > 0
    assert telemetry.rows > telemetry.sequences
    assert telemetry.prompt_tokens >= telemetry.prefix_cache_hits > 0


def test_a_request_that_can_never_run_is_the_engine_s_error(model: LocalModel) -> None:
    ask = Ask("long", (Message("user", "pawn " * 2_000),))
    with pytest.raises(BackendError) as caught:
        asyncio.run(model.generate(ask))
    assert caught.value.reason == "engine_error"
    assert str(caught.value)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(3_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never came to hold")


def test_a_cancelled_move_leaves_nothing_behind(model: LocalModel) -> None:
    async def run() -> None:
        agent = agent_on(model, "free?max_tokens=800")
        task = asyncio.create_task(agent.choose(turn(START)))
        await until(lambda: model.telemetry().num_requests_running == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: model.telemetry().num_requests_running == 0)

    asyncio.run(run())
    assert model.telemetry().num_requests_waiting == 0


@pytest.mark.parametrize(("game", "most"), [("chess", 60), ("janggi", 90)])
def test_the_default_template_costs_few_fresh_tokens_a_move(
    smollm2_dir: Path, game: str, most: int
) -> None:
    tokenizer = load_tokenizer(str(smollm2_dir))
    for seed in range(3):
        states = walk(game, 60, seed=seed)
        prompts = [
            render_prompt("history", state, plies_left=80 - ply) for ply, state in enumerate(states)
        ]
        for ply in range(20, len(prompts)):
            used = prompt_report(tokenizer, prompts[ply - 2], prompts[ply])
            assert used.fresh <= most, prompts[ply].text
    assert rendered(tokenizer, prompts[0]).endswith("<|im_start|>assistant\n")


def test_thinking_is_opened_once(smollm2_dir: Path) -> None:
    """Some chat templates end with `<think>`; then ours is left out."""
    tokenizer = load_tokenizer(str(smollm2_dir))
    message = Message("user", "go")
    _, plainly = _encode(tokenizer, Ask("1", (message,), opening="<think>\nhm\n</think>\n\n"))
    assert plainly.endswith("<|im_start|>assistant\n<think>\nhm\n</think>\n\n")
    opening = (message, Message("assistant", "x"))

    class Opens:
        def render(self, messages: object, **switches: object) -> RenderedPrompt:
            return RenderedPrompt.trusted("<|im_start|>assistant\n<think>\n")

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

    ask = Ask("1", opening, opening="<think>\nhm\n</think>\n\n")
    _, once = _encode(cast(Tokenizer, Opens()), ask)
    assert once == "<|im_start|>assistant\n<think>\nhm\n</think>\n\n"
