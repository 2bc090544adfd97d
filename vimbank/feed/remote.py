"""Keeps one index outside this process in step with the store.

Every process may bring the index up to date, as applying is idempotent. A pass asks the index for its cursor, applies
what the feed has after it, batch by batch, and advances the cursor. A strongly consistent search has a pass made where
the index does not hold all that the search has to reflect; in the background one process follows for all (``Remotes``).
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from vimbank.domain.models import Change, Partition
from vimbank.errors import BackendError, BackendUnavailable, ConfigError, VimbankError
from vimbank.feed.breaker import FIRST_PROBE_S, LONGEST_PROBE_S, Breaker
from vimbank.ports import MemoryStore, RemoteIndex, StoreState

__all__ = ["RemoteFollower", "RemoteStatus"]

_LOG = logging.getLogger(__name__)
_IN_FLIGHT: Final = 3
"""Batches that are sent side by side: one is made ready while the engine works on the others. On two busy cores 3 were
7 % faster than 2, and 40 % faster than one after the other."""
_MOST_STARTS: Final = 10
_UNKNOWN: Final = -1
_BATCHES_A_STEP: Final = 20
"""After so many batches of a long pass the cursor is noted, so that one which is cut short goes on from there."""


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """How an index outside the process is, as this process knows it.

    ``cursor``: the revision up to which it holds everything; ``lag``: revisions of the store after that. ``down``:
    searches are answered without it ``since`` then (aware UTC), because of ``error``. ``documents``: None where it
    was not counted.
    """

    name: str
    state: Literal["ok", "behind", "down"]
    cursor: int
    lag: int
    since: datetime | None = None
    error: str | None = None
    documents: int | None = None


@dataclass(frozen=True, slots=True)
class _Pass:
    """A pass that runs."""

    future: "Future[int]"
    started: float


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a pass begins.

    ``known``: deletions up to here were heard of, so a tombstone after it that is gone may have been missed.
    """

    cursor: int
    state: StoreState
    known: int


class _StartAgain(Exception):
    """What the pass knew of index and store is no longer so."""


