import pytest

from arena.store import Store, queries
from arena.store.queries import reading
from arena.web import data
from games.registry import get_game


@pytest.mark.parametrize("game_id", range(1, 11))
def test_a_game_is_told_move_for_move_as_recorded(store: Store, game_id: int) -> None:
    recorded = queries.game(store, game_id)
    with reading(store) as db:
        view = data.game_view(db, game_id)
    made = [move for move in view.moves if move.uci]
    assert [(m.ply, m.uci, m.san, m.fen) for m in made] == [
        (m.ply, m.uci, m.san, m.fen) for m in recorded.moves
    ]
    for move, kept in zip(made, recorded.moves, strict=True):
        assert move.legal_mass == (kept.belief.legal_mass if kept.belief else None)
        bad = [one for one in kept.attempts if one.kind in data.FAILED]
        assert [(one.number, one.kind, one.detail) for one in move.refused] == [
            (one.number, one.kind, one.detail) for one in bad
        ]
    assert len(view.moves) - len(made) == bool(recorded.failed_attempts)


def test_check_marks_the_king_that_is_attacked() -> None:
    state = get_game("chess").start()
    for san in ("f3", "e5", "g4", "Qh4#"):
        state = state.apply(state.parse_move(san, "san"))
    assert data.check_square("chess", "standard", state.fen()) == "e1"
    assert data.check_square("chess", "standard", get_game("chess").start().fen()) is None
    assert data.check_square("janggi", "fairy", "no position at all") is None
    assert data.check_square("checkers", "", state.fen()) is None


def test_the_wall_shows_running_games_first_at_their_newest_move(store: Store) -> None:
    with reading(store) as db:
        wall = data.wall(db, 1)
        few = data.wall(db, 1, limit=3)
    assert [tile.game.id for tile in wall.tiles][:2] == [5, 10]
    assert {tile.game.id for tile in wall.tiles} == set(range(1, 11))
    assert len(few.tiles) == 3
    for tile in wall.tiles:
        last = queries.game(store, tile.game.id).moves[-1]
        assert (tile.ply, tile.fen, tile.last) == (last.ply, last.fen, last.uci)


def test_the_library_filters_by_bound_values_alone(store: Store) -> None:
    with reading(store) as db:
        assert data.library(db, run_id=1, game="janggi").total == 5
        assert data.library(db, run_id=1, ending="protocol").total == 2
        assert data.library(db, run_id=1, player="' OR 1=1 --").total == 0
        page = data.library(db, run_id=1, page=3, size=4)
        assert [one.id for one in page.games] == [2, 1]
        assert page.num_pages == 3
        assert data.library(db, run_id=1, page=99).games == ()


def test_players_are_scored_and_what_is_missing_is_named(store: Store) -> None:
    with reading(store) as db:
        found = data.players(db, 1)
        assert sum(one.wins for one in found) == sum(one.losses for one in found)
        assert sum(one.forfeits for one in found) == 2
        with pytest.raises(data.NotFound, match="no run 99"):
            data.run(db, 99)
        with pytest.raises(data.NotFound, match="no game 99"):
            data.game_view(db, 99)
        with pytest.raises(data.NotFound, match="no player 99"):
            data.player(db, 99)
