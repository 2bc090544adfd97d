"""Tables in SQLite files that are not ours, read and never written."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from vimbank.errors import InvalidInput

__all__ = ["is_sqlite", "rows_of"]

_MAGIC: Final = b"SQLite format 3\0"


def is_sqlite(path: Path) -> bool:
    """Whether the file is a SQLite database. Raises InvalidInput (``path``)."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as exc:
        raise InvalidInput.of("path", f"{path} cannot be read: {exc.strerror}") from exc


def rows_of(path: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, in the order in which they were written. Raises InvalidInput (``path``)."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            quoted = table.replace('"', '""')
            return [dict(row) for row in connection.execute(f'SELECT * FROM "{quoted}" ORDER BY rowid')]
    except sqlite3.Error as exc:
        raise InvalidInput.of("path", f"{path}: {exc}") from exc
