"""What the record says: standings, summaries and exports, as data and for a terminal."""

from .export import export
from .meetings import crosstable, head_to_head
from .meetings_text import crosstable_text, head_to_head_text
from .rate import rate, rate_text
from .replay import replay, replay_text
from .standings import standings
from .stats import stats, stats_text
from .summary import summary
from .text import standings_text, summary_text

__all__ = [
    "crosstable",
    "crosstable_text",
    "export",
    "head_to_head",
    "head_to_head_text",
    "rate",
    "rate_text",
    "replay",
    "replay_text",
    "standings",
    "standings_text",
    "stats",
    "stats_text",
    "summary",
    "summary_text",
]
