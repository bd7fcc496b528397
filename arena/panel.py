"""How a run is shown while it is played: a live panel on a terminal, plain lines elsewhere.

Both follow the event stream and can neither slow nor stop the run. The panel fits the terminal's
height: boards are dropped first, then the recent lines. Player names and model output are hostile
text: nothing of them is read as markup, control characters are shown as `�`.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import TextIO

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from arena.events import (
    AgentReady,
    Event,
    GameFinished,
    GameStarted,
    ModelsSwapped,
    Noted,
    SprtTested,
    Subscription,
)
from arena.records import GameRecord
from arena.run_view import (
    EngineRates,
    LiveGame,
    Rated,
    RunView,
    Score,
    finished_line,
    started_line,
    swapped_line,
)
from games.registry import get_game

REDRAWS_S = 4
RATE_S = 2.0
REPLICATES = 200
BOARD_WIDTH = 26
BOARD_LINES = 14  # the tallest board (janggi's ten ranks and files), its frame and move line
NAME_WIDTH = 34


class PlainLines:
    """One line a game started or finished, for logs and pipes; faults go to `errors`.

    `where` says where else to watch, once the run is really being played.
    """

    def __init__(self, lines: TextIO | None, errors: TextIO, where: tuple[str, ...] = ()) -> None:
        self._lines = lines
        self._errors = errors
        self._where = where

    def announce(self) -> None:
        for line in self._where:
            print(line, file=self._errors, flush=True)

    async def follow(self, events: Subscription) -> None:
        self.announce()
        view = RunView(time.monotonic)
        async for event in events:
            view.apply(event)
            line = plain_line(event, view.num_games)
            if line and self._lines is not None:
                print(clean(line), file=self._lines, flush=True)
            fault = fault_line(event)
            if fault:
                print(clean(fault), file=self._errors, flush=True)


def plain_line(event: Event, num_games: int) -> str:
    """The line of an event in the words of engine tournament managers; "" for none."""
    if isinstance(event, GameStarted):
        return started_line(event.slot, num_games)
    if isinstance(event, SprtTested):
        return event.text
    if isinstance(event, ModelsSwapped):
        return swapped_line(event.swap)
    return finished_line(event.record) if isinstance(event, GameFinished) else ""


def fault_line(event: Event) -> str:
    """What a person should read about an event that went wrong; "" for none."""
    if isinstance(event, AgentReady) and event.error:
        return f"arena: {event.error}"
    return f"arena: {event.text}" if isinstance(event, Noted) else ""


class LivePanel:
    """Redraws the whole panel a few times a second until the run ends; the last state stays."""

    def __init__(self, console: Console, where: Sequence[str]) -> None:
        """`where`: lines that say how else to follow the run."""
        self._console = console
        self._where = where

    async def follow(self, events: Subscription) -> None:
        view = RunView(time.monotonic)
        with Live(console=self._console, auto_refresh=False, vertical_overflow="crop") as live:
            helpers = [
                asyncio.create_task(self._redraw(live, view)),
                asyncio.create_task(_rate(view)),
            ]
            try:
                async for event in events:
                    view.apply(event)
            finally:
                for helper in helpers:
                    helper.cancel()
                live.update(self._drawn(view, boards=False), refresh=True)

    async def _redraw(self, live: Live, view: RunView) -> None:
        while True:
            live.update(self._drawn(view), refresh=True)
            await asyncio.sleep(1 / REDRAWS_S)

    def _drawn(self, view: RunView, boards: bool = True) -> RenderableType:
        size = self._console.size
        return draw(view, size.width, size.height if boards else 0, self._where)


async def _rate(view: RunView) -> None:
    """Keep the ratings of the view up to date, off the event loop: a fit takes a while."""
    done = 0
    while True:
        await asyncio.sleep(RATE_S)
        if len(view.results) > done:
            done = len(view.results)
            view.ratings = await asyncio.to_thread(_ratings, tuple(view.results))


def _ratings(records: Sequence[GameRecord]) -> dict[str, dict[str, Rated]]:
    """Per game, each player's rating and interval; from few replicates, for the eye only."""
    from arena.ratings import RatedGame, fit

    games: dict[str, list[RatedGame]] = {}
    for record in records:
        slot = record.slot
        one = RatedGame(slot.first, slot.second, record.result, slot.pair)
        games.setdefault(slot.game, []).append(one)
    return {
        game: {
            row.name: Rated(row.rating, row.low, row.high)
            for row in fit(rated, replicates=REPLICATES).ratings
            if row.rating is not None and row.low is not None and row.high is not None
        }
        for game, rated in games.items()
    }


def draw(view: RunView, width: int, height: int, where: Sequence[str] = ()) -> RenderableType:
    """The panel of a run for a terminal of that size; `height` 0 leaves boards and lines out."""
    head: list[RenderableType] = [_title(view), _progress(view, width)]
    head += [_engine(rates) for rates in view.rates()]
    head += _waves(view)
    head += _agents(view)
    head += [_line(clean(text)) for text in view.tests.values()]
    head += [_line(line, style="dim") for line in where]
    tables = _standings(view)
    used = len(head) + sum(len(scores) + 2 for scores in view.scores.values())
    parts = [*head, *tables]
    if height >= used + BOARD_LINES + 1:
        parts.insert(len(head), _boards(view, width))
        used += BOARD_LINES
    room = min(5, height - used - 1)
    if room > 0:
        parts += [_line(clean(line), style="dim") for line in list(view.recent)[-room:]]
    return Group(*parts)


