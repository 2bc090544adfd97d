"""Concurrent writers share one transaction, and so one fsync.

Whoever comes while no transaction runs leads: it takes all that wait, runs them in one transaction, commits once and
hands each its result. Who comes meanwhile waits, and one of them leads next.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, TypeVar

from vimbank.errors import BackendUnavailable, ConfigError, Conflict, InvalidInput, NotFound

__all__ = ["GroupCommit"]

T = TypeVar("T")
R = TypeVar("R")

_MOST: Final = 512
"""Operations in one transaction: enough to share the fsync, few enough not to make the first wait for long."""

_REFUSALS: Final = (NotFound, Conflict, InvalidInput, ConfigError)
"""What an operation raises only before it has written anything."""


class _Ticket:
    """One caller's operation, and what became of it."""

    __slots__ = ("done", "error", "leads", "operation", "result", "signal")

    def __init__(self, operation: Callable[[Any], Any]) -> None:
        self.operation = operation
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.signal = threading.Lock()  # held until the owner has something to do
        self.signal.acquire()

    def settle(self, error: BaseException | None = None) -> None:
        self.error = error if error is not None else self.error
        self.done = True
        self.signal.release()


class GroupCommit(Generic[T]):
    """Runs operations in shared transactions, one transaction at a time, in the order they came.

    ``transaction`` opens one: commits when its block ends, rolls back when the block raises. An operation that
    raises NotFound, Conflict, InvalidInput or ConfigError must not have written before; any other error undoes the
    transaction, and each operation is run again alone, so that it harms none of the others. So operations may run
    twice, and must keep all they do inside the transaction.
    """

    def __init__(self, transaction: Callable[[], AbstractContextManager[T]]) -> None:
        self._transaction = transaction
        self._mutex = threading.Lock()  # guards the two below
        self._waiting: deque[_Ticket] = deque()
        self._led = False

    def run(self, operation: Callable[[T], R]) -> R:
        """The operation's result, once it is committed; or its error."""
        ticket = _Ticket(operation)
        with self._mutex:
            self._waiting.append(ticket)
            ticket.leads, self._led = not self._led, True
        if not ticket.leads:
            self._wait(ticket)
        if not ticket.done:
            self._lead()
        if ticket.error is not None:
            raise ticket.error
        result: R = ticket.result
        return result

    def _wait(self, ticket: _Ticket) -> None:
        try:
            ticket.signal.acquire()
        except BaseException:  # an interrupt: leave the queue, and never take the lead along
            with self._mutex:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                if ticket.leads and not ticket.done:
                    self._hand_over()
            raise

    def _lead(self) -> None:
        with self._mutex:
            tickets = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
        try:
            self._together(tickets)
        finally:
            for ticket in tickets:
                if not ticket.done:  # an interrupt struck the leader
                    ticket.settle(BackendUnavailable("store", "the write was interrupted; it may have been done"))
            with self._mutex:
                self._hand_over()

    def _hand_over(self) -> None:
        self._led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].signal.release()

    def _together(self, tickets: list[_Ticket]) -> None:
        try:
            with self._transaction() as transaction:
                for ticket in tickets:
                    _attempt(ticket, transaction)
        except BackendUnavailable as error:  # nobody's fault, and no better alone
            for ticket in tickets:
                ticket.settle(error)
        except Exception as error:  # noqa: BLE001 - it goes to the caller whose operation raised it
            if len(tickets) == 1:
                tickets[0].settle(error)
            else:
                for ticket in tickets:
                    ticket.error = None
                    self._together([ticket])
        else:
            for ticket in tickets:
                ticket.settle()


def _attempt(ticket: _Ticket, transaction: Any) -> None:
    try:
        ticket.result = ticket.operation(transaction)
    except _REFUSALS as refusal:
        ticket.error = refusal
