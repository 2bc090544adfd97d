"""Jobs over a real service, with an encoder that can be held up, and jobs watched until a deadline."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from vimbank.domain.models import MemoryDraft, Vectors
from vimbank.encoders.hashing import HashingEncoder
from vimbank.jobs.context import RemoteFollowing, Surroundings
from vimbank.jobs.runner import Jobs
from vimbank.jobs.schedule import schedules
from vimbank.ports import Clock, JobQueue
from vimbank.queues.threads import StoredQueue
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings
from vimbank.store.sql import SqlStore
from vimbank.wiring import open_service, utc_now

DEADLINE_S: Final = 20.0
MEMORIES: Final = 600
"""More than two batches of a reindex."""


class GatedEncoder(HashingEncoder):
    """The test encoder in another dimension, which calls ``before`` ahead of each batch."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        super().__init__(64)
        self.batches = 0
        self._before = before

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self._before()
        self.batches += 1
        return super().encode_documents(texts)


class Gate:
    """Holds a job at a batch until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.open.wait(DEADLINE_S)


def open_folder(folder: Path, *, clock: Clock = utc_now) -> MemoryService:
    """A service on a folder, with the test encoder."""
    return open_service(Settings(data_dir=folder, encoder=EncoderSettings(kind="hashing")), clock=clock, claim=False)


def fill(service: MemoryService, count: int = MEMORIES) -> None:
    """Memories of one user, each of its own words."""
    texts = (f"memory number {place} of the pier" for place in range(count))
    drafts = [MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=text) for text in texts]
    service.add_many(drafts)


def open_jobs(
    service: MemoryService,
    clock: Clock,
    *,
    encoder: HashingEncoder | None = None,
    queue: JobQueue | None = None,
    remotes: Sequence[RemoteFollowing] = (),
    lease_s: float = 60.0,
) -> Jobs:
    """The jobs of the service, as one process has them."""
    store = service.store
    assert isinstance(store, SqlStore)
    chosen = GatedEncoder() if encoder is None else encoder
    return Jobs(
        Surroundings(service, store.jobs, clock, lambda _kind: chosen, remotes, keep_days=7.0),
        StoredQueue() if queue is None else queue,
        lease_s=lease_s,
        schedules=schedules(
            follow_every_s=5,
            snapshot_every_s=300,
            compact_every_s=3_600,
            check_every_s=86_400,
            reinforce_every_s=60,
            forget_every_s=86_400,
            prune_every_s=86_400,
            summarise_every_s=86_400,
            portrait_every_s=86_400,
        ),
    )


def until(true: Callable[[], bool]) -> None:
    """Wait until it is so; fails after the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.005)
