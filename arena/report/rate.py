"""Ratings of several runs counted together, on a scale that anchors may fix.

What is unequal is refused in one line and never mixed: another rule set, cap, adjudication or time
control, or a player of one name with another mode, prompt or policy.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.spec import nearest
from arena.store import Store, StoreError, queries

from .layout import clean
from .pools import check_equal_terms, pools, run_list
from .standings import standings
from .text import standings_text


def rate(store: Store, run_ids: Sequence[int], anchors: Mapping[str, float]) -> dict[str, Any]:
    """`standings` of those runs (none named: the latest). Raises StoreError.

    `anchors`: name → Elo held fixed.
    """
    runs = checked(store, run_ids, anchors)
    return {"runs": runs, "anchors": dict(anchors), **standings(store, runs, anchors=anchors)}


def rate_text(
    store: Store,
    run_ids: Sequence[int],
    anchors: Mapping[str, float],
    columns: int | None = None,
) -> str:
    """The same for a terminal."""
    runs = checked(store, run_ids, anchors)
    text = standings_text(store, runs, columns, anchors=anchors)
    held = ", ".join(f"{clean(name)} = {elo:g}" for name, elo in anchors.items())
    return f"{text}\nheld fixed: {held}" if held else text


def checked(store: Store, run_ids: Sequence[int], anchors: Mapping[str, float]) -> list[int]:
    """The runs, if their games may be counted together and the anchors play in them.

    Raises StoreError: UnequalTerms, UnequalPlayers, or an anchor that nobody is called.
    """
    runs = run_list(store, run_ids or None)
    check_equal_terms(pools(store, runs))
    known = {agent.name for run_id in runs for agent in queries.players(store, run_id)}
    for name in anchors:
        if name not in known:
            raise StoreError(
                f"anchor {name!r}: no player of that name{nearest(name, known)}: "
                f"there are {', '.join(sorted(known))}"
            )
    return runs
