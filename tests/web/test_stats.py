import xml.etree.ElementTree as ElementTree

import pytest

from arena.store import Store
from arena.store.queries import reading
from arena.web import data, plots, stats, tables
from arena.web.rows import Series

from . import sample


def test_percentiles_are_nearest_rank_and_absent_where_nothing_was_measured() -> None:
    assert stats.percentiles([None, None]) is None
    assert stats.percentiles([3.0]) == (3, 3, 3)
    assert stats.percentiles([float(n) for n in range(1, 101)]) == (50, 90, 95)
    assert stats.percentiles([4.0, None, 1.0, 2.0, 3.0]) == (2, 4, 4)


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.7, 1), (1, 1), (3, 5), (21, 25), (9e3, 1e4)])
def test_axes_end_at_round_numbers(value: float, top: float) -> None:
    assert plots.nice_ceiling(value) == pytest.approx(top)


def test_a_plot_holds_every_point_inside_its_frame() -> None:
    series = [Series("x", "y", "m<>", (0.0, 5.0, 10.0), (0.0, 7.0, 3.0))]
    root = ElementTree.fromstring(plots.line_plot(series))
    line = root.find("polyline")
    assert line is not None
    points = [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]
    assert len(points) == 3
    assert all(0 <= x <= plots.WIDTH and 0 <= y <= plots.HEIGHT for x, y in points)
    assert plots.line_plot([]) == ""


def test_rates_come_from_growing_counters_and_skip_a_restart(store: Store) -> None:
    with reading(store) as db:
        series = {one.name: one for one in stats.engine_series(db, 1, 0.0)}
    assert series["prefix cache hits"].values == pytest.approx([100 * 7 / 9] * 11)
    assert series["sequences in a step"].values == pytest.approx([5.0] * 11)
    assert len(series["requests waiting"].values) == 12
    restarted = stats._per("steps", "busy_seconds")
    assert restarted(sample.telemetry(9), sample.telemetry(1)) is None


def test_latency_counts_every_move_of_the_games_that_stand(store: Store) -> None:
    with reading(store) as db:
        view = stats.latency(db, 1)
        moves = sum(len(data.game_view(db, n).moves) for n in range(1, 11))
    unmade = 2  # the two forfeits end with a ply that was never played
    assert sum(one.moves for one in view.players) == moves - unmade
    assert all(one.seconds and one.queue_s and one.ttft_s for one in view.players)


def test_failures_name_position_reading_and_counts(store: Store) -> None:
    with reading(store) as db:
        every = stats.failures(db, 1, size=500)
        cut = stats.failures(db, 1, kind="truncated")
        view = data.game_view(db, 1)
    assert every.total == len(every.failures) == sum(sum(c.values()) for c in every.counts.values())
    assert {one.game_id for one in cut.failures} == {1, 6}
    assert cut.failures[0].length == len(sample.LONG)
    assert len(cut.failures[0].answer) == stats.ANSWER_SHOWN
    last = next(one for one in cut.failures if one.game_id == 1)
    assert last.fen == view.moves[-1].fen
    assert last.ply == view.game.plies + 1


def test_the_crosstable_adds_up_from_both_sides(store: Store) -> None:
    with reading(store) as db:
        played = data.library(db, run_id=1, status="finished")
    found = [one.cross for one in tables.tournament(store, 1).tables]
    assert {(one.game, one.rules) for one in found} == {("chess", "standard"), ("janggi", "fairy")}
    for table in found:
        one, other = table.order
        cell, back = table.cell(one, other), table.cell(other, one)
        assert cell is not None
        assert back is not None
        assert (cell.wins, cell.draws, cell.losses) == (back.losses, back.draws, back.wins)
        assert table.total(one).score >= table.total(other).score
    assert sum(table.total(table.order[0]).games for table in found) == played.total == 8


def test_the_schedule_lists_every_slot_once_with_its_game(store: Store) -> None:
    with reading(store) as db:
        view = tables.schedule(db, 1)
        page = tables.schedule(db, 1, page=2, size=4)
    assert [slot.id for slot in view.slots] == list(range(1, 11))
    assert {slot.status for slot in view.slots} == {"finished", "running"}
    assert [slot.id for slot in page.slots] == [5, 6, 7, 8]
    assert page.num_pages == 3
