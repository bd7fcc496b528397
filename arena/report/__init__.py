"""What the record says: standings, summaries and exports, as data and for a terminal."""

from .export import export
from .standings import standings
from .summary import summary
from .text import standings_text, summary_text

__all__ = ["export", "standings", "standings_text", "summary", "summary_text"]
