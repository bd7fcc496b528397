"""Two hundred games go out as PGN and come back, through python-chess, as the store holds them."""

import asyncio
import io
from pathlib import Path

import chess.pgn

from arena.config import build_config
from arena.events import Subscription
from arena.report import export
from arena.running import run_new
from arena.store import Store, queries

GAMES = 200
NAMES = ("ann", "Béla", "장기", 'quo"te\\', "{brace} [%clk 1:00:00]")


class Silent:
    async def follow(self, events: Subscription) -> None:
        async for _ in events:
            pass


def _unescaped(value: str) -> str:
    """PGN's own escapes, which python-chess leaves in a header's value."""
    return value.replace('\\"', '"').replace("\\\\", "\\")


def test_pgn_of_200_games_equals_the_store_move_for_move(tmp_path: Path) -> None:
    section = {"game": "chess", "pairs": 10, "openings": {"file": "builtin", "order": "random"}}
    section |= {"max_plies": 10, "at_cap": "material"}
    players = [{"kind": "random", "name": name} for name in NAMES]
    config = build_config({"games": [section], "players": players})
    with Store.open(tmp_path / "a.db") as store:
        assert asyncio.run(run_new(config, store, Silent(), print)).exit_code == 0
        assert export(store, 1, tmp_path / "games.pgn") == GAMES
        held = queries.games_with_moves(store, 1)
    stream = io.StringIO((tmp_path / "games.pgn").read_text("utf-8"))
    for game in held:
        read = chess.pgn.read_game(stream)
        assert read is not None
        assert read.errors == []
        assert [move.uci() for move in read.mainline_moves()] == [m.uci for m in game.moves]
        names = (_unescaped(read.headers[colour]) for colour in ("White", "Black"))
        assert tuple(names) == (game.first, game.second)
        assert read.headers["Result"] == game.result
        board = read.board()
        assert board.fen() == game.start_fen
        for read_move, move in zip(read.mainline_moves(), game.moves, strict=True):
            board.push(read_move)
            assert board.fen() == move.fen
    assert chess.pgn.read_game(stream) is None
