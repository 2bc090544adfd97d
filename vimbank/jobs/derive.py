"""What the jobs that write summaries and portraits share: reading a partition, carrying out a plan, the report."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from vimbank.domain.models import Memory, MemoryDraft, MemoryPatch, Partition
from vimbank.domain.summaries import (
    FAN_IN,
    Derived,
    DerivedKind,
    Level,
    Plan,
    condensing_plans,
    day_plans,
    derived_of,
    happened_at,
    is_source,
    must_write,
)
from vimbank.errors import BackendRejected, Conflict, InvalidInput, ModelError, NotFound
from vimbank.jobs.context import JobContext
from vimbank.jobs.failures import Failures
from vimbank.llm.extractive import ExtractiveWriter
from vimbank.llm.writer import Passage, Task, Writer

__all__ = ["PARAMS", "Derivation", "Tally", "passages", "run_over_partitions"]

T = TypeVar("T")

PARAMS: Final[Mapping[str, str]] = {
    "tenant": "only this tenant's memories; left out: all",
    "user": "only this user's",
    "bank": "of this bank; left out: dialog",
    "dry_run": "true: only count what would be written",
}
_PAGE: Final = 1_000
_TRIES: Final = 3


@dataclass(slots=True)
class Tally:
    """What a run has done so far."""

    written: int = 0
    refreshed: int = 0
    unchanged: int = 0
    removed: int = 0
    conflicts: int = 0
    failures: Failures = field(default_factory=Failures)

    @property
    def done(self) -> int:
        """Plans that are through, however they ended."""
        return self.written + self.refreshed + self.unchanged + self.removed + self.failures.count + self.conflicts


def run_over_partitions(
    context: JobContext,
    params: Mapping[str, Any],
    kind: DerivedKind,
    work: Callable[["Derivation"], None],
    *,
    only: Collection[str] | None = None,
) -> Mapping[str, Any]:
    """Call ``work(derivation)`` for each partition that is asked for; the report.

    Args:    only: the ids that may be refreshed or removed, and nothing is added; None: whatever has to be done.
    Raises:  ModelError: whatever was tried failed; nothing was changed.
    """
    make = context.around.writer
    writer: Writer = ExtractiveWriter(context.service.encoder) if make is None else make(context.check)
    tally = Tally()
    partitions = context.partitions(
        tenant=params.get("tenant"), user=params.get("user"), bank=params.get("bank", "dialog")
    )
    with tally.failures.ending_the_run():
        for partition in partitions:
            dry_run = params.get("dry_run", False)
            work(Derivation(context, writer, partition, kind, tally, dry_run=dry_run, only=only))
    tally.failures.raise_unless(tally.written + tally.refreshed > 0)
    return {
        "method": writer.method,
        "model": writer.model,
        "dry_run": params.get("dry_run", False),
        "partitions": len(partitions),
        "written": tally.written,
        "refreshed": tally.refreshed,
        "unchanged": tally.unchanged,
        "removed": tally.removed,
        "conflicts": tally.conflicts,
        **tally.failures.record(),
        **writer.spent.record(),
    }


class Derivation:
    """The summaries or portraits of one partition in one run.

    ``sources`` are what they are made of, ``existing`` those that are there, by id; ``existing`` follows what is
    written. A plan that fails leaves everything as it is and is counted.
    """

    def __init__(
        self,
        context: JobContext,
        writer: Writer,
        partition: Partition,
        kind: DerivedKind,
        tally: Tally,
        *,
        dry_run: bool,
        only: Collection[str] | None = None,
    ) -> None:
        self.context = context
        self.writer = writer
        self.partition = partition
        self.kind = kind
        self.tally = tally
        self.dry_run = dry_run
        self._only = only
        now = context.around.clock()
        memories = [memory for page in context.pages(partition, state=None, size=_PAGE) for memory in page]
        self.sources: Sequence[Memory] = [memory for memory in memories if is_source(memory, now)]
        self.existing: dict[str, Memory] = {
            memory.id: memory for memory in memories if memory.kind == kind and derived_of(memory) is not None
        }

    def of_level(self, level: Level) -> list[tuple[Memory, Derived]]:
        """Those that are there, of one level."""
        found = [(memory, derived_of(memory)) for memory in self.existing.values()]
        return [(memory, derived) for memory, derived in found if derived is not None and derived.level == level]

    def daily_and_global(self, day: Task, whole: Task) -> None:
        """Each day's, and the one that they are condensed into, by way of months where there are many days."""
        plans = day_plans(self.partition, self.kind, self.sources, self.existing)
        self.remove_all_but("day", plans)
        days = [memory for plan in plans if (memory := self.carry_out(plan, day)) is not None]
        finer = days
        months = condensing_plans(self.partition, self.kind, "month", days, self.existing) if len(days) > FAN_IN else []
        self.remove_all_but("month", months)
        if months:
            finer = [memory for plan in months if (memory := self.carry_out(plan, whole)) is not None]
        last = condensing_plans(self.partition, self.kind, "global", finer, self.existing)
        if not plans:  # no day is left; where days could not be written, the old one stays (case 89)
            self.remove_all_but("global", [])
        for plan in last:
            self.carry_out(plan, whole)

    def carry_out(self, plan: Plan, task: Task) -> Memory | None:
        """Write what the plan wants, unless it is there; the memory, None where it could not be brought about."""
        if not must_write(plan, self.writer.method):
            self.tally.unchanged += 1
            return plan.existing
        return self.write(plan, lambda: self.writer.write(task, passages(plan.sources)))

    def may(self, memory: Memory | None) -> bool:
        """Whether this run may touch it; None: whether it may add one."""
        return self._only is None or (memory is not None and memory.id in self._only)

    def write(self, plan: Plan, text_of: Callable[[], str | None]) -> Memory | None:
        """Put the text that ``text_of`` gives in the plan's place; the memory, None where that failed.

        A text of None: there is nothing to tell, and what told of it goes.
        """
        if not self.may(plan.existing):
            self.tally.unchanged += 1
            return plan.existing
        if self.dry_run:
            self._count(plan)
            return plan.existing
        memory = self.attempted(plan.id, lambda: self._put(plan, text_of()))
        if memory is not None:
            self.tally.failures.note_success()
            self._count(plan)
            self.existing[memory.id] = memory
        return memory

    def attempted(self, memory_id: str, step: Callable[[], T | None]) -> T | None:
        """What the step gives; None where it failed, which is counted. Raises Stopped."""
        self.context.check()
        self.context.report(self.tally.done, None, self.kind)
        try:
            return step()
        except (ModelError, BackendRejected, InvalidInput) as error:
            self.tally.failures.note(error, id=memory_id)
        except (Conflict, NotFound):  # somebody else changed it meanwhile; the next run sees what is to be done
            self.tally.conflicts += 1
        return None

    def remove(self, memory: Memory) -> None:
        """Delete what tells of nothing any more."""
        self.context.check()
        if not self.may(memory):
            return
        self.existing.pop(memory.id, None)
        if not self.dry_run:
            try:
                self.context.service.delete(memory.tenant, memory.id, actor=self._actor)
            except NotFound:
                return
        self.tally.removed += 1

    def remove_all_but(self, level: Level, plans: Sequence[Plan]) -> None:
        """Delete those of a level that no plan wants."""
        wanted = {plan.id for plan in plans}
        for memory, _ in self.of_level(level):
            if memory.id not in wanted:
                self.remove(memory)

    # -- inside --

    @property
    def _actor(self) -> str:
        return "summarise" if self.kind == "summary" else "portrait"

    def _count(self, plan: Plan) -> None:
        if plan.existing is None:
            self.tally.written += 1
        else:
            self.tally.refreshed += 1

    def _put(self, plan: Plan, text: str | None) -> Memory | None:
        if text is not None:
            return self._add(plan, text) if plan.existing is None else self._update(plan, plan.existing, text)
        if plan.existing is None:
            self.tally.unchanged += 1
        else:
            self.remove(plan.existing)
        return None

    def _add(self, plan: Plan, text: str) -> Memory:
        service = self.context.service
        draft = MemoryDraft(
            tenant=self.partition.tenant,
            user_id=self.partition.user_id,
            bank=self.partition.bank,
            kind=self.kind,
            text=text,
            session_id=plan.session_id,
            metadata=self._metadata(plan),
            event_at=plan.event_at,
            id=plan.id,
            deduplicate=False,
        )
        service.add(draft, actor=self._actor)
        return self._stored(plan.id)

    def _update(self, plan: Plan, existing: Memory, text: str) -> Memory:
        patch = MemoryPatch(text=text, metadata=self._metadata(plan), event_at=plan.event_at)
        seen = existing
        for _ in range(_TRIES):
            try:
                self.context.service.update(
                    seen.tenant, seen.id, patch, expected_revision=seen.revision, actor=self._actor
                )
                return self._stored(seen.id)
            except Conflict:
                seen = self._stored(seen.id)
                if seen.content_hash != existing.content_hash:
                    raise
        raise Conflict(f"{seen.id} keeps changing")  # it is recalled all the time

    def _stored(self, memory_id: str) -> Memory:
        found = self.context.service.store.get(self.partition.tenant, [memory_id])
        if not found:
            raise NotFound(f"no memory {memory_id!r}")
        return found[0]

    def _metadata(self, plan: Plan) -> dict[str, Any]:
        return plan.derived(self.writer.method, self.writer.model).metadata()


def passages(memories: Sequence[Memory]) -> list[Passage]:
    """What a writer reads of memories."""
    return [Passage(memory.text, happened_at(memory), memory.speaker, _own_words(memory)) for memory in memories]


def _own_words(memory: Memory) -> str:
    """What of it the user said: of a round its first line, as query and response are not told apart otherwise."""
    if memory.kind == "round":
        return memory.text.partition("\n")[0]
    return "" if memory.metadata.get("role") in ("assistant", "system", "tool") else memory.text
