"""What a person sees: the panel at several sizes, plain lines, and hostile names in both."""

import asyncio
import io

import pytest
from rich.console import Console

from agents.base import AgentInfo, ModelSwap, Telemetry
from arena.events import (
    AgentReady,
    Event,
    EventBus,
    GameFinished,
    GameStarted,
    ModelsSwapped,
    MovePlayed,
    Noted,
    RunFinished,
    RunStarted,
    TelemetrySampled,
)
from arena.panel import LivePanel, PlainLines, clean, draw, plain_line
from arena.records import GameRecord, MoveRecord, Result, Slot, Status
from arena.run_view import RunView
from games.registry import get_game

LONG = "smollm2-135m:q4_1→fp32:constrained:history"


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def slot(number: int, game: str = "chess", first: str = "a", second: str = LONG) -> Slot:
    rules = next(iter(get_game(game).rule_sets))
    return Slot(number, game, rules, first, second, pair=1)


def finished(of: Slot, result: Result, detail: str = "White mates") -> GameFinished:
    record = GameRecord(of, Status.FINISHED, "", result, "checkmate", detail)
    return GameFinished(of.id, record)


def story(clock: Time, first: str = "a") -> list[Event]:
    """A run with finished and live games of both kinds and a busy engine."""
    infos = tuple(AgentInfo(name, "random", {}, True) for name in (first, LONG))
    chess, janggi = get_game("chess").start(), get_game("janggi").start()
    events: list[Event] = [RunStarted(3, "demo", 16, 0, infos), AgentReady(first, 0.1)]
    events += [AgentReady(LONG, 2.0)]
    for number, game in enumerate(("chess", "chess", "janggi", "janggi", "janggi"), 1):
        start = chess if game == "chess" else janggi
        events.append(GameStarted(number, slot(number, game, first), start.fen()))
    move = chess.legal_moves()[0]
    after = chess.apply(move)
    record = MoveRecord(1, 0, first, move.uci, "a3", after.fen(), 0.1)
    events.append(MovePlayed(2, slot(2, first=first), record))
    events.append(finished(slot(1, first=first), "1-0"))
    events.append(TelemetrySampled((Telemetry("smollm2-135m", loading=False),)))
    return events


def busy(steps: int) -> TelemetrySampled:
    sample = Telemetry(
        "smollm2-135m",
        loading=False,
        num_requests_waiting=3,
        num_requests_running=9,
        kv_cache_usage_perc=0.25,
        steps=steps,
        sequences=steps * 6,
        prompt_tokens=steps * 100,
        completion_tokens=steps * 10,
        prefix_cache_queries=steps * 100,
        prefix_cache_hits=steps * 80,
    )
    return TelemetrySampled((sample,))


def viewed(events: list[Event], clock: Time) -> RunView:
    view = RunView(clock)
    for event in events:
        view.apply(event)
    return view


def shown(view: RunView, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(draw(view, width, height, ("watch elsewhere: arena serve",)))
    return capture.get().rstrip("\n").split("\n")


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("height", [10, 24, 50])
def test_it_fits_every_terminal(width: int, height: int) -> None:
    from rich.cells import cell_len

    clock = Time()
    view = viewed([*story(clock), busy(0)], clock)
    clock.now += 5
    view.apply(busy(10))
    lines = shown(view, width, height)
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)


def test_rates_are_of_the_last_seconds() -> None:
    clock = Time()
    view = viewed([*story(clock), busy(100)], clock)
    clock.now += 2
    view.apply(busy(120))
    (rates,) = view.rates()
    text = "\n".join(shown(view, 120, 40))
    assert "queue 3  running 9" in text
    assert "prefix hits 80%" in text
    assert "KV 25%" in text
    assert rates.batch == pytest.approx(6.0)
    assert rates.decode_tps == pytest.approx(120 * 10 / 2)


def test_waves_are_shown_in_both_ways() -> None:
    clock = Time()
    view = viewed(story(clock), clock)
    assert "waves" not in "\n".join(shown(view, 120, 40))
    swaps = [ModelSwap(("big",), "bi\x1bg-2", 1.23, 61), ModelSwap((), "big", 0.77, 63)]
    for swap in swaps:
        view.apply(ModelsSwapped(swap))
    clock.now += 20
    text = "\n".join(shown(view, 120, 40))
    assert "waves  2 swaps  2.0 s" in text
    assert "62 requests a swap  now big" in text
    assert plain_line(ModelsSwapped(swaps[0]), 2).startswith("Swapped models: big → bi")
    assert plain_line(ModelsSwapped(swaps[1]), 2).endswith("none → big (0.8 s), 63 requests served")


