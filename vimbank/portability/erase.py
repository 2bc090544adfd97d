"""Erase a user, or a session or agent of one, everywhere; and look whether anything is left."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from vimbank.domain.models import Change, Partition, Scope
from vimbank.domain.sanitize import clean_id
from vimbank.errors import BackendUnavailable, InvalidInput
from vimbank.feed.remotes import Remotes
from vimbank.portability.receipts import Receipt, new_salt, salted, seal
from vimbank.service import ALL_USERS, MemoryService

__all__ = ["Eraser", "erase", "leftovers"]


class Eraser(Protocol):
    """What an erasure asks of the store (``store.erasing.SqlEraser``)."""

    def bury(self, scope: Scope, *, keep_tombstones: bool, digest: Callable[[str], str], now: datetime) -> Any: ...
    def purge(self, scope: Scope, buried: Any) -> None: ...
    def scrub(self) -> None: ...
    def last_number(self) -> int: ...
    def traces(self, *, tenant: str, last_number: int, last_revision: int) -> Iterator[Any]: ...


def erase(service: MemoryService, eraser: Eraser, scope: Scope, *, actor: str) -> Receipt:
    """Remove every trace of the scope, and say so. Doing it twice gives a second receipt, of nothing.

    Memories, tombstones, history, vectors, recalls and job records go in one transaction, and with a session or agent
    every summary and portrait that any version of was made of it, with its history: the next run of the jobs makes
    them anew from what is left. Then the indexes outside the process are brought up to the store and asked, this
    process's indexes, snapshots and caches are dropped, and the database's file is written anew. An erasure that was
    cut short is taken up by the next one.

    Raises:  InvalidInput: a bank, or no single user. BackendUnavailable: an index outside the process is out of reach
             (asked before anything is removed) or still holds something; the database is in use by an older reader.
    """
    scope = _checked(scope)
    service.fold_recalls()
    salt = new_salt()
    remotes = service.remotes
    outside = [] if remotes is None else [follower.name for follower in remotes.followers]
    service.follow_remote()
    buried = eraser.bury(
        scope, keep_tombstones=bool(outside), digest=lambda value: salted(salt, value), now=service.clock()
    )
    service.announce()
    if remotes is not None and outside:
        service.follow_remote()
        _verify_outside(remotes, buried.partitions, buried.numbers)
        eraser.purge(scope, buried)
    banks = sorted(service.limits.banks | {partition.bank for partition in buried.partitions})
    service.forget([Partition(scope.tenant, scope.user_id, bank) for bank in banks])
    eraser.scrub()
    return seal(
        scope,
        salt=salt,
        store=service.store.store_id(),
        by=actor,
        at=service.clock(),
        revision=service.store.state().revision,
        last_number=eraser.last_number(),
        counts=buried.counts,
        remote=dict.fromkeys(outside, "holds none of it"),
        contents=buried.contents,
        ids=buried.ids,
    )


def leftovers(
    service: MemoryService,
    eraser: Eraser,
    receipt: Receipt,
    *,
    user_id: str | None = None,
    snapshots: Sequence[tuple[Partition, int]] = (),
) -> list[str]:
    """What is left of what a receipt says was erased; [] where nothing is.

    What was written after the erasure is no trace of before, also of a user who came back.

    Args:    user_id: the user, where known: indexes outside the process can be asked about him then.
             snapshots: partition and cursor of each index snapshot in the data folder.
    Raises:  InvalidInput: the receipt is of another store (``receipt``) or of another user (``user_id``).
    """
    if receipt.store != service.store.store_id():
        raise InvalidInput.of("receipt", "is of another store")
    if user_id is not None and receipt.of(clean_id(user_id, "user_id")) != receipt.user:
        raise InvalidInput.of("user_id", "is not the user of the receipt")
    problems = _in_the_store(eraser, receipt)
    users = {user_id} if user_id is not None else set()
    for partition, cursor in snapshots:
        if partition.tenant == receipt.tenant and receipt.of(partition.user_id) == receipt.user:
            users.add(partition.user_id)
            if cursor < receipt.revision:
                problems.append(f"a snapshot of the bank {partition.bank} is from before the erasure")
    if service.remotes is not None:
        for user in sorted(users):
            for bank in sorted(service.limits.banks):
                partition = Partition(receipt.tenant, user, bank)
                problems += service.remotes.compare(partition, _reader(service, partition))
    return problems


def _checked(scope: Scope) -> Scope:
    if scope.bank is not None:
        raise InvalidInput.of("bank", "cannot narrow an erasure; delete a bank's memories instead")
    if scope.user_id == ALL_USERS:
        raise InvalidInput.of("user_id", "must name one user")
    if scope.session_id is not None and scope.agent_id is not None:
        raise InvalidInput.of("agent_id", "give a session or an agent, not both")
    return replace(
        scope,
        tenant=clean_id(scope.tenant, "tenant"),
        user_id=clean_id(scope.user_id, "user_id"),
        session_id=None if scope.session_id is None else clean_id(scope.session_id, "session_id"),
        agent_id=None if scope.agent_id is None else clean_id(scope.agent_id, "agent_id"),
    )


def _verify_outside(remotes: Remotes, partitions: Sequence[Partition], numbers: Sequence[int]) -> None:
    """Ask each index outside the process what it holds of the partitions."""
    erased = set(numbers)
    for follower in remotes.followers:
        for partition in partitions:
            left = erased.intersection(follower.holds(partition))
            if left:
                raise BackendUnavailable(follower.name, f"still holds {len(left)} of what was erased; erase again")


def _reader(service: MemoryService, partition: Partition) -> Callable[[], Sequence[Change]]:
    return lambda: [change for batch in service.store.live(partition) for change in batch]


def _in_the_store(eraser: Eraser, receipt: Receipt) -> list[str]:
    ids = set(receipt.ids)
    found: dict[str, int] = {}
    for trace in eraser.traces(tenant=receipt.tenant, last_number=receipt.last_number, last_revision=receipt.revision):
        if _is_left(trace, receipt, ids):
            found[trace.kind] = found.get(trace.kind, 0) + 1
    return [f"store: {count} rows of {kind} are left" for kind, count in sorted(found.items())]


def _is_left(trace: Any, receipt: Receipt, ids: set[str]) -> bool:
    if trace.user_id is None:  # a recall says only of which memory
        return receipt.of(trace.memory_id) in ids
    if receipt.of(trace.user_id) != receipt.user:
        return False
    if receipt.session is None and receipt.agent is None:
        return True
    named = ((receipt.session, trace.session_id), (receipt.agent, trace.agent_id))
    in_scope = all(wanted is None or (has is not None and receipt.of(has) == wanted) for wanted, has in named)
    return in_scope or any(receipt.of(each) in ids for each in (trace.memory_id, *trace.sources))