def clean(text: str) -> str:
    """The text on one line, with control characters made visible and harmless."""
    return "".join(char if char.isprintable() else "�" for char in text.replace("\n", " "))


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _title(view: RunView) -> Text:
    left = view.eta()
    parts = [f"run {view.run_id}", view.status, _clock(view.elapsed)]
    if view.status == "running":
        parts.append(f"about {_clock(left)} left" if left is not None else "time left unknown")
    return Text.assemble((f"{clean(view.name)}  ", "bold"), "  ".join(parts), no_wrap=True)


def _progress(view: RunView, width: int) -> RenderableType:
    words = f"{view.num_finished}/{view.num_games} games  {len(view.live)} in flight"
    words += f"  {view.plies} plies"
    if view.num_no_result:
        words += f"  {view.num_no_result} without result"
    line = Table.grid(padding=(0, 1))
    bar = ProgressBar(max(1, view.num_games), view.num_finished, width=min(30, width // 3))
    line.add_row(bar, _line(words))
    return line


def _engine(rates: EngineRates) -> Text:
    last = rates.last
    name = Text(f"{clean(last.model)}  ", style="bold", no_wrap=True, overflow="ellipsis")
    if last.loading:
        return name.append("loading model …", style="yellow")
    parts = [f"queue {last.num_requests_waiting}", f"running {last.num_requests_running}"]
    if rates.batch is not None:
        parts.append(f"batch {rates.batch:.1f}")
    if rates.prefill_tps is not None and rates.decode_tps is not None:
        parts.append(f"{rates.prefill_tps:.0f}+{rates.decode_tps:.0f} tok/s")
    if rates.hit_rate is not None:
        parts.append(f"prefix hits {rates.hit_rate:.0%}")
    parts.append(f"KV {last.kv_cache_usage_perc:.0%}")
    return name.append("  ".join(parts), style="not bold")


def _waves(view: RunView) -> list[RenderableType]:
    waves = view.waves
    if waves is None:
        return []
    parts = [f"{waves.num_swaps} swaps", f"{waves.seconds:.1f} s"]
    if view.elapsed > 0:
        parts.append(f"{min(1.0, waves.seconds / view.elapsed):.0%} of the time")
    parts.append(f"{waves.served / waves.num_swaps:.0f} requests a swap")
    parts.append(f"now {clean(waves.last.into)}")
    return [_line(f"waves  {'  '.join(parts)}")]


def _agents(view: RunView) -> list[RenderableType]:
    lines: list[RenderableType] = []
    if view.waiting:
        lines.append(_line(f"starting {', '.join(map(clean, sorted(view.waiting)))}", "yellow"))
    for error in view.agents.values():
        if error:
            lines.append(_line(clean(error), style="red"))
    return lines


def _boards(view: RunView, width: int) -> RenderableType:
    """As many boards as fit side by side, the games of each kind in turn, oldest first."""
    by_game: dict[str, list[LiveGame]] = {}
    for game in view.live.values():
        if game.fen:
            by_game.setdefault(game.slot.game, []).append(game)
    turns = [
        games[number]
        for number in range(max((len(games) for games in by_game.values()), default=0))
        for games in by_game.values()
        if number < len(games)
    ]
    shown = turns[: max(1, (width + 1) // (BOARD_WIDTH + 1))]
    return Columns([_board(game) for game in shown], padding=(0, 1))


def _board(game: LiveGame) -> RenderableType:
    slot = game.slot
    state = get_game(slot.game).start(rules=slot.rules or None, fen=game.fen)
    players = " v ".join(_label(clean(name), 9) for name in (slot.first, slot.second))
    body = Text(f"{state.board_text()}\n", no_wrap=True)
    body.append(f"ply {game.plies}  {game.last_move or 'start'}", style="dim")
    return Panel(body, title=Text(players), width=BOARD_WIDTH, height=BOARD_LINES, padding=(0, 1))


def _label(name: str, width: int) -> str:
    """A name in little room: its last part, where it has parts."""
    last = name.rsplit(":", 1)[-1]
    return name if len(name) <= width else _tail(f"…{last}", width)


def _standings(view: RunView) -> list[RenderableType]:
    return [
        _score_table(game, scores, view.ratings.get(game, {}))
        for game, scores in sorted(view.scores.items())
    ]


def _score_table(game: str, scores: dict[str, Score], ratings: dict[str, Rated]) -> RenderableType:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column(game, no_wrap=True, overflow="ellipsis")
    for title in ("games", "+", "=", "−", "score", "rating", "95 %"):
        table.add_column(title, justify="right", no_wrap=True)
    ranked = sorted(scores.items(), key=lambda item: (-item[1].points / item[1].games, item[0]))
    for name, score in ranked:
        numbers = (score.games, score.wins, score.draws, score.losses)
        row = [*map(str, numbers), f"{score.points:g}", *_rated(ratings.get(name))]
        table.add_row(_line(_tail(clean(name), NAME_WIDTH)), *row)
    return table


def _rated(rated: Rated | None) -> tuple[str, str]:
    if rated is None:
        return "", ""
    interval = f"{rated.low:+.0f} … {rated.high:+.0f}"
    return f"{rated.rating:+.0f}".replace("-", "−"), interval.replace("-", "−")


def _tail(name: str, width: int) -> str:
    """The end of a long name, which is what tells a model's modes and templates apart."""
    return name if len(name) <= width else "…" + name[1 - width :]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
