"""A table of an export as a Parquet file, written by DuckDB (the extra `parquet`).

Types are those of the records' own fields; an unknown value is NULL, an empty text stays empty.
"""

from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

from arena.store import StoreError

MOST_LINE = 1 << 28  # bytes of one row
KINDS: Mapping[type, str] = {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}  # else VARCHAR


def columns_of(record: type, names: tuple[str, ...]) -> dict[str, str]:
    """Column → SQL type, by the annotations of a dataclass; a key that is none is a number."""
    hints = get_type_hints(record)
    return {name: KINDS.get(_plain(hints.get(name, int)), "VARCHAR") for name in names}


def required_texts(record: type, names: tuple[str, ...]) -> list[str]:
    """The columns that hold a text in every row."""
    hints = get_type_hints(record)
    kinds = columns_of(record, names)
    return [n for n in names if kinds[n] == "VARCHAR" and not isinstance(hints[n], UnionType)]


def _plain(hint: Any) -> Any:
    """The type without its None."""
    if not isinstance(hint, UnionType):
        return hint
    return next(one for one in get_args(hint) if one is not type(None))


def from_csv(source: Path, target: Path, record: type, names: tuple[str, ...]) -> None:
    """Turn a CSV file with a header into Parquet. Raises StoreError where DuckDB is missing."""
    try:
        import duckdb
    except ImportError:
        raise StoreError(
            "Parquet needs duckdb: pip install 'madang[parquet]', or export to .csv"
        ) from None
    query = (
        "COPY (SELECT * FROM read_csv($source, header = true, auto_detect = false, delim = ',', "
        "quote = '\"', escape = '\"', columns = $columns, force_not_null = $texts, "
        "max_line_size = $limit)) TO $target (FORMAT parquet)"
    )
    words: dict[str, Any] = {
        "limit": MOST_LINE,
        "source": str(source),
        "target": str(target),
        "columns": columns_of(record, names),
        "texts": required_texts(record, names),
    }
    with duckdb.connect() as connection:
        try:
            connection.execute(query, words)
        except duckdb.Error as error:
            raise StoreError(f"cannot write {target}: {str(error).splitlines()[0]}") from None
