"""The store's connections: one that writes, under the group commit, and a stack of readers."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine

from vimbank.errors import BackendRejected
from vimbank.store.engine import WRITING, translated

__all__ = ["Connections"]


class Connections:
    """Hands out connections, keeps them, closes them. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: deque[Connection] = deque()
        self._writer: Connection | None = None
        self._closed = False
        self._closing = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, outside any transaction: each statement sees the newest commit."""
        with translated():
            connection = self._take()
            try:
                yield connection
                connection.rollback()  # ends what SQLAlchemy began by itself
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection whose statements all see one moment."""
        with self.reading() as connection, connection.begin():
            yield connection

    def read(self, query: Callable[[Any], Any]) -> Any:
        """``query`` on a driver's cursor; the quickest way to one statement's rows."""
        with translated():
            connection = self._take()
            try:
                cursor = connection.connection.cursor()
                result = query(cursor)
                cursor.close()
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return result

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A driver's cursor in a writing transaction. One at a time: the caller sees to that."""
        with translated():
            if self._closed:
                raise BackendRejected("store", "is closed")
            if self._writer is None:
                self._writer = self._engine.connect().execution_options(**WRITING)
            connection = self._writer
            try:
                with connection.begin():
                    cursor = connection.connection.cursor()
                    yield cursor
                    cursor.close()
            except BaseException:
                # Whatever broke, the next transaction starts from a clean connection.
                self._writer = None
                connection.close()
                raise

    def close(self) -> None:
        """Close what is idle now, and the rest when it comes back; later calls raise BackendRejected."""
        with self._closing:
            self._closed = True
        while self._idle:
            self._idle.pop().close()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        self._engine.dispose()

    def _take(self) -> Connection:
        if self._closed:
            raise BackendRejected("store", "is closed")
        try:
            return self._idle.pop()
        except IndexError:
            return self._engine.connect()

    def _give_back(self, connection: Connection) -> None:
        with self._closing:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()
