"""Compares everything that is made from the store with it, and, where asked, makes anew what differs.

Only the store is the truth. Each part is looked at, mended, and looked at again: what is gone then was repaired, the
rest is left and says why. So a second run finds nothing, and no repair is taken for done because it did not fail.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol, cast

import numpy as np

from vimbank.domain.checks import UNCOMPARED, CheckReport, Component, PartitionCheck, Problem, after_repair
from vimbank.domain.models import Change, ListQuery, Memory, Partition
from vimbank.domain.summaries import DERIVED_KINDS, derived_of, stale_ids
from vimbank.errors import BackendError, ConfigError, VimbankError
from vimbank.feed.follow import Follower
from vimbank.feed.remote import RemoteFollower
from vimbank.ports import Embedded, EncoderIdentity, MemoryStore

__all__ = ["Auditor", "Checker", "IndexChecker", "Rewrite"]

_LOG = logging.getLogger(__name__)

_LOOKS: Final = 3
"""At a partition that is being written to, until a moment is met at which index and store tell of the same."""
_EMBEDDED_AT_ONCE: Final = 256
_LEGS: Final = ("roster", "dense", "sparse")
"""What ``WritableIndex.compare`` names where it counts rows, in the place of an id."""
_PAGE: Final = 1_000
_FIRST: Final = 256
"""Memories read while the index may not move: few, as searches wait for them."""

Rewrite = Callable[[Partition, frozenset[str]], None]
"""Bring these summaries and portraits of a partition up to date, and no other. Raises VimbankError."""


class Auditor(Protocol):
    """What a store can say of its own soundness, and mend of it."""

    def problems(self) -> Sequence[Problem]:
        """What is wrong in the store; [] when it is sound. Reads all of it."""
        ...

    def mend(self) -> None:
        """Mend what follows from the rest of the store."""
        ...

    def missing_embeddings(self, identity: EncoderIdentity, limit: int) -> Sequence[Memory]: ...

    def put_embeddings(self, identity: EncoderIdentity, embedded: Sequence[tuple[Memory, Embedded]]) -> int:
        """Keep embeddings that were missing, each as a change for the feed; how many."""
        ...

    def renew(self) -> None:
        """Have every process make its in-process indexes anew."""
        ...

    def known_partitions(self, tenant: str | None = None) -> Sequence[Partition]:
        """Every partition that holds a memory in any state, or held one."""
        ...


class Checker:
    """One check of one process. Reads and repairs while memories are written, and loses none.

    Args:    embed: stored memories with their embeddings made anew by the encoder ``identity``, the store's; None: the
                 store has not been given one yet.  remotes: the followers of indexes outside the
                 process.  rewrite: None: stale summaries are only told of.  repair: False: nothing is changed.
    """

    def __init__(
        self,
        store: MemoryStore,
        auditor: Auditor,
        indexes: Follower,
        remotes: Sequence[RemoteFollower],
        embed: Callable[[Sequence[Memory]], Sequence[tuple[Memory, Embedded]]],
        identity: EncoderIdentity | None,
        *,
        now: datetime,
        repair: bool,
        rewrite: Rewrite | None = None,
    ) -> None:
        self._store = store
        self._auditor = auditor
        self._own = IndexChecker(store, indexes, identity, repair=repair)
        self._remotes = remotes
        self._embed = embed
        self._identity = identity
        self._now = now
        self._repair = repair
        self._rewrite = rewrite
        self._refilled: set[str] = set()

    def run(self, tenant: str | None, progress: Callable[[int, int], None]) -> CheckReport:
        """Everything of a tenant, None: of all; of the store itself always all."""
        problems = _settled(self._repair, self._auditor.problems, self._mend_store)
        live = self._store.partitions(tenant)
        past = [each for each in self._auditor.known_partitions(tenant) if each not in set(live)]
        checks = []
        for done, partition in enumerate(live, 1):
            checks.append(self._partition(partition))
            progress(done, len(live))
        for partition in past:
            # Nothing of it is indexed any more; an index outside the process may not have heard of that.
            found = self._outside(partition)
            if found:
                checks.append(PartitionCheck(partition, 0, found))
        if tenant is None:
            problems += self._own.strays(live)
        return CheckReport(checks, problems)

    # -- the steps of every part --

    def _partition(self, partition: Partition) -> PartitionCheck:
        problems = _settled(self._repair, lambda: self._stale(partition), lambda: self._refresh(partition))
        inside = self._own.partition(partition)
        problems += [*inside.problems, *self._outside(partition)]
        return PartitionCheck(partition, inside.memories, problems)

    def _live(self, partition: Partition) -> Sequence[Change]:
        return [change for batch in self._store.live(partition) for change in batch]

    # -- the store --

    def _mend_store(self) -> None:
        self._auditor.mend()
        if self._identity is None:
            return
        kept = 0
        while memories := self._auditor.missing_embeddings(self._identity, _EMBEDDED_AT_ONCE):
            done = self._auditor.put_embeddings(self._identity, self._embed(memories))
            if not done:  # what is left keeps changing, and so gets its embedding from whoever changes it
                break
            kept += done
        if kept:
            self._auditor.renew()  # an index that holds zeros for a memory would not look at its vector again

    # -- summaries --

    def _stale(self, partition: Partition) -> list[Problem]:
        return [_problem("summaries", text) for text in self._stale_texts(partition).values()]

    def _stale_texts(self, partition: Partition) -> dict[str, str]:
        derived = [memory for kind in sorted(DERIVED_KINDS) for memory in self._of_kind(partition, kind)]

        def load(ids: Sequence[str]) -> Sequence[Memory]:
            return self._store.get(partition.tenant, ids)

        stale = stale_ids(derived, load, now=self._now)
        texts = {}
        for memory in derived:
            made_of = derived_of(memory)
            if memory.id in stale and made_of is not None:
                gone = len(made_of.sources) - len(load(made_of.sources))
                why = f"{gone} of its {len(made_of.sources)} sources are gone" if gone else "its sources have changed"
                texts[memory.id] = f"{memory.id}: the {memory.kind} is stale: {why}"
        return texts

    def _of_kind(self, partition: Partition, kind: str) -> Iterator[Memory]:
        query = ListQuery(
            tenant=partition.tenant, user_id=partition.user_id, bank=partition.bank, kind=kind, limit=_PAGE
        )
        while True:
            page = self._store.page(query)
            yield from (memory for memory in page.items if derived_of(memory) is not None)
            if page.next_cursor is None:
                return
            query = replace(query, cursor=page.next_cursor)

    def _refresh(self, partition: Partition) -> None:
        if self._rewrite is not None:
            self._rewrite(partition, frozenset(self._stale_texts(partition)))

    # -- outside the process --

    def _outside(self, partition: Partition) -> list[Problem]:
        problems: list[Problem] = []
        for follower in self._remotes:
            component = cast(Component, f"remote_{follower.name}")

            def look(follower: RemoteFollower = follower, component: Component = component) -> list[Problem]:
                try:
                    found = follower.differences(partition, lambda: self._live(partition))
                except (BackendError, ConfigError) as error:
                    return [Problem(component, UNCOMPARED, why=str(error))]
                return [_problem(component, text) for text in found]

            problems += _settled(self._repair, look, lambda follower=follower: self._reapply(follower, partition))  # type: ignore[misc]
        return problems

    def _reapply(self, follower: RemoteFollower, partition: Partition) -> None:
        follower.repair(partition, lambda: self._live(partition))
        if follower.name in self._refilled or not follower.differences(partition, lambda: self._live(partition)):
            return
        self._refilled.add(follower.name)  # once a check: what is wrong after that is not for another refill
        follower.refill()


class IndexChecker:
    """One check of what this process alone holds: its in-process indexes, and their snapshots.

    Searches go on meanwhile: an index is compared as a copy.

    Args:    identity: the store's encoder; None: it has not been given one yet.  repair: False: nothing is changed.
    """

    def __init__(
        self, store: MemoryStore, indexes: Follower, identity: EncoderIdentity | None, *, repair: bool
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._identity = identity
        self._repair = repair

    def run(self, progress: Callable[[int, int], None]) -> CheckReport:
        """What is in memory now, or was set aside as damaged. What is neither is checked as it is loaded."""
        live = self._store.partitions()
        loaded = self._indexes.loaded()  # in this order, so that what is used least stays the first to leave memory
        others = set(live) - set(loaded) if self._indexes.status().damaged else ()
        wanted = [*loaded, *sorted(filter(self._indexes.set_aside, others))]
        checks = []
        for done, partition in enumerate(wanted, 1):
            if self._indexes.is_loaded(partition) or self._indexes.set_aside(partition):
                checks.append(self.partition(partition))
            progress(done, len(wanted))
        return CheckReport(checks, self.strays(live))

    def partition(self, partition: Partition) -> PartitionCheck:
        """The index of a partition, loaded where it was not, and its snapshot."""
        counts: list[int] = []

        def look() -> Sequence[Problem]:
            found, count = self._inside(partition)
            counts.append(count)
            return found

        problems = _settled(self._repair, look, lambda: self._indexes.rebuild(partition))
        problems += _settled(self._repair, lambda: self._saved(partition), lambda: self._indexes.rebuild(partition))
        return PartitionCheck(partition, counts[-1], problems)

    def strays(self, live: Sequence[Partition]) -> list[Problem]:
        """Files that were set aside and belong to none of these partitions, which are all that hold something."""
        return _settled(self._repair, lambda: self._strays(live), lambda: self._drop_strays(live))

    def _inside(self, partition: Partition) -> tuple[list[Problem], int]:
        """What differs, and how many memories the store has: as of a moment at which the index holds all that was
        written. Where no look met one, what was written in between is left for the next check."""
        for _ in range(_LOOKS):
            try:
                texts, count, moved = self._differences(partition)
            except VimbankError as error:
                return [Problem("index", UNCOMPARED, why=str(error))], 0
            if not texts or not moved:
                break
        # Also the counts of rows, which those memories change.
        passing = tuple(f"{each}: " for each in (*moved, *_LEGS)) if moved else ()
        return [_problem("index", text) for text in texts if not text.startswith(passing)], count

    def _differences(self, partition: Partition) -> tuple[Sequence[str], int, frozenset[str]]:
        """What differs, the memories in the store, and the ids of those written in between, which may be why."""
        with self._indexes.read(partition) as held:
            # Begun here, so that both tell of one moment. The rest takes seconds, and whoever writes to the partition
            # or searches it then would wait.
            batches = iter(self._store.live(partition, batch=_FIRST))
            live = list(next(batches, []))
            index = held.copy()
        live += [change for batch in batches for change in batch]
        seen = [self._usable(change) for change in live if change.revision <= index.cursor]
        moved = frozenset(change.id for change in self._since(index.cursor, partition))
        return index.compare(seen), len(live), moved

    def _since(self, cursor: int, partition: Partition) -> Iterator[Change]:
        while changes := self._store.changes(cursor, limit=_PAGE, partition=partition):
            yield from changes
            cursor = changes[-1].revision

    def _usable(self, change: Change) -> Change:
        """Without a vector that cannot be compared; the check of the store names it."""
        vector = change.vector
        fits = vector is None or self._identity is None or len(vector) == self._identity.dimension
        if vector is None or (fits and np.isfinite(vector).all()):
            return change
        return Change(change.revision, change.partition, change.id, change.memory, None, change.number)

    def _saved(self, partition: Partition) -> list[Problem]:
        return [_problem("snapshots", text) for text in self._indexes.snapshot_faults(partition)]

    def _strays(self, live: Sequence[Partition]) -> list[Problem]:
        return [
            _problem("snapshots", f"snapshot {name} was damaged and set aside") for name in self._indexes.strays(live)
        ]

    def _drop_strays(self, live: Sequence[Partition]) -> None:
        """Of partitions that hold nothing, or that nobody knows any more: there is nothing to wait for."""
        self._indexes.drop_strays(self._indexes.strays(live))


def _settled(repair: bool, look: Callable[[], Sequence[Problem]], mend: Callable[[], None]) -> list[Problem]:
    """Look, and where something is to be repaired, mend and look again."""
    found = list(look())
    if not found or not repair:
        return found
    why: str | None = None
    try:
        mend()
    except VimbankError as error:
        why = str(error)
    report = after_repair(found, look(), why)
    gone = sum(problem.repaired for problem in report)
    _LOG.warning("%d of %d problems were repaired, such as «%s»", gone, len(report), found[0].text)
    return report


def _problem(component: Component, text: str) -> Problem:
    return Problem(component, text)
