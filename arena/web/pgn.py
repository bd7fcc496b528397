"""One game as PGN: chess in SAN; janggi with `[Variant "Janggi"]` in its own letters, Cho as White.

Result tag and movetext always agree: both are the recorded result.
"""

import textwrap
import time

from arena.store.queries import GameInfo

from .render import move_number


def write(info: GameInfo, event: str) -> str:
    """The PGN text of a recorded game; a game without a result ends in `*`."""
    tags = {
        "Event": event,
        "Site": "madang",
        "Date": time.strftime("%Y.%m.%d", time.gmtime(info.started)),
        "Round": f"{info.round}.{info.slot_id}",
        "White": info.first,
        "Black": info.second,
        "Result": info.result,
    }
    if info.game != "chess":
        tags["Variant"] = info.game.capitalize()
    tags |= {"SetUp": "1", "FEN": info.start_fen, "Rules": info.rules}
    tags |= {"Termination": info.termination or info.status, "PlyCount": str(info.plies)}
    words = []
    for move in info.moves:
        number = move_number(info.start_fen, move.ply)
        if number.endswith("."):
            words.append(f"{number} {move.san}")
        else:
            words.append(f"{number[:-1]}... {move.san}" if move.ply == 1 else move.san)
    if info.detail:
        words.append("{" + info.detail.replace("{", "(").replace("}", ")") + "}")
    text = textwrap.fill(" ".join([*words, info.result]), 80, break_on_hyphens=False)
    return "".join(_tag(name, value) for name, value in tags.items()) + f"\n{text}\n"


def _tag(name: str, value: str) -> str:
    quoted = " ".join(value.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'[{name} "{quoted}"]\n'
