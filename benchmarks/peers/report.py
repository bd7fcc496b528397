"""Rows of the bench as a table and as a plot (SVG, drawn with matplotlib where it is installed)."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def row_of(peer: Any, game: str, in_flight: int, runs: Sequence[Row]) -> Row:
    """The median of the turns by moves/s; latencies are of that turn."""
    run = sorted(runs, key=lambda r: r["moves"] / r["seconds"])[len(runs) // 2]
    latencies = sorted(run["latencies"])
    return {
        "engine": peer.name,
        "version": peer.version,
        "precision": peer.precision,
        "game": game,
        "games_in_flight": in_flight,
        "mode": peer.mode,
        "turns": len(runs),
        "moves": run["moves"],
        "moves_per_s": run["moves"] / run["seconds"],
        "p50": latencies[len(latencies) // 2],
        "p95": latencies[min(len(latencies) - 1, int(0.95 * len(latencies)))],
        "ttft": statistics.median(run["ttfts"]) if run["ttfts"] else None,
        "computed_tokens_per_move": run["computed"] / run["moves"] or None,  # None: not told
        "illegal": run["illegal"],
        "peak_mb": max(r["peak_mb"] for r in runs),
    }


def with_ratios(rows: Sequence[Row]) -> list[Row]:
    """Each of ours beside the best rival of the same precision, game and number of games."""
    found = []
    for row in rows:
        rivals = [
            r["moves_per_s"]
            for r in rows
            if r["engine"] != "madang"
            and all(r[k] == row[k] for k in ("precision", "game", "games_in_flight"))
        ]
        ratio = row["moves_per_s"] / max(rivals) if rivals and row["engine"] == "madang" else None
        found.append({**row, "of_best_rival": ratio})
    return found


def plot(rows: Sequence[Row], file: Path, caption: str) -> bool:
    """moves/s over games in flight, a panel a game. False: matplotlib is not installed."""
    try:
        import matplotlib  # type: ignore[import-not-found, unused-ignore]

        matplotlib.use("svg")
        import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return False
    games = sorted({row["game"] for row in rows})
    figure, panels = plt.subplots(1, len(games), figsize=(5.2 * len(games), 4.2), squeeze=False)
    for panel, game in zip(panels[0], games, strict=True):
        lines: dict[str, list[tuple[int, float]]] = {}
        for row in rows:
            if row["game"] == game:
                name = f"{row['engine']} {row['mode']} {row['precision']}"
                lines.setdefault(name, []).append((row["games_in_flight"], row["moves_per_s"]))
        for name, points in lines.items():
            style = "o-" if name.startswith("madang") else "s--"
            panel.plot(*zip(*sorted(points), strict=True), style, label=name, markersize=4)
        panel.set(title=game, xlabel="games in flight", xscale="log", ylim=(0, None))
        panel.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("moves/s")
    panels[0][-1].legend(fontsize=7)
    figure.suptitle(caption, fontsize=9)
    figure.tight_layout()
    figure.savefig(file)
    return True