def test_loading_and_waiting_are_said() -> None:
    clock = Time()
    infos = (AgentInfo("model", "llm", {}, True), AgentInfo("quick", "random", {}, True))
    sample = TelemetrySampled((Telemetry("smollm2-135m", loading=True),))
    view = viewed([RunStarted(1, "r", 2, 0, infos), AgentReady("quick", 0.0), sample], clock)
    text = "\n".join(shown(view, 80, 24))
    assert "smollm2-135m  loading model" in text
    assert "starting model" in text


def test_boards_of_both_games_are_shown_and_scores_counted() -> None:
    clock = Time()
    text = "\n".join(shown(viewed(story(clock), clock), 120, 50))
    assert "1/16 games  4 in flight  1 plies" in text
    assert "P . . . . . . ." in text  # the chess board after its move
    assert "10 r n b a . a b n r" in text
    assert "watch elsewhere: arena serve" in text
    assert "Finished game 1 (a vs " in text


def test_long_names_keep_the_end_that_tells_them_apart() -> None:
    clock = Time()
    lines = shown(viewed(story(clock), clock), 80, 24)
    assert any("constrained:history" in line and " 0 " in line for line in lines)


@pytest.mark.parametrize("name", ["[red]x[/red]", "a\x1b[31mb", "a\nb", "마당😀", "[/]", "x" * 80])
def test_names_are_text_and_nothing_else(name: str) -> None:
    clock = Time()
    view = viewed(story(clock, name), clock)
    text = "\n".join(shown(view, 200, 50))
    assert "\x1b" not in text
    assert clean(name)[-8:] in text


def test_a_game_without_result_is_counted_apart() -> None:
    clock = Time()
    view = viewed(story(clock), clock)
    record = GameRecord(slot(2), Status.ABORTED, "", termination="engine_error", rated=False)
    view.apply(GameFinished(2, record))
    assert (view.num_finished, view.num_no_result) == (1, 1)
    assert view.scores["chess"]["a"].games == 1


def test_time_left_follows_the_pace_of_the_last_moves() -> None:
    clock = Time()
    infos = (AgentInfo("a", "random", {}, True), AgentInfo("b", "random", {}, True))
    view = viewed([RunStarted(1, "r", 2, 0, infos, (40,))], clock)
    assert view.eta() is None
    chess = get_game("chess").start()
    for ply in range(1, 11):
        clock.now += 2
        record = MoveRecord(ply, 0, "a", "a2a3", "a3", chess.fen(), 0.1)
        view.apply(MovePlayed(1, slot(1), record))
    clock.now += 2
    assert view.eta() == pytest.approx((2 * 40 - 10) * 2)
    assert "about 2:20 left" in "\n".join(shown(view, 80, 24))


def follow(follower: PlainLines | LivePanel, events: list[Event]) -> None:
    async def scenario() -> None:
        bus = EventBus()
        following = asyncio.create_task(follower.follow(bus.subscribe()))
        for event in events:
            bus.publish(event)
        await asyncio.sleep(0.3)
        bus.close()
        await following

    asyncio.run(scenario())


def test_plain_lines() -> None:
    lines, errors = io.StringIO(), io.StringIO()
    ends: list[Event] = [AgentReady("x", 0.0, "x cannot start"), Noted("played\x07 again")]
    follow(PlainLines(lines, errors), [*story(Time()), *ends])
    out = lines.getvalue().splitlines()
    assert out[0] == f"Started game 1 of 16 (a vs {LONG})"
    assert out[-1] == f"Finished game 1 (a vs {LONG}): 1-0 {{White mates}}"
    assert errors.getvalue() == "arena: x cannot start\narena: played� again\n"


def test_quiet_lines_say_only_faults() -> None:
    errors = io.StringIO()
    follow(PlainLines(None, errors), [*story(Time()), Noted("fault")])
    assert errors.getvalue() == "arena: fault\n"


def test_the_live_panel_draws_and_leaves_its_last_state() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100, height=40, color_system=None)
    follow(LivePanel(console, ("where",)), [*story(Time()), RunFinished(3, "finished", 0)])
    last = file.getvalue().rsplit("\x1b[2K", 1)[-1]
    assert "demo  run 3  finished" in file.getvalue()
    assert last
