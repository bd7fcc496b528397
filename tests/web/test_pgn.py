import io
from dataclasses import replace

import chess.pgn
import pytest

from arena.store import Store, queries
from arena.web import pgn


@pytest.mark.parametrize("game_id", range(1, 6))
def test_a_chess_game_reads_back_move_for_move(store: Store, game_id: int) -> None:
    recorded = queries.game(store, game_id)
    text = pgn.write(recorded, 'a "quoted" \\ event')
    assert text.startswith('[Event "a \\"quoted\\" \\\\ event"]\n')
    read = chess.pgn.read_game(io.StringIO(text))
    assert read is not None
    assert not read.errors
    assert [move.uci() for move in read.mainline_moves()] == [m.uci for m in recorded.moves]
    assert read.headers["Result"] == recorded.result
    assert read.headers["White"].replace("\\", "") == recorded.first


def test_janggi_names_its_variant_and_braces_stay_balanced(store: Store) -> None:
    recorded = replace(queries.game(store, 6), detail="a } brace {")
    text = pgn.write(recorded, "run")
    assert '[Variant "Janggi"]' in text
    assert f'[FEN "{recorded.start_fen}"]' in text
    assert text.count("{") == text.count("}") == 1
    assert text.rstrip().endswith(recorded.result)
