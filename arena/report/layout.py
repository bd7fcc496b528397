"""Tables and sentences laid out for a terminal of a known width.

Widths count terminal cells, so Hangul names stand straight. Text comes from outside: control
characters in it are shown, never sent. A table that is too wide goes on below itself with its first
column repeated; a name that is too long loses its middle, never the end that tells it apart.
"""

import shutil
import unicodedata
from collections.abc import Sequence

GAP = 2  # cells between columns
NARROWEST = 40  # a terminal that is narrower is treated as this wide
LEAST_NAME = 24  # cells that a shortened name keeps where that saves a second block
NOTHING = "–"  # a cell that has nothing to say


def terminal_width() -> int:
    """Columns to write for: COLUMNS, else the terminal's; 80 where there is neither."""
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def width(text: str) -> int:
    """Terminal cells."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def clean(text: str) -> str:
    """One line without control characters or marks that turn the direction of writing."""
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join("·" if unicodedata.category(char) in hidden else char for char in text)


def shortened(text: str, cells: int) -> str:
    """The text in at most so many cells: a third of its start, `…`, the rest of its end."""
    if width(text) <= cells:
        return text
    head = tail = ""
    for char in text:
        if width(head + char) > (cells - 1) // 3:
            break
        head += char
    for char in reversed(text):
        if width(char + tail) > cells - 1 - width(head):
            break
        tail = char + tail
    return f"{head}…{tail}"


def distinct(names: Sequence[str], cells: int) -> list[str]:
    """The names in about so many cells; those that would look alike are written out."""
    short = [shortened(name, cells) for name in names]
    return [
        name if short.count(shown) > 1 and names.count(name) == 1 else shown
        for name, shown in zip(names, short, strict=True)
    ]


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, columns: int | None = None
) -> str:
    """Aligned columns, the first `left` of them to the left, at most `columns` cells wide."""
    cells = [[clean(cell) for cell in row] for row in (headers, *rows)]
    if columns is not None:
        cells = _short_names(cells, columns)
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]
    blocks = [_block(cells, widths, part, left) for part in _parts(widths, columns)]
    return "\n\n".join(blocks)


def without_empty(
    headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """The table without the columns that say nothing in any row."""
    kept = [c for c in range(len(headers)) if any(row[c] != NOTHING for row in rows)]
    return [headers[c] for c in kept], [[row[c] for c in kept] for row in rows]


def _short_names(cells: list[list[str]], columns: int) -> list[list[str]]:
    """The first column in what the others leave; in a third of the width where that is too little
    and the table goes on below itself anyway."""
    others = sum(max(width(row[c]) for row in cells) + GAP for c in range(1, len(cells[0])))
    room = columns - others
    if room < LEAST_NAME:
        room = max(LEAST_NAME, columns // 3)
    names = distinct([row[0] for row in cells], room)
    return [[name, *row[1:]] for name, row in zip(names, cells, strict=True)]


def _parts(widths: Sequence[int], columns: int | None) -> list[list[int]]:
    """Columns by number for each block; the first one stands in all of them."""
    parts: list[list[int]] = [[0]]
    used = widths[0]
    for column in range(1, len(widths)):
        need = GAP + widths[column]
        if columns is not None and used + need > columns and len(parts[-1]) > 1:
            parts.append([0])
            used = widths[0]
        parts[-1].append(column)
        used += need
    return parts


def _block(
    cells: Sequence[Sequence[str]], widths: Sequence[int], part: Sequence[int], left: int
) -> str:
    lines = []
    for row in cells:
        shown = []
        for column in part:
            space = " " * (widths[column] - width(row[column]))
            shown.append(row[column] + space if column < left else space + row[column])
        lines.append((" " * GAP).join(shown).rstrip())
    return "\n".join(lines)


def wrapped(text: str, columns: int, indent: int = 4) -> str:
    """One sentence over as many lines as it needs, the later ones set in; no word is cut."""
    lines = [""]
    for word in clean(text).split(" "):
        line = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if width(line) > columns and lines[-1].strip():
            lines.append(" " * indent + word)
        else:
            lines[-1] = line
    return "\n".join(lines)
