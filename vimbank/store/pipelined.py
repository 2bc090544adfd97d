"""A cursor of psycopg that sends statements together: what nobody asks an answer of has no round trip of its own."""

from collections.abc import Iterable
from typing import Any, Final

__all__ = ["PipelinedCursor"]

_MOST_WAITING: Final = 256
"""Statements that wait: enough that a round trip is nothing beside their work, few enough to hold in memory."""


class PipelinedCursor:
    """Statements wait until rows are asked for, and are then sent in their order, in one round trip.

    So an error of one that waited is raised by a later call, at the latest by ``close``: for a transaction that is
    undone by any error, before whose commit the cursor is closed. A statement that waits has not reached the server,
    which sees its client idle amid a transaction: its timeout for that holds, as it would not inside an open pipeline.
    """

    def __init__(self, connection: Any) -> None:
        """``connection``: psycopg's own."""
        self._connection: Final = connection
        self._waiting: Final[list[tuple[str, Any]]] = []
        self._answered: Any = None  # the cursor with the rows of the last statement that was sent

    def execute(self, sql: str, parameters: Any = None) -> None:
        """Send this statement with the next ones; ``parameters`` must not be changed any more."""
        if len(self._waiting) == _MOST_WAITING:
            self._send()
        self._answered = None
        self._waiting.append((sql, parameters))

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """Send this statement once a row now, after those that wait: the driver's own way of it is quicker."""
        self._send()
        self._answered = None
        self._cursor().executemany(sql, rows)

    def fetchone(self) -> Any:
        """The next row of the last statement; None after the last row."""
        return self._answer().fetchone()

    def fetchall(self) -> list[Any]:
        """All further rows of the last statement."""
        rows: list[Any] = self._answer().fetchall()
        return rows

    def close(self) -> None:
        """Send what waits. Raises the error of any of it."""
        self._send()
        self._answered = None

    # -- inside --

    def _answer(self) -> Any:
        if self._answered is None:
            self._send()
        return self._answered

    def _send(self) -> None:
        sent = self._waiting.copy()
        self._waiting.clear()
        if len(sent) == 1:
            self._answered = self._run(self._cursor(), *sent[0])
        elif sent:
            with self._connection.pipeline():
                written = self._cursor()
                for each in sent[:-1]:
                    self._run(written, *each)
                # Of its own: the answers of those before would take the place of its rows.
                self._answered = self._run(self._cursor(), *sent[-1])

    def _cursor(self) -> Any:
        return self._connection.cursor(binary=True)

    @staticmethod
    def _run(cursor: Any, sql: str, parameters: Any) -> Any:
        cursor.execute(sql, parameters)
        return cursor
