"""Everything in the outside janggi data: edge positions, real games, files, random positions."""

import json
from typing import Any

import pytest

from games.base import IllegalMove
from games.janggi import JANGGI, read_gib, write_gib
from games.janggi.setup import start_fen
from games.pgn import read_pgn, write_pgn
from tests.games.outside import outside, outside_json
from tests.games.positions import for_mover, janggi, play, uci

SIDES = {"cho": 0, "han": 1}


def _edge(case: dict[str, Any], variant: str, expected: dict[str, Any]) -> None:
    state = janggi(case["fen"], " ".join(case["moves"]), f"fsf-{variant}")
    assert len(uci(state)) == expected["legal_count"]
    assert state.is_check() == expected["check"]
    assert state.turn == SIDES[expected["side_to_move"]]
    if "legal" in expected:
        assert uci(state) == sorted(expected["legal"])
    if "legal_from" in expected:
        assert uci(state, case["from"]) == sorted(expected["legal_from"])
    end = expected["immediate_end"] or expected["optional_end"]
    if not expected["legal_count"]:
        end = end or expected["result_for_side_to_move"]
    assert for_mover(state, state.outcome()) == end


def test_edge_positions() -> None:
    cases = outside_json("janggi_edge_cases.json")
    assert len(cases) == 68
    for case in cases:
        for variant, expected in case["expect"].items():
            if "error" in expected:
                with pytest.raises(IllegalMove):
                    janggi(case["fen"], " ".join(case["moves"]), f"fsf-{variant}")
                continue
            _edge(case, variant, expected)


def test_random_positions() -> None:
    lines = outside("random_positions_300.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 300
    for line in lines:
        case = json.loads(line)
        state = janggi(case["start_fen"], " ".join(case["moves"]), f"fsf-{case['variant']}")
        assert state.fen() == case["fen"], case["id"]
        assert uci(state) == sorted(case["legal"]), case["id"]
        assert state.is_check() == case["in_check"], case["id"]
        said = case["immediate_end"] or case["optional_end"]
        outcome = state.outcome()
        if said is None:
            assert outcome is None or outcome.termination == "checkmate", case["id"]
        else:
            assert outcome is not None, case["id"]
            assert outcome.winner == SIDES.get(said), case["id"]


def test_real_games_replay_to_the_end() -> None:
    games = outside_json("mit_games.json")
    assert len(games["games"]) == 11
    for game in games["games"]:
        for variant, expected in game["replay"].items():
            start = JANGGI.start(rules=f"fsf-{variant}", fen=game["start_fen"])
            if not expected["replays"]:
                ply = expected["first_illegal_ply"]
                before = play(start, game["moves"][: ply - 1])
                with pytest.raises(IllegalMove):
                    play(before, game["moves"][ply - 1 : ply])
                continue
            last = play(start, game["moves"])
            assert last.fen() == game["final_fen"], game["id"]
            assert len(uci(last)) == expected["legal_at_end"], game["id"]
            assert last.is_check() == expected["in_check"], game["id"]
        points = janggi(game["final_fen"], "", "fsf-janggi").material()
        assert points == (game["final_points"]["cho"], game["final_points"]["han"])
        if game["mate_winner"]:
            outcome = play(JANGGI.start(fen=game["start_fen"]), game["moves"]).outcome()
            assert outcome is not None
            assert outcome.termination == "checkmate"
            assert outcome.winner == SIDES[game["mate_winner"]]


def test_the_malformed_game_breaks_where_it_should() -> None:
    case = outside_json("mit_games.json")["malformed"][0]
    for variant, ply in case["first_illegal_ply"].items():
        start = JANGGI.start(rules=f"fsf-{variant}", fen=case["start_fen"])
        before = play(start, case["moves"][: ply - 1])
        assert before.fen() == case["fen_before_first_illegal"]
        with pytest.raises(IllegalMove):
            play(before, case["moves"][ply - 1 : ply])


@pytest.mark.parametrize("name", ["hangul_3games.gib", "hanja_3games_comments.gib"])
def test_sample_files_read_and_round_trip(name: str) -> None:
    expected = outside_json("gib_expected.json")[name]["games"]
    reading = read_gib(outside(name).read_bytes())
    assert reading.faults == ()
    assert len(reading.games) == len(expected) == 3
    for game, wanted in zip(reading.games, expected, strict=True):
        assert [move.uci for move in game.moves] == wanted["uci"]
        assert game.start_fen == wanted["start_fen"]
        assert game.start_fen == start_fen(wanted["setup_cho"], wanted["setup_han"])
        assert game.result == {"cho": "1-0", "han": "0-1", None: "*"}[wanted["winner"]]
        noted = [(note["after_ply"], " ".join(note["text"].split())) for note in wanted["comments"]]
        assert list(game.comments) == noted
        final = janggi(game.start_fen, " ".join(wanted["uci"]), "fsf-janggicasual")
        assert final.fen() == wanted["final_fen"]
    copies = (
        read_gib(write_gib(reading.games, "korean")),
        read_gib(write_gib(reading.games, "hanja")),
        read_pgn(write_pgn(reading.games)),
    )
    for copy in copies:
        assert copy.faults == ()
        for game, again in zip(reading.games, copy.games, strict=True):
            assert (again.start_fen, again.moves) == (game.start_fen, game.moves)
            assert (again.comments, again.result) == (game.comments, game.result)
