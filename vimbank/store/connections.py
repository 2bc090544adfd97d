"""The store's connections: one that writes, under the group commit, and a stack of readers.

A server that was restarted leaves dead connections on the stack. Each use of a kept connection begins with a round
trip that harms nothing when it is done again, so a dead one is replaced before its user notices.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import Transaction
from sqlalchemy.exc import DBAPIError

from vimbank.errors import BackendRejected, BackendUnavailable
from vimbank.store.engine import WRITING, cursor_of, is_lost, let_go, translated, writing_cursor_of

__all__ = ["MOST_READERS", "Connections"]

R = TypeVar("R")

MOST_READERS: Final = 16
"""Connections of one process that read from a server at the same time; it has to serve other processes, too."""

_IN_DOUBT: Final = (
    "the connection was lost while a write was committed, so it may have been done or not: "
    "repeating it with the same id or idempotency key is safe"
)


class Connections:
    """Hands out connections, keeps them, closes them. Thread-safe."""

    def __init__(self, engine: Engine, *, patience_s: float = 30.0) -> None:
        """``patience_s``: how long a reader waits where MOST_READERS are at work, seconds."""
        self._engine = engine
        self._idle: deque[Connection] = deque()
        self._writer: Connection | None = None
        self._closed = False
        self._closing = threading.Lock()
        self._patience_s = patience_s
        # A file has no limit, and its readers do not wait for each other.
        self._room = None if engine.dialect.name == "sqlite" else threading.Semaphore(MOST_READERS)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading; each statement of a driver's cursor on it sees the newest commit."""
        with self._reader(_ask) as (connection, _):
            yield connection
            connection.rollback()  # ends what SQLAlchemy began by itself

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection whose statements all see one moment."""
        with self._reader(Connection.begin) as (connection, transaction):
            yield connection
            transaction.commit()

    def read(self, query: Callable[[Any], R]) -> R:
        """``query`` on a driver's cursor; the quickest way to one statement's rows. It may be run twice."""

        def run(connection: Connection) -> R:
            cursor = cursor_of(connection)
            result = query(cursor)
            cursor.close()
            return result

        with self._reader(run) as (_, result):
            return result

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A cursor in a writing transaction. One at a time: the caller sees to that."""
        with translated(self._engine):
            if self._closed:
                raise BackendRejected("store", "is closed")
            kept, self._writer = self._writer, None  # whatever breaks, the next transaction starts on a clean one
            connection, transaction = self._first(kept, self._new_writer, Connection.begin)
            try:
                cursor = writing_cursor_of(connection)
                yield cursor
                cursor.close()
                self._commit(transaction)
            except BaseException:
                _drop(connection)
                raise
            self._keep_writer(connection)

    def close(self) -> None:
        """Close what is idle now, and the rest when it comes back; later calls raise BackendRejected."""
        with self._closing:
            self._closed = True
        self._drop_idle()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        self._engine.dispose()

    # -- inside --

    @contextmanager
    def _reader(self, first: Callable[[Connection], R]) -> Iterator[tuple[Connection, R]]:
        """A reading connection, and what ``first`` made of it."""
        with translated(self._engine), self._waiting():
            connection, result = self._first(self._take(), self._engine.connect, first)
            try:
                yield connection, result
            except BaseException:
                _drop(connection)
                raise
            self._give_back(connection)

    def _first(
        self, kept: Connection | None, make: Callable[[], Connection], action: Callable[[Connection], R]
    ) -> tuple[Connection, R]:
        """Do ``action`` on the kept connection; on a new one where there is none, or where it turns out to be dead."""
        if kept is not None:
            try:
                return kept, action(kept)
            except BaseException as exc:
                _drop(kept)
                if not is_lost(exc, self._engine):
                    raise
            self._drop_idle()  # the others have lost the same server
        connection = make()
        try:
            return connection, action(connection)
        except BaseException:
            _drop(connection)
            raise

    def _new_writer(self) -> Connection:
        return self._engine.connect().execution_options(**WRITING)

    def _keep_writer(self, connection: Connection) -> None:
        with self._closing:
            if not self._closed:
                self._writer = connection
                return
        connection.close()

    def _commit(self, transaction: Transaction) -> None:
        try:
            transaction.commit()
        except DBAPIError as exc:
            if is_lost(exc, self._engine):
                raise BackendUnavailable(self._engine.dialect.name, _IN_DOUBT) from exc
            raise

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        if self._room is None:
            yield
            return
        if not self._room.acquire(timeout=self._patience_s):
            raise BackendUnavailable("store", f"all {MOST_READERS} connections have been in use for too long")
        try:
            yield
        finally:
            self._room.release()

    def _take(self) -> Connection | None:
        if self._closed:
            raise BackendRejected("store", "is closed")
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give_back(self, connection: Connection) -> None:
        with self._closing:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                return
            _drop(connection)


def _ask(connection: Connection) -> None:
    """One round trip, which tells whether anybody is there."""
    cursor = cursor_of(connection)
    cursor.execute("SELECT 1")
    cursor.close()


def _drop(connection: Connection) -> None:
    """Close without a word to the other side, which may be gone; it rolls back by itself."""
    if not connection.closed:
        let_go(connection)
        connection.invalidate()
        connection.close()
