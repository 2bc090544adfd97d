"""A new index outside the process, beside the one that serves: filled, compared, then put in its place."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol

from vimbank.domain.models import Change, Partition
from vimbank.errors import IndexCorrupt
from vimbank.feed.remote import RemoteFollower
from vimbank.ports import MemoryStore, RemoteIndex

__all__ = ["RebuildReport", "Rebuildable", "rebuild"]

_MOST_TOLD: Final = 5


class Unpublished(RemoteIndex, Protocol):
    """A new index that nobody searches yet."""

    def publish(self) -> None:
        """Put it in the place of the one that serves, at once; that one goes."""
        ...

    def discard(self) -> None:
        """Remove it."""
        ...


class Rebuildable(RemoteIndex, Protocol):
    """An index that can be made anew while it serves."""

    def rebuild(self, *, resume: bool = False) -> Unpublished:
        """A new, empty index beside this one, or what an interrupted rebuild left."""
        ...

    def drop_unpublished(self) -> None:
        """Remove what interrupted rebuilds left."""
        ...


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild did: memories in the new index, and the revision up to which it held everything at the change."""

    name: str
    memories: int
    revision: int


def rebuild(
    store: MemoryStore,
    index: Rebuildable,
    *,
    batch_size: int,
    expected: Callable[[Change], bool] = lambda _change: True,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> RebuildReport:
    """Make the index anew from the store while the present one serves, and change over at once.

    It may be interrupted at any time and called again: it goes on with what is there, and nothing that searches or
    follows notices. Only one may run at a time.

    Args:    progress: told how many revisions are applied, and how many there are.
    Raises:  IndexCorrupt: the new index does not hold what the store does; it is removed, the present one stays.
    """
    total = store.state().revision
    beside = index.rebuild(resume=True)
    follower = RemoteFollower(
        store, beside, batch_size=batch_size, expected=expected, progress=lambda revision: progress(revision, total)
    )
    with closing(follower):
        follower.catch_up()
        memories, problems = _compare(store, follower, expected)
        if problems:
            beside.discard()
            told = "; ".join(problems[:_MOST_TOLD])
            raise IndexCorrupt(index.name, f"the new index is not what the store says: {told}")
        revision = follower.catch_up()
        beside.publish()
    # What was written between the last look and the change-over is not in the new index yet, but in its feed.
    with closing(RemoteFollower(store, index, batch_size=batch_size)) as live:
        live.catch_up()
    index.drop_unpublished()
    progress(total, total)
    return RebuildReport(index.name, memories, revision)


def _compare(
    store: MemoryStore, follower: RemoteFollower, expected: Callable[[Change], bool]
) -> tuple[int, Sequence[str]]:
    """How many memories the new index has to hold, and where it differs from the store."""
    memories, problems = 0, list[str]()
    for partition in store.partitions():

        def live(partition: Partition = partition) -> Sequence[Change]:
            return [change for batch in store.live(partition) for change in batch]

        memories += sum(map(expected, live()))
        problems += follower.compare(partition, live)
    return memories, problems
