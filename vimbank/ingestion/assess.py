"""Judges at write whether what comes in is worth remembering (V-5 to V-8), by the rules of ``domain.validity``.

Rounds and turns of a dialog are judged with what was said before them in their session, whether it is in the store
already or comes in the same batch; all else but task runs, summaries, portraits and whole documents as knowledge. A
round too long for the encoder is kept as a document: its segments are what is searched, so they bear its judgement.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np

from vimbank.domain.models import PARENT_KIND, RUN_KIND, Memory, MemoryDraft, Partition, Unset, Vector
from vimbank.domain.summaries import DERIVED_KINDS
from vimbank.domain.validity import (
    HISTORY_ROUNDS,
    Assessment,
    assess_knowledge,
    assess_round,
    assess_turn,
    content_terms,
    parts_of_round,
)
from vimbank.errors import VimbankError
from vimbank.ingestion.dialog import REPLY_ROLES, ROUND_KIND, TURN_KIND
from vimbank.ingestion.tasks import STEP_KIND
from vimbank.ports import Encoder, Judged, PreparedDraft, PreparedPatch, ScriptBound, Utterance

__all__ = ["Assessor", "Said", "Tails", "dialog_kind", "is_assessed"]

_NOT_ASSESSED: Final = frozenset({PARENT_KIND, RUN_KIND, STEP_KIND, *DERIVED_KINDS})
_CACHED_TEXTS: Final = 2_048
_SCRIPT_CHARS: Final = 200  # enough of a text to tell its script
_UNDERSTOOD: Final = 0.5
"""Share of letters below which an encoder's similarities say nothing."""


class Tails(Protocol):
    """What is asked of the store."""

    def session_tail(self, partition: Partition, session_id: str, *, before: int, limit: int) -> list[Utterance]: ...


@dataclass(frozen=True, slots=True)
class Said:
    """One memory of a dialog to be judged; ``parts``: query and response, None: the text's first line and the rest."""

    kind: str
    text: str
    metadata: Mapping[str, Any]
    vector: Vector | None = None
    parts: tuple[str, str] | None = None


def dialog_kind(kind: str, metadata: Mapping[str, Any]) -> str | None:
    """``round`` or ``turn``, also of one that is kept as a document because it is long; None: no dialog."""
    if kind in (ROUND_KIND, TURN_KIND):
        return kind
    if kind != PARENT_KIND:
        return None
    return ROUND_KIND if "roles" in metadata else TURN_KIND if "role" in metadata else None


def is_assessed(kind: str) -> bool:
    """Whether memories of this kind bear a judgement."""
    return kind not in _NOT_ASSESSED


