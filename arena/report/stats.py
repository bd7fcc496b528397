"""How a run went rather than who won: ends, refused answers, times, the engine's use.

    stats(store) -> `summary` and {"answers": [{"player", "answers", "refused_turns",
        "kinds": {"move": 120, "illegal": 7, ...}}]}

An answer is one request for a move in a finished game; `refused_turns` counts the turns whose first
answer was no legal move.
"""

from collections import Counter, defaultdict
from typing import Any

from arena.store import Store, queries

from .layout import table, terminal_width, without_empty
from .summary import summary
from .text import endings_text, engines_text, latency_text

Row = dict[str, Any]
KINDS = (
    "move", "illegal", "unparsable", "ambiguous", "truncated", "empty", "refused", "resign",
    "draw_offer",
)  # fmt: skip
ACCEPTED = frozenset({"move", "resign", "draw_offer"})


def stats(store: Store, run_id: int | None = None) -> Row:
    """The figures of a run (None: the latest). Raises StoreError where there is none."""
    found = summary(store, run_id)
    return found | {"answers": _answers(store, found["run"]["id"])}


def stats_text(store: Store, run_id: int | None = None, columns: int | None = None) -> str:
    """The same for a terminal; empty where nothing has been played."""
    columns = columns or terminal_width()
    found = stats(store, run_id)
    parts = [
        endings_text(found["games"], columns),
        _answers_text(found["answers"], columns),
        latency_text(found["players"], columns),
        engines_text(found["engines"], columns),
    ]
    return "\n\n".join(part for part in parts if part)


def _answers(store: Store, run_id: int) -> list[Row]:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    refused: Counter[str] = Counter()
    for row in queries.attempt_counts(store, [run_id]):
        kinds[row["player"]][row["kind"]] += row["answers"]
        if row["is_first"] and row["kind"] not in ACCEPTED:
            refused[row["player"]] += row["answers"]
    return [
        {
            "player": name,
            "answers": sum(counts.values()),
            "refused_turns": refused[name],
            "kinds": {kind: counts[kind] for kind in KINDS if counts[kind]},
        }
        for name, counts in sorted(kinds.items())
    ]


def _answers_text(answers: list[Row], columns: int) -> str:
    rows = [
        [row["player"], str(row["answers"])]
        + [str(row["kinds"][kind]) if kind in row["kinds"] else "–" for kind in KINDS]
        for row in answers
    ]
    if not rows:
        return ""
    headers, cells = without_empty(["player", "answers", *KINDS], rows)
    return f"Answers by what they were read as\n{table(headers, cells, columns=columns)}"
