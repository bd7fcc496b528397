"""Views that ship with the database, so that one line of SQL answers the common questions.

    sqlite3 demo.db 'select * from scores'
    sqlite3 demo.db 'select player, p50_s, p95_s from latency'

The same text runs on SQLite and PostgreSQL. Percentiles are nearest-rank: never a bare mean.
"""

from collections.abc import Mapping


def _percentiles(column: str, name: str) -> str:
    picks = (
        f"max(CASE WHEN {name}_rank = ({name}_n * {p} + 99) / 100 THEN {column} END) AS p{p}_{name}"
        for p in (50, 90, 95)
    )
    return ", ".join(picks)


def _ranked(column: str, name: str) -> str:
    part = f"PARTITION BY run_id, game, player, {column} IS NULL"
    return (
        f"row_number() OVER ({part} ORDER BY {column}) AS {name}_rank, "
        f"count({column}) OVER (PARTITION BY run_id, game, player) AS {name}_n"
    )


VIEWS: Mapping[str, str] = {
    # every game that counts, from the first mover's point of view
    "results": """
        SELECT id AS game_id, run_id, game, rules, pair, first, second, result, termination, ending,
               CASE result WHEN '1-0' THEN 1.0 WHEN '0-1' THEN 0.0 ELSE 0.5 END AS score_first
        FROM games WHERE status = 'finished' AND rated AND result <> '*'
    """,
    "scores": """
        SELECT run_id, game, rules, player, count(*) AS games,
               sum(CASE WHEN score = 1.0 THEN 1 ELSE 0 END) AS wins,
               sum(CASE WHEN score = 0.5 THEN 1 ELSE 0 END) AS draws,
               sum(CASE WHEN score = 0.0 THEN 1 ELSE 0 END) AS losses,
               sum(score) AS score,
               sum(CASE WHEN ending = 'protocol' AND score = 0.0 THEN 1 ELSE 0 END) AS forfeits
        FROM (
            SELECT run_id, game, rules, ending, first AS player, score_first AS score FROM results
            UNION ALL
            SELECT run_id, game, rules, ending, second, 1.0 - score_first FROM results
        ) AS sides GROUP BY run_id, game, rules, player
    """,
    "endings": """
        SELECT run_id, game, rules, status, ending, termination, result, count(*) AS games
        FROM games WHERE status <> 'superseded'
        GROUP BY run_id, game, rules, status, ending, termination, result
    """,
    # answers that were no legal move, with the position they were given in
    "illegal_answers": """
        SELECT g.run_id, a.game_id, g.game, a.ply, a.number, a.player, a.kind, a.answer, a.uci,
               a.detail, coalesce(m.fen, g.start_fen) AS fen
        FROM attempts AS a JOIN games AS g ON g.id = a.game_id
        LEFT JOIN moves AS m ON m.game_id = a.game_id AND m.ply = a.ply - 1
        WHERE a.kind IN ('unparsable', 'illegal', 'ambiguous', 'truncated', 'empty', 'refused')
    """,
    "latency": f"""
        SELECT run_id, game, player, count(*) AS moves, {_percentiles("seconds", "s")},
               {_percentiles("queue_s", "queue")}, {_percentiles("ttft_s", "ttft")},
               sum(completion_tokens) AS completion_tokens, sum(prompt_tokens) AS prompt_tokens,
               sum(cached_tokens) AS cached_tokens
        FROM (
            SELECT g.run_id, g.game, m.player, m.seconds, m.queue_s, m.ttft_s,
                   m.completion_tokens, m.prompt_tokens, m.cached_tokens,
                   {_ranked("seconds", "s")}, {_ranked("queue_s", "queue")},
                   {_ranked("ttft_s", "ttft")}
            FROM moves AS m JOIN games AS g ON g.id = m.game_id
            WHERE g.status = 'finished'
        ) AS ranked GROUP BY run_id, game, player
    """,  # noqa: S608 - built from the names above alone
    # slots that still have to be played
    "open_slots": """
        SELECT s.* FROM slots AS s WHERE NOT EXISTS (
            SELECT 1 FROM games AS g
            WHERE g.run_id = s.run_id AND g.slot_id = s.id AND g.status = 'finished')
    """,
}