class Assessor:
    """Judges drafts, updates and stored memories. Thread-safe."""

    def __init__(self, store: Tails, encoder: Encoder) -> None:
        self._store = store
        self._script = encoder if isinstance(encoder, ScriptBound) else None
        self._content = lru_cache(maxsize=_CACHED_TEXTS)(content_terms)

    def forget(self) -> None:
        """Let go of the words of all texts."""
        self._content.cache_clear()

    def drafts(
        self,
        prepared: Sequence[PreparedDraft | VimbankError],
        parts: Sequence[tuple[str, str] | None] = (),
    ) -> list[PreparedDraft | VimbankError]:
        """The same with their judgements. Asks the store once a session.

        Args:    parts: query and response of each draft that is a round, as far as they are known.
        """
        known = list(parts) or [None] * len(prepared)
        judged = list(prepared)
        for places in _by_session(prepared).values():
            drafts = [(place, each) for place in places if isinstance(each := prepared[place], PreparedDraft)]
            for place, each in self._session(drafts, known):
                judged[place] = each
        return [each if isinstance(each, VimbankError) or _has_one(each) else _as_knowledge(each) for each in judged]

    def patch(self, memory: Memory, prepared: PreparedPatch) -> PreparedPatch:
        """An update with the judgement of the new text, and of segments made anew; else with that of the memory."""
        text = memory.text if isinstance(prepared.patch.text, Unset) else prepared.patch.text
        if text == memory.text and not prepared.segments:
            return replace(prepared, sample=memory.sample, sample_reasons=memory.sample_reasons)
        prepared = replace(prepared, claims=prepared.claims or ())
        vector = None if prepared.embedding is None else prepared.embedding.vector
        kind = dialog_kind(memory.kind, memory.metadata)
        if kind is not None:
            found = self._judge(Said(kind, text, memory.metadata, vector), self._place(memory)[0])
        else:
            found = assess_knowledge(text)
        segments = [_with(part, found) if kind is not None else _as_knowledge(part) for part in prepared.segments]
        if prepared.segments or not is_assessed(memory.kind):
            return replace(prepared, segments=segments, sample=None, sample_reasons=())
        return replace(prepared, sample=found.sample, sample_reasons=found.reasons)

    def stored(self, memory: Memory) -> Judged:
        """A memory of the store, judged. Of a segment of a dialog give the document that it is a part of."""
        kind = dialog_kind(memory.kind, memory.metadata)
        if kind is None:
            found = assess_knowledge(memory.text)
        else:
            history, vector = self._place(memory)
            found = self._judge(Said(kind, memory.text, memory.metadata, vector), history)
        return Judged(memory, found.sample, found.reasons)

    def history(self, memory: Memory) -> list[str]:
        """What was said before a memory of a dialog in its session, oldest first."""
        return [text for text, _ in self._place(memory)[0]]

    # -- inside --

    def _session(
        self,
        drafts: Sequence[tuple[int, PreparedDraft]],
        parts: Sequence[tuple[str, str] | None],
    ) -> Iterator[tuple[int, PreparedDraft]]:
        ordered = sorted(drafts, key=lambda each: _position(each[1].draft))
        first = ordered[0][1].draft
        history: deque[tuple[str, Vector | None]] = deque(maxlen=HISTORY_ROUNDS)
        if first.session_id is not None and first.source.position is not None:
            partition = Partition(first.tenant, first.user_id, first.bank)
            history.extend(self._before(partition, first.session_id, first.source.position))
        for place, each in ordered:
            draft = each.draft
            kind = dialog_kind(draft.kind, draft.metadata)
            assert kind is not None
            vector = None if each.embedding is None else each.embedding.vector
            found = self._judge(Said(kind, draft.text, draft.metadata, vector, parts[place]), history)
            yield place, _with_segments(each, found)
            history.append((draft.text, vector))

    def _place(self, memory: Memory) -> tuple[list[tuple[str, Vector | None]], Vector | None]:
        """What was said before a stored memory of a dialog, and its own vector."""
        position = memory.source.position
        if memory.session_id is None or position is None:
            return [], None
        tail = self._store.session_tail(
            memory.partition, memory.session_id, before=position + 1, limit=HISTORY_ROUNDS + 1
        )
        vector = next((each.vector for each in tail if each.id == memory.id), None)
        before = [(each.text, each.vector) for each in tail if each.position != position]
        return before[:HISTORY_ROUNDS][::-1], vector

    def _before(self, partition: Partition, session_id: str, position: int) -> list[tuple[str, Vector | None]]:
        found = self._store.session_tail(partition, session_id, before=position, limit=HISTORY_ROUNDS)
        return [(each.text, each.vector) for each in reversed(found)]

    def _judge(self, said: Said, history: Iterable[tuple[str, Vector | None]]) -> Assessment:
        before = list(history)
        texts = [text for text, _ in before]
        similarity = self._similarity(said, [vector for _, vector in before if vector is not None])
        if said.kind == ROUND_KIND:
            query, response = said.parts or parts_of_round(said.text)
            return assess_round(query, response, texts, similarity=similarity, content=self._content)
        replies = said.metadata.get("role") in REPLY_ROLES
        return assess_turn(said.text, texts, replies=replies, similarity=similarity, content=self._content)

    def _similarity(self, said: Said, vectors: Sequence[Vector]) -> float | None:
        if said.vector is None or not vectors:
            return None
        if self._script is not None and self._script.understood(said.text[:_SCRIPT_CHARS]) < _UNDERSTOOD:
            return None
        return float(np.max(np.stack(vectors) @ said.vector))


def _by_session(prepared: Sequence[PreparedDraft | VimbankError]) -> Mapping[tuple[Any, ...], list[int]]:
    """The places of rounds and turns, by session; each without a session is one of its own."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, each in enumerate(prepared):
        if isinstance(each, PreparedDraft) and dialog_kind(each.draft.kind, each.draft.metadata) is not None:
            draft = each.draft
            alone = place if draft.session_id is None else None
            found.setdefault((draft.tenant, draft.user_id, draft.bank, draft.session_id, alone), []).append(place)
    return found


def _position(draft: MemoryDraft) -> tuple[bool, int]:
    """By position, those without one last, as they came."""
    position = draft.source.position
    return (True, 0) if position is None else (False, position)


def _has_one(prepared: PreparedDraft) -> bool:
    return prepared.sample is not None or any(part.sample is not None for part in prepared.segments)


def _as_knowledge(prepared: PreparedDraft) -> PreparedDraft:
    if prepared.segments:
        return replace(prepared, segments=[_as_knowledge(part) for part in prepared.segments])
    return _with(prepared, assess_knowledge(prepared.draft.text)) if is_assessed(prepared.draft.kind) else prepared


def _with_segments(prepared: PreparedDraft, found: Assessment) -> PreparedDraft:
    if prepared.segments:
        return replace(prepared, segments=[_with(part, found) for part in prepared.segments])
    return _with(prepared, found)


def _with(prepared: PreparedDraft, found: Assessment) -> PreparedDraft:
    return replace(prepared, sample=found.sample, sample_reasons=found.reasons)
