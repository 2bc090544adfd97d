"""Judge what is stored: by the rules what nobody judged, by a chat model what no model judged (V-5 to V-8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from vimbank.domain.models import SEGMENT_KIND, Memory, Partition, Sample
from vimbank.errors import BackendRejected, ModelError
from vimbank.ingestion.assess import dialog_kind, is_assessed
from vimbank.jobs.context import JobContext
from vimbank.jobs.failures import Failures, Stopped
from vimbank.llm.assess import BY_MODEL, ChatJudge
from vimbank.llm.writer import Spent, TokensSpent
from vimbank.ports import Judged

__all__ = ["PARAMS", "assess"]

PARAMS: Final[Mapping[str, str]] = {
    "tenant": "only this tenant's memories; left out: all",
    "user": "only this user's",
    "bank": "only of this bank; left out: all",
    "dry_run": "true: only count what would be judged",
}
_ACTOR: Final = "assess"
_PAGE: Final = 500
_BATCH_OF_MODEL: Final = 20
"""Judgements of a model in one transaction: what a killed run loses."""


@dataclass(slots=True)
class _Tally:
    """What a run has done so far."""

    memories: int = 0
    due: int = 0
    judged: int = 0
    negative: int = 0
    failures: Failures = field(default_factory=Failures)


def assess(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Judge in small batches; a second run finds what is left. Unusable output of a model changes nothing (case 89).

    Raises:  ModelError: whatever was tried failed; nothing was changed.
    """
    make = context.around.judge
    judge = None if make is None else make(context.check)
    tally = _Tally()
    partitions = context.partitions(tenant=params.get("tenant"), user=params.get("user"), bank=params.get("bank"))
    with tally.failures.ending_the_run():
        for partition in partitions:
            _Judging(context, judge, tally).partition(partition, dry_run=params.get("dry_run", False))
    tally.failures.raise_unless(tally.judged > 0)
    spent = Spent() if judge is None else judge.spent
    return {
        "method": "rules" if judge is None else "llm",
        "model": None if judge is None else judge.model,
        "dry_run": params.get("dry_run", False),
        "memories": tally.memories,
        "due": tally.due,
        "judged": tally.judged,
        "negative": tally.negative,
        **tally.failures.record(),
        **spent.record(),
    }


class _Judging:
    """The memories of one partition in one run."""

    def __init__(self, context: JobContext, judge: ChatJudge | None, tally: _Tally) -> None:
        self._context = context
        self._judge = judge
        self._tally = tally
        self._last: Judged | None = None

    def partition(self, partition: Partition, *, dry_run: bool) -> None:
        """Judge what is due in it, page by page."""
        size = _PAGE if self._judge is None else _BATCH_OF_MODEL
        for page in self._context.pages(partition, state=None, size=_PAGE):
            due = [memory for memory in page if self._due(memory)]
            self._tally.memories += len(page)
            self._tally.due += len(due)
            for start in range(0, 0 if dry_run else len(due), size):
                self._batch(due[start : start + size])
            self._context.report(self._tally.memories, None, "memories")
            self._context.check()

    def _due(self, memory: Memory) -> bool:
        if not is_assessed(memory.kind):
            return False
        unknown = memory.sample is None or memory.information is None
        return unknown or (self._judge is not None and BY_MODEL not in memory.sample_reasons)

    def _batch(self, due: Sequence[Memory]) -> None:
        """Judge them and write what came of it, also where the run ends among them."""
        judged: list[Judged] = []
        try:
            for memory in due:
                try:
                    judged.append(self._judged(memory, self._whole(memory)))
                    self._tally.failures.note_success()
                except (ModelError, BackendRejected) as error:
                    self._tally.failures.note(error, id=memory.id)
        except (Stopped, TokensSpent):
            self._write(judged)
            raise
        self._write(judged)

    def _write(self, judged: Sequence[Judged]) -> None:
        service = self._context.service
        written = service.store.put_samples(judged, actor=_ACTOR, now=self._context.around.clock())
        self._tally.judged += len(judged)
        self._tally.negative += sum(each.sample is Sample.NEGATIVE for each in judged)
        if written:
            service.announce()
        self._context.check()

    def _whole(self, memory: Memory) -> Memory:
        """Of a segment of a long round or turn that round or turn, else the memory itself."""
        parent_id = memory.source.parent_id
        if memory.kind != SEGMENT_KIND or parent_id is None:
            return memory
        found = self._context.service.store.get(memory.tenant, [parent_id])
        return found[0] if found and dialog_kind(found[0].kind, found[0].metadata) is not None else memory

    def _judged(self, memory: Memory, whole: Memory) -> Judged:
        if self._last is None or self._last.memory.revision != whole.revision:  # segments of one round come together
            self._last = self._judgement(whole)
        return replace(self._last, memory=memory)

    def _judgement(self, whole: Memory) -> Judged:
        assessor = self._context.service.assessor
        if self._judge is None:
            return assessor.stored(whole)
        if dialog_kind(whole.kind, whole.metadata) is None:
            return Judged(whole, *self._judge.item(whole.text))
        return Judged(whole, *self._judge.round(whole.text, assessor.history(whole)))
