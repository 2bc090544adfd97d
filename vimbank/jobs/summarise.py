"""Summaries of what happened: of groups of five turns with update by overlap, of days, and of all days (M-3, M-4)."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from vimbank.domain.models import Memory, Vector
from vimbank.domain.summaries import (
    GROUP_SIZE,
    MAX_SOURCES,
    SIMILAR,
    SUMMARY_KIND,
    Derived,
    Plan,
    best_of,
    must_write,
    sources_hash,
    uncovered_groups,
)
from vimbank.jobs.context import JobContext
from vimbank.jobs.derive import Derivation, passages, run_over_partitions

__all__ = ["summarise"]


def summarise(
    context: JobContext, params: Mapping[str, Any], *, only: Collection[str] | None = None
) -> Mapping[str, Any]:
    """Bring the summaries up to date with what was said; a second run changes nothing.

    Args:    only: bring these up to date alone, and add none.
    """

    def work(derivation: Derivation) -> None:
        _Groups(derivation).update()
        derivation.daily_and_global("day_summary", "global_summary")

    return run_over_partitions(context, params, SUMMARY_KIND, work, only=only)


class _Groups:
    """The summaries of groups of turns, a set a session (I-28 to I-31).

    A new group's summary is merged into the one of its session that is similar; where none is, both stand (I-30).
    One whose source changed is made anew from the sources that are left.
    """

    def __init__(self, derivation: Derivation) -> None:
        self._derivation = derivation
        self._by_id = {memory.id: memory for memory in derivation.sources}
        self._vectors: dict[tuple[str, int], Vector] = {}

    def update(self) -> None:
        """Refresh what is stale, then add what is new."""
        covered: set[str] = set()
        for memory, derived in self._derivation.of_level("group"):
            covered.update(self._refresh(memory, derived))
        if not self._derivation.may(None):
            return
        for session_id, group in uncovered_groups(self._derivation.sources, covered, size=GROUP_SIZE):
            self._take_in(session_id, group)

    def _refresh(self, memory: Memory, derived: Derived) -> list[str]:
        """Bring one up to date; the ids of the turns that it tells of."""
        left = self._left(derived)
        if not left:
            self._derivation.remove(memory)
            return []
        plan = self._plan(memory.session_id, derived.period, left, memory)
        if must_write(plan, self._derivation.writer.method):
            self._derivation.write(plan, partial(self._text, left))
        else:
            self._derivation.tally.unchanged += 1
        return [each.id for each in left]

    def _take_in(self, session_id: str | None, group: tuple[Memory, ...]) -> None:
        derivation = self._derivation
        plan = self._plan(session_id, group[0].id, group, None)
        if derivation.dry_run:
            derivation.write(plan, lambda: None)
            return
        text = derivation.attempted(plan.id, partial(self._text, group))
        if text is None:
            return
        similar = self._similar(session_id, text, len(group))
        if similar is None:
            derivation.write(plan, lambda: text)
            return
        old, derived = similar
        merged = self._plan(session_id, derived.period, (*self._left(derived), *group), old)
        derivation.write(merged, lambda: derivation.writer.merge(old.text, text))

    def _similar(self, session_id: str | None, text: str, more: int) -> tuple[Memory, Derived] | None:
        """The session's summary nearest to the text, if it is similar (I-29), not stale, and has room for more."""
        candidates = [
            (memory, derived)
            for memory, derived in self._derivation.of_level("group")
            if memory.session_id == session_id
            and len(derived.sources) + more <= MAX_SOURCES
            and sources_hash(self._left(derived)) == derived.sources_hash
        ]
        if not candidates:
            return None
        encoder = self._derivation.context.service.encoder
        vectors = np.stack([self._vector(memory) for memory, _ in candidates])
        best = best_of(encoder.encode_documents([text])[0], vectors)
        return None if best is None or best[1] < SIMILAR else candidates[best[0]]

    def _vector(self, memory: Memory) -> Vector:
        key = (memory.id, memory.revision)
        if key not in self._vectors:
            self._vectors[key] = self._derivation.context.service.encoder.encode_documents([memory.text])[0]
        return self._vectors[key]

    def _text(self, sources: tuple[Memory, ...]) -> str | None:
        """The summary of one group, or of several, each taken in by overlap."""
        writer = self._derivation.writer
        text: str | None = None
        for start in range(0, len(sources), GROUP_SIZE):
            part = writer.write("group_summary", passages(sources[start : start + GROUP_SIZE]))
            text = part if text is None or part is None else writer.merge(text, part)
        return text

    def _left(self, derived: Derived) -> tuple[Memory, ...]:
        return tuple(self._by_id[each] for each in derived.sources if each in self._by_id)

    def _plan(self, session_id: str | None, period: str, sources: tuple[Memory, ...], existing: Memory | None) -> Plan:
        return Plan(self._derivation.partition, SUMMARY_KIND, "group", period, sources, session_id, existing)
