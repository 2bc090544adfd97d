"""Carry out the supersessions that no write has: of memories from before, of what began later, of late dates (V-10).

Where a chat model is set it is asked then about what the rules leave: see ``jobs.comparing``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from vimbank.domain.conflicts import Claim, Supersede, claim_keys, claims_of, decide
from vimbank.domain.endings import Ended, ended_record
from vimbank.domain.json_values import flag_value
from vimbank.domain.models import Memory, MemoryState, Partition
from vimbank.domain.statements import read_memory
from vimbank.domain.superseding import is_outdated, merged, own_claims
from vimbank.domain.times import format_time
from vimbank.jobs.comparing import compare
from vimbank.jobs.context import JobContext
from vimbank.jobs.guarding import reversible_guard
from vimbank.jobs.params import only, tenant_and_share
from vimbank.ports import Ending

__all__ = ["PARAMS", "conflicts", "validate"]

PARAMS: Final[Mapping[str, str]] = {
    "dry_run": "true: only say what would be superseded",
    "tenant": "only this tenant's memories; left out: all",
    "reread": "true: also read again what was read before, as after an upgrade; a model is asked again too",
    "rules_only": "true: ask no chat model, also where one is set",
    "max_share": "what the run may supersede at most, 0 to 1; left out: as the settings say, or a handful",
}

_READ: Final = 1_000
"""Memories read between two looks for a cancellation."""
_BATCH: Final = 200
"""Memories ended in one transaction."""
_SHOWN: Final = 100


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """See ``PARAMS``."""
    only(params, *PARAMS)
    checked: dict[str, Any] = {
        name: flag_value(params.get(name, False), f"params.{name}") for name in ("dry_run", "reread", "rules_only")
    }
    return checked | tenant_and_share(params)


@dataclass(frozen=True, slots=True)
class _Read:
    """What is held of a memory that claims something."""

    content_hash: str
    state: MemoryState
    pinned: bool
    outdated: bool
    ended: tuple[Ended, ...]


@dataclass(slots=True)
class _Survey:
    """What a run would end, before it ends any of it; ``read`` memories had not been read before."""

    read: int = 0
    superseded: int = 0
    partly: int = 0
    due: list[Ending] = field(default_factory=list)
    items: list[Mapping[str, Any]] = field(default_factory=list)


def conflicts(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Decide over all claims of each partition, and carry out what is outstanding.

    Every partition is looked at before the first memory is superseded. Idempotent: what is recorded is not due again,
    and what somebody took back is not done again. A memory that was written meanwhile, or whose ender was, waits for
    the next run (``skipped``). A chat model is asked once the rules are through, not where they were stopped.
    """
    dry_run = bool(params.get("dry_run", False))
    store = context.service.store
    survey = _Survey()
    partitions = store.partitions(params.get("tenant"))
    for done, partition in enumerate(partitions, 1):
        _look(context, partition, survey, dry_run=dry_run, reread=bool(params.get("reread", False)))
        context.report(done, len(partitions), "partitions looked at")
    memories = store.counts(params.get("tenant")).by_state.get(MemoryState.ACTIVE.value, 0)
    # What has ended in part stays where it is: only what leaves the searches counts.
    guard = reversible_guard(context, params, taken=survey.superseded, total=memories)
    superseded, partly, skipped = 0, 0, 0
    if not dry_run and not guard.stops:
        for batch in _batches(survey.due):
            results = store.end(batch, now=context.around.clock())
            written = [each for each in results if isinstance(each, Memory)]
            whole = sum(each.state is MemoryState.SUPERSEDED for each in written)
            superseded, partly = superseded + whole, partly + len(written) - whole
            skipped += len(results) - len(written)
            context.report(superseded + partly + skipped, len(survey.due), "memories")
            context.check()
        if superseded or partly:
            context.service.announce()
    by_model = None
    if not guard.stops and not params.get("rules_only", False):
        by_model = compare(context, partitions, dry_run=dry_run)
    return {
        "dry_run": dry_run,
        "stopped": f"it would supersede {guard}" if guard.stops else None,
        "memories": memories,
        "read": survey.read,
        "due": survey.superseded,
        "due_partly": survey.partly,
        "superseded": superseded,
        "ended_partly": partly,
        "skipped": skipped,
        "items": survey.items,
        "by_model": by_model,
    }


def _look(context: JobContext, partition: Partition, survey: _Survey, *, dry_run: bool, reread: bool) -> None:
    now = context.around.clock()
    claims: list[Claim] = []
    known: dict[str, _Read] = {}
    for memory, its_claims in _claiming(context, partition, survey, dry_run=dry_run, reread=reread):
        claims += its_claims
        known[memory.id] = _Read(memory.content_hash, memory.state, memory.pinned, is_outdated(memory), memory.ended)
    endings = [
        Ending(
            partition.tenant,
            decision.old_id,
            known[decision.old_id].content_hash,
            decision.ended,
            {each.new_id: known[each.new_id].content_hash for each in decision.ended},
        )
        for decision in decide(claims)
        if _outstanding(decision, known[decision.old_id], now)
    ]
    for batch in _batches(endings):
        for ending, result in zip(batch, context.service.store.end(batch, dry_run=True, now=now), strict=True):
            if isinstance(result, Memory):
                survey.due.append(ending)
                _note(survey, result)
        context.check()


def _claiming(
    context: JobContext, partition: Partition, survey: _Survey, *, dry_run: bool, reread: bool
) -> Iterator[tuple[Memory, Sequence[Claim]]]:
    """Every memory that claims something, with its claims. Notes what those claim that nobody had read."""
    store = context.service.store
    fresh: set[str] = set()
    last = 0
    while memories := store.unread(partition, after=last, limit=_READ, again=reread):
        read = [(memory, read_memory(memory)) for memory in memories]
        if not dry_run:
            store.put_claims([(memory, claim_keys(reading)) for memory, reading in read])
        for memory, reading in read:
            if reading.statements:
                fresh.add(memory.id)
                yield memory, claims_of(memory, reading)
        survey.read += len(memories)
        last = memories[-1].number
        context.check()
    for batch in store.claiming(partition, batch=_READ):
        for memory in batch:
            if memory.id not in fresh:
                yield memory, own_claims(memory)
        context.check()


def _outstanding(decision: Supersede, read: _Read, now: datetime) -> bool:
    """Whether anything of it may be left to do; the store knows."""
    due = [each for each in decision.ended if each.from_instant <= now]
    if not due or not (read.state is MemoryState.ACTIVE or read.outdated):
        return False
    if merged(read.ended, due) != read.ended:
        return True
    return decision.whole and read.state is MemoryState.ACTIVE and not read.pinned


def _note(survey: _Survey, memory: Memory) -> None:
    whole = memory.state is MemoryState.SUPERSEDED
    survey.superseded += whole
    survey.partly += not whole
    if len(survey.items) < _SHOWN:
        survey.items.append(
            {
                "tenant": memory.tenant,
                "user_id": memory.user_id,
                "bank": memory.bank,
                "id": memory.id,
                "whole": whole,
                "by": memory.ended[-1].new_id,
                "from": format_time(memory.ended[-1].from_instant),
                "ended": [ended_record(each) for each in memory.ended],
            }
        )


def _batches(endings: Sequence[Ending]) -> Iterator[Sequence[Ending]]:
    for start in range(0, len(endings), _BATCH):
        yield endings[start : start + _BATCH]
