"""The janggi board as text: ranks 10 to 1 from the top, files below, one cell a point.

`letters` are the FEN's, Cho in upper case. `hangul` and `hanja` need a font with wide characters;
there Han's pieces stand in parentheses, since both sides share most signs.
"""

from collections.abc import Sequence

from .tables import (
    CANNON,
    CHARIOT,
    ELEPHANT,
    FILES,
    GENERAL,
    GUARD,
    HAN,
    HORSE,
    RANKS,
    SOLDIER,
    SYMBOLS,
)

STYLES = ("letters", "hangul", "hanja")

HANGUL = {CHARIOT: "차", CANNON: "포", HORSE: "마", ELEPHANT: "상", GUARD: "사", GENERAL: "초"}
HANGUL |= {kind | HAN: sign for kind, sign in HANGUL.items()}
HANGUL |= {GENERAL | HAN: "한", SOLDIER: "졸", SOLDIER | HAN: "병"}
HANJA = {CHARIOT: "車", CANNON: "包", HORSE: "馬", ELEPHANT: "象", GUARD: "士", GENERAL: "楚"}
HANJA |= {kind | HAN: sign for kind, sign in HANJA.items()}
HANJA |= {GENERAL | HAN: "漢", SOLDIER: "卒", SOLDIER | HAN: "兵"}


def _letters(board: Sequence[int]) -> list[str]:
    lines = []
    for rank in range(RANKS - 1, -1, -1):
        row = board[rank * FILES : (rank + 1) * FILES]
        lines.append(f"{rank + 1:>2} " + " ".join(SYMBOLS.get(piece, ".") for piece in row))
    return [*lines, "   a b c d e f g h i"]


def _wide(board: Sequence[int], signs: dict[int, str]) -> list[str]:
    lines = []
    for rank in range(RANKS - 1, -1, -1):
        row = board[rank * FILES : (rank + 1) * FILES]
        cells = [
            " ＋ " if not piece else f"({signs[piece]})" if piece & HAN else f" {signs[piece]} "
            for piece in row
        ]
        lines.append(f"{rank + 1:>2} " + "".join(cells).rstrip())
    return [*lines, "    a   b   c   d   e   f   g   h   i"]


def board_text(board: Sequence[int], style: str) -> str:
    """The board in one of `STYLES`, without a final newline. Raises ValueError for another."""
    if style == "letters":
        return "\n".join(_letters(board))
    if style not in STYLES:
        raise ValueError(f"unknown board style {style!r}: there are {', '.join(STYLES)}")
    return "\n".join(_wide(board, HANGUL if style == "hangul" else HANJA))
