"""What a job is given to work with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from vimbank.domain.models import ListQuery, Memory, MemoryState, Partition
from vimbank.jobs.pulse import Pulse
from vimbank.llm.assess import ChatJudge
from vimbank.llm.compare import ChatComparer
from vimbank.llm.writer import Writer
from vimbank.portability.erase import Eraser
from vimbank.ports import Clock, Encoder, JobStore
from vimbank.service import MemoryService

__all__ = ["JobContext", "RemoteFollowing", "Surroundings"]


class RemoteFollowing(Protocol):
    """Brings the indexes outside this process up to the store."""

    def catch_up(self) -> Mapping[str, int]:
        """Apply what is missing; the cursor that each index reached, by its name. Raises BackendUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a process has for all its jobs.

    ``encoder`` opens the encoder of a kind, None: the one in the settings. ``keep_days``: how long ended jobs and
    the tombstones of deleted memories stay, ``recalls_keep_days``: lines of the access log that are folded in.
    ``eraser``: the store's side of an erasure, where it has one.
    ``writer``: one for the summaries of a run, given what it asks while it waits; None: they are extractive.
    ``judge``: likewise, one that says what is worth remembering; None: the rules say.
    ``comparer``: likewise, one that says what a memory is to an older one; None: the rules alone say.
    """

    service: MemoryService
    store: JobStore
    clock: Clock
    encoder: Callable[[str | None], Encoder]
    remotes: Sequence[RemoteFollowing]
    keep_days: float
    eraser: Eraser | None = None
    writer: Callable[[Callable[[], None]], Writer] | None = None
    judge: Callable[[Callable[[], None]], ChatJudge] | None = None
    comparer: Callable[[Callable[[], None]], ChatComparer] | None = None
    recalls_keep_days: float = 30.0


@dataclass(frozen=True, slots=True)
class JobContext:
    """One run's means. A job works in small batches and calls ``check`` between two of them."""

    around: Surroundings
    pulse: Pulse

    @property
    def service(self) -> MemoryService:
        """The service to work on."""
        return self.around.service

    def partitions(self, *, tenant: str | None, user: str | None, bank: str | None) -> list[Partition]:
        """Those of a tenant, a user and a bank; None: of all."""
        found = self.service.store.partitions(tenant)
        return [each for each in found if user in (None, each.user_id) and bank in (None, each.bank)]

    def pages(self, partition: Partition, *, state: MemoryState | None, size: int) -> Iterator[Sequence[Memory]]:
        """The memories of a partition, page by page, with a ``check`` before each; ``state`` None: in any state."""
        query = ListQuery(
            tenant=partition.tenant, user_id=partition.user_id, bank=partition.bank, state=state, limit=size
        )
        while True:
            self.check()
            page = self.service.store.page(query)
            yield page.items
            if page.next_cursor is None:
                return
            query = replace(query, cursor=page.next_cursor)

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        """Note how far the job is; a few of them a second reach the store."""
        self.pulse.report(done, total, message)

    def check(self) -> None:
        """Raises JobCancelled, JobInterrupted, JobTimedOut or LeaseLost when the job must not go on."""
        self.pulse.check()