class RemoteFollower:
    """Follows the feed into one ``RemoteIndex``. Thread-safe; one a process and index.

    Args:    batch_size: changes a batch.
             search_patience_s: how long a search waits for the first word of the engine.
             catch_up_timeout_s: how long a search waits, in all, for the index to hold what it has to reflect.
             expected: whether the index has to hold an indexed memory: for ``compare``.
             count: how many memories the index holds.
             progress: told of the revision up to which batches were read, in a pass.
             on_filled: called when an index that was empty holds everything, such as to remove a former one.
    """

    def __init__(
        self,
        store: MemoryStore,
        index: RemoteIndex,
        *,
        batch_size: int = 1_000,
        search_patience_s: float = 0.2,
        catch_up_timeout_s: float = 2.0,
        expected: Callable[[Change], bool] = lambda _change: True,
        count: Callable[[], int] | None = None,
        progress: Callable[[int], object] = lambda _revision: None,
        on_filled: Callable[[], object] = lambda: None,
        first_probe_s: float = FIRST_PROBE_S,
        longest_probe_s: float = LONGEST_PROBE_S,
    ) -> None:
        self._store = store
        self._index = index
        self._batch_size = batch_size
        self._search_patience_s = search_patience_s
        self._catch_up_timeout_s = catch_up_timeout_s
        self._expected = expected
        self._count = count
        self._progress = progress
        self._on_filled = on_filled
        self._lock = threading.Lock()
        self._pass: _Pass | None = None
        self._known = _UNKNOWN
        self._met = False  # the engine has answered this process
        self._asked: tuple[float, float] | None = None  # since when, and with what patience, its first word is awaited
        self._closed = False
        # One pass at a time; it has its batches sent by the others.
        self._passes = ThreadPoolExecutor(1, thread_name_prefix=f"vimbank-follow-{index.name}")
        self._senders = ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix=f"vimbank-send-{index.name}")
        self.breaker: Final = Breaker(
            index.name, lambda: self._join().future.result(), first_s=first_probe_s, longest_s=longest_probe_s
        )

    @property
    def name(self) -> str:
        """The leg that the index serves."""
        return self._index.name

    @property
    def cursor(self) -> int:
        """A revision up to which the index held everything when it was last asked; 0: it was not asked yet."""
        return max(0, self._known)

    def forget(self) -> None:
        """Trust nothing that is known of the index: ask it before the next search."""
        self._known = _UNKNOWN

    def catch_up(self, revision: int | None = None) -> int:
        """Have the index hold everything up to ``revision``; the cursor reached. None: all there is now.

        Without a revision the index is asked in any case, so that one which was lost or reset is found and filled.
        Callers at the same time share a pass.

        Raises:  BackendUnavailable: out of reach, or left alone (``Breaker``). BackendRejected, ConfigError: refused.
        """
        self.breaker.check()
        if revision is None:
            revision = self._store.state().revision
            self._join().future.result()
        while self._known < revision:
            self._join().future.result()
        return self._known

    def ensure(self, revision: int) -> None:
        """As ``catch_up``, for a search, which waits no longer than ``catch_up_timeout_s``.

        An engine that does not say a first word within ``search_patience_s`` is not waited for; nor is a pass that is
        known to take longer.

        Raises:  BackendUnavailable: the index does not hold everything up to ``revision``, for whatever reason.
        """
        self.breaker.check()
        if self._known >= revision:
            return
        deadline = time.monotonic() + self._catch_up_timeout_s
        try:
            while self._known < revision:
                self._wait(self._join(), deadline)
        except (BackendError, ConfigError) as error:
            raise _unavailable(self.name, error) from error

    @contextmanager
    def answering(self, revision: int) -> Iterator[None]:
        """Around a search of the index that has to reflect ``revision``.

        Raises:  BackendUnavailable, also where the engine refuses the search: it is answered without this leg.
        """
        self.ensure(revision)
        try:
            with self.breaker.guard():
                yield
        except BackendError as error:
            if not isinstance(error, BackendUnavailable):
                _LOG.error("a search is answered without the %s leg: %s", self.name, error)
            raise _unavailable(self.name, error) from error

    def status(self, *, count: bool = False) -> RemoteStatus:
        """Ask the index, as a search would, and tell how it is; raises nothing."""
        revision = self._store.state().revision
        documents = None
        try:
            self.forget()
            self.ensure(revision)
            if count and self._count is not None:
                documents = self._count()
        except BackendError as error:
            outage, behind = self.breaker.outage, revision - self.cursor
            return RemoteStatus(
                self.name,
                "behind" if outage is None else "down",
                self.cursor,
                behind,
                None if outage is None else outage.since,
                str(error) if outage is None else outage.error,
            )
        return RemoteStatus(self.name, "ok", self.cursor, max(0, revision - self.cursor), documents=documents)

    def holds(self, partition: Partition) -> Mapping[int, int]:
        """``number`` -> revision of what the caught-up index holds of a partition. Raises as ``catch_up``."""
        self.catch_up()
        with self.breaker.guard():
            return self._index.holds(partition)

    def compare(self, partition: Partition, live: Callable[[], Sequence[Change]]) -> list[str]:
        """Differences between the index and the store, [] where there are none; an index out of reach is one.

        Args:    live: reads the indexed memories of the partition from the store.
        """
        try:
            return self.differences(partition, live)
        except (BackendError, ConfigError) as error:
            return [f"{self.name}: {error}"]

    def differences(self, partition: Partition, live: Callable[[], Sequence[Change]]) -> list[str]:
        """As ``compare``. Raises as ``catch_up`` where the index is out of reach."""
        found = self._differences(partition, live())
        # What was written meanwhile is no difference: it is gone at a second look.
        again = self._differences(partition, live()) if found else []
        return [problem for problem in again if problem in set(found)]

    def repair(self, partition: Partition, live: Callable[[], Sequence[Change]]) -> None:
        """Apply again what the index lacks of a partition or holds differently, and delete what the store has not.

        What it refuses, because it holds something that calls itself newer, stays: ``refill`` is for that.

        Args:    live: as in ``compare``.
        Raises:  as ``catch_up``.
        """
        self.catch_up()
        before = self._store.state().revision
        memories = live()
        with self.breaker.guard():
            held = dict(self._index.holds(partition))
            wrong = [each for each in memories if self._expected(each) and held.get(each.number) != each.revision]
            right = {each.number for each in memories if self._expected(each)}
            # What was written after ``before`` may be in the index and not among the memories that were read.
            surplus = [number for number, revision in held.items() if number not in right and revision <= before]
            gone = [Change(before, partition, "", None, None, number) for number in surplus]
            for changes in (wrong, gone):
                for start in range(0, len(changes), self._batch_size):
                    self._index.apply(changes[start : start + self._batch_size])
            self._index.advance(self.cursor)

    def refill(self) -> None:
        """Empty the index and fill it from the store, for what no single change mends. Raises as ``catch_up``.

        Searches go without it until that is done.
        """
        _LOG.warning("the index %s is filled anew: it holds what no change of the store can mend", self.name)
        self.breaker.check()
        self._passes.submit(self._empty).result()
        self.catch_up()

    def _empty(self) -> None:
        """In the thread of the passes, so that none is under way."""
        self.forget()
        with self._asking():
            self._index.reset()

    def close(self) -> None:
        """Stop probing, and wait for the pass that runs to end at its next batch."""
        self._closed = True
        self.breaker.close()
        self._passes.shutdown(cancel_futures=True)
        self._senders.shutdown()

    # -- waiting --

    def _join(self) -> _Pass:
        """The pass that runs, or a new one."""
        with self._lock:
            if self._pass is None or self._pass.future.done():
                if self._closed:
                    raise BackendUnavailable(self.name, "the process ends")
                self._expect_word()
                self._pass = _Pass(self._passes.submit(self._run), time.monotonic())
            return self._pass

    def _wait(self, running: _Pass, deadline: float) -> None:
        while True:
            asked = self._asked
            # Who comes late does not wait as long again for what has kept others waiting already.
            ends = [deadline, running.started + self._catch_up_timeout_s, *([sum(asked)] if asked is not None else [])]
            remaining_s = min(ends) - time.monotonic()
            try:
                running.future.result(max(0.0, remaining_s))
            except TimeoutError:
                if running.future.done():
                    continue
                if remaining_s <= 0:
                    silent = asked is not None and sum(asked) <= time.monotonic()
                    why = "no answer" if silent else f"not caught up within {self._catch_up_timeout_s:g} s"
                    raise BackendUnavailable(self.name, why) from None
            else:
                return

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Around a call to the engine in a pass: whatever it refuses, the leg cannot be used until it is mended."""
        try:
            yield
        except (BackendError, ConfigError) as error:
            self.breaker.trip(error)
            raise

    # -- a pass --

    def _run(self) -> int:
        for _ in range(_MOST_STARTS):
            try:
                start = self._start()
                if start.cursor < start.state.revision:
                    self._fill(start)
                return self._known
            except _StartAgain as reason:
                self.forget()
                _LOG.info("following into %s starts again: %s", self.name, reason)
        raise BackendUnavailable(self.name, "store and index keep changing beneath the follower")

    def _start(self) -> _Start:
        generation = self._store.state().generation
        with self._asking():
            cursor = self._first_word()
        state = self._store.state()  # read after the cursor, which must not seem ahead of it
        if state.generation != generation:
            raise _StartAgain("the store has another encoder")
        if cursor > state.revision:
            self._reset(f"it is at revision {cursor}, and the store, an older copy, at {state.revision}")
        if 0 < cursor < state.compacted:
            self._reset(f"it is at revision {cursor} and has missed deletions up to {state.compacted}")
        self._known = cursor
        return _Start(cursor, state, cursor or state.revision)

    def _first_word(self) -> int:
        self._expect_word()
        try:
            cursor = self._index.cursor()
        finally:
            self._asked = None
        self._met = True
        return cursor

    def _expect_word(self) -> None:
        """Searches wait for the engine's first word from now on; longer where it has to be met first."""
        self._asked = (time.monotonic(), self._search_patience_s if self._met else self._catch_up_timeout_s)

    def _reset(self, why: str) -> None:
        _LOG.warning("the index %s is filled anew: %s", self.name, why)
        self.forget()
        with self._asking():
            self._index.reset()
        raise _StartAgain(why)

    def _fill(self, start: _Start) -> None:
        """Apply all of the feed from the start's cursor to its revision, and advance."""
        sending: deque[Future[None]] = deque()
        batches, passed = 0, start.cursor
        try:
            for changes, passed in self._batches(start):
                if len(sending) == _IN_FLIGHT:
                    self._settle(sending.popleft())
                sending.append(self._senders.submit(self._index.apply, changes))
                batches += 1
                self._progress(passed)
                if batches % _BATCHES_A_STEP == 0 and passed >= start.state.compacted:
                    # Before that the cursor would tell of an index that has missed deletions.
                    self._advance(sending, passed)
        except BaseException:
            for future in sending:
                future.cancel() or future.exception()  # nothing is sent any more when the pass has ended
            raise
        self._advance(sending, passed)
        if start.cursor == 0 or batches > _BATCHES_A_STEP:  # a fill, or the end of one that was cut short
            with self._asking():
                self._on_filled()

    def _batches(self, start: _Start) -> Iterator[tuple[Sequence[Change], int]]:
        """Batches of the feed, each with the revision up to which it and those before it tell everything."""
        passed = start.cursor
        before = start.state
        while passed < start.state.revision:
            if self._closed:
                raise BackendUnavailable(self.name, "the process ends")
            changes = self._store.changes(passed, limit=self._batch_size)
            after = self._store.state()
            if after.generation != start.state.generation:
                raise _StartAgain("the store has another encoder")
            if after.compacted > start.known:
                self._reset(f"deletions up to {after.compacted} were forgotten before it heard of them")
            if len(changes) == self._batch_size:
                passed = changes[-1].revision
            else:
                passed = max(before.revision, changes[-1].revision if changes else 0)
            before = after
            yield changes, passed

    def _advance(self, sending: "deque[Future[None]]", passed: int) -> None:
        while sending:
            self._settle(sending.popleft())
        with self._asking():
            self._index.advance(passed)
        self._known = passed

    def _settle(self, future: "Future[None]") -> None:
        with self._asking():
            future.result()

    # -- comparing --

    def _differences(self, partition: Partition, live: Sequence[Change]) -> list[str]:
        self.catch_up(self._store.state().revision)  # deletions, too, which are in no memory that is left
        with self.breaker.guard():
            held = dict(self._index.holds(partition))
        problems = []
        for change in live:
            revision = held.pop(change.number, None)
            if revision is None:
                if self._expected(change):
                    problems.append(f"{self.name}: {change.id}: missing from the index")
            elif not self._expected(change):
                problems.append(f"{self.name}: {change.id}: in the index, where it has no place")
            elif revision != change.revision:
                problems.append(f"{self.name}: {change.id}: at revision {revision}, the store has {change.revision}")
        return problems + [f"{self.name}: number {number}: in the index but not in the store" for number in held]


def _unavailable(name: str, error: VimbankError) -> BackendUnavailable:
    return error if isinstance(error, BackendUnavailable) else BackendUnavailable(name, str(error))
