"""From a draft to what the store writes: checked, cut into segments where it is long, and encoded."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final

from vimbank.domain.fingerprint import content_hash
from vimbank.domain.information import information
from vimbank.domain.maxsim import pool_tokens
from vimbank.domain.memory_text import embedding_text
from vimbank.domain.models import (
    PARENT_KIND,
    SEGMENT_KIND,
    Memory,
    MemoryDraft,
    MemoryPatch,
    Source,
    Unset,
    Vector,
)
from vimbank.domain.patching import patched
from vimbank.domain.sanitize import clean_id, clean_metadata, clean_text
from vimbank.domain.segmentation import segment
from vimbank.domain.superseding import as_said, keys_of
from vimbank.errors import FieldError, InvalidInput, ModelError, VimbankError
from vimbank.ports import Embedded, Encoder, PreparedDraft, PreparedPatch, TokenEncoder

__all__ = ["Limits", "Preparer"]

# Not what adding alone knows (a vector, an idempotency key), nor the id and time that the memory has by now.
_AUTHORED: Final = tuple(
    field.name
    for field in fields(MemoryDraft)
    if field.name not in {"id", "created_at", "idempotency_key", "deduplicate", "vector"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is accepted (see IngestSettings), and which banks there are."""

    banks: frozenset[str]
    segment_tokens: int = 200
    segment_overlap: float = 0.2
    max_text_chars: int = 2_000_000
    max_metadata_bytes: int = 65_536
    max_batch: int = 1_000
    conflicts: bool = True


@dataclass(frozen=True, slots=True)
class _Cut:
    """A checked draft before encoding: whole, or a parent with the drafts of its segments."""

    draft: MemoryDraft
    tokens: int
    segments: Sequence[tuple[MemoryDraft, int]] = ()

    def to_encode(self) -> Iterator[MemoryDraft]:
        if self.segments:
            yield from (each for each, _ in self.segments)
        elif self.draft.kind != PARENT_KIND:
            yield self.draft


class Preparer:
    """Checks, segments and encodes drafts and patches. Stateless but for its encoder; thread-safe."""

    def __init__(self, encoder: Encoder, limits: Limits) -> None:
        self._encoder = encoder
        self._tokens = encoder if isinstance(encoder, TokenEncoder) else None  # asking a protocol takes 20 us
        self._limits = limits

    def drafts(self, drafts: Sequence[MemoryDraft]) -> list[PreparedDraft | VimbankError]:
        """One result a draft, in order: a bad draft, or one whose text the encoder refuses, becomes its error.

        A text longer than the encoder's window, and any draft of kind ``document``, is kept whole as an unindexed
        parent and cut into segments (V-12).
        """
        cuts: list[_Cut | VimbankError] = []
        for draft in drafts:
            try:
                cuts.append(self._cut(self._checked(draft)))
            except VimbankError as error:
                cuts.append(error)
        encoded = self._encode([each for cut in cuts if isinstance(cut, _Cut) for each in cut.to_encode()])
        return [cut if isinstance(cut, VimbankError) else self._assemble(cut, encoded) for cut in cuts]

    def checked(self, drafts: Sequence[MemoryDraft]) -> list[PreparedDraft | VimbankError]:
        """As ``drafts``, but nothing is encoded: a draft and its segments have no embedding."""
        results: list[PreparedDraft | VimbankError] = []
        for draft in drafts:
            try:
                cut = self._cut(self._checked(draft))
            except VimbankError as error:
                results.append(error)
                continue
            results.append(self._written(cut, None, [_prepared(part, tokens, None) for part, tokens in cut.segments]))
        return results

    def embeddings(self, memories: Sequence[Memory]) -> list[tuple[Memory, Embedded]]:
        """Stored memories, each with its embedding made anew. Raises ModelError."""
        made = self._embed([embedding_text(memory) for memory in memories])
        return [(memory, each) for memory, each in zip(memories, made, strict=True)]

    def patch(self, memory: Memory, patch: MemoryPatch, expected_revision: int | None) -> PreparedPatch:
        """What an update of ``memory`` writes. Raises InvalidInput; ModelError where its text cannot be encoded."""
        patch = self._checked_patch(patch)
        draft = _as_draft(patched(as_said(memory), patch))
        _check_interval(draft)
        prepared = PreparedPatch(memory.id, patch, content_hash(draft), expected_revision=expected_revision)
        if embedding_text(draft) == embedding_text(memory):
            return prepared
        cut = self._cut(draft)
        if cut.segments and memory.kind == SEGMENT_KIND:
            raise InvalidInput.of("text", "is longer than a segment may be; update the whole document instead")
        written = self._assemble(cut, self._encode(list(cut.to_encode())))
        if isinstance(written, VimbankError):
            raise written
        return replace(
            prepared,
            token_count=written.token_count,
            embedding=written.embedding,
            segments=written.segments,
            claims=written.claims,
            information=written.information,
        )

    # -- checking --

    def _checked(self, draft: MemoryDraft) -> MemoryDraft:
        limits = self._limits
        if draft.bank not in limits.banks:
            raise InvalidInput.of("bank", f"must be one of {', '.join(sorted(limits.banks))}")
        if draft.user_id == "*":
            raise InvalidInput.of("user_id", "* stands for all users and cannot own a memory")
        _check_numbers(draft.importance)
        _check_interval(draft)
        _check_vector(draft.vector, self._encoder.identity.dimension)
        return replace(
            draft,
            text=clean_text(draft.text, "text", max_chars=limits.max_text_chars),
            user_id=clean_id(draft.user_id, "user_id"),
            kind=clean_id(draft.kind, "kind"),
            id=_optional_id(draft.id, "id"),
            agent_id=_optional_id(draft.agent_id, "agent_id"),
            session_id=_optional_id(draft.session_id, "session_id"),
            idempotency_key=_optional_id(draft.idempotency_key, "idempotency_key"),
            title=_optional_text(draft.title, "title"),
            speaker=_optional_text(draft.speaker, "speaker"),
            metadata=clean_metadata(draft.metadata, "metadata", max_bytes=limits.max_metadata_bytes),
            source=replace(
                draft.source,
                event_id=_optional_id(draft.source.event_id, "event_id"),
                parent_id=_optional_id(draft.source.parent_id, "parent_id"),
            ),
        )

    def _checked_patch(self, patch: MemoryPatch) -> MemoryPatch:
        limits = self._limits
        changes: dict[str, object] = {}
        if not isinstance(patch.text, Unset):
            changes["text"] = clean_text(patch.text, "text", max_chars=limits.max_text_chars)
        if not isinstance(patch.title, Unset):
            changes["title"] = _optional_text(patch.title, "title")
        if not isinstance(patch.metadata, Unset):
            changes["metadata"] = clean_metadata(patch.metadata, "metadata", max_bytes=limits.max_metadata_bytes)
        if not isinstance(patch.importance, Unset):
            _check_numbers(patch.importance)
        return replace(patch, **changes)  # type: ignore[arg-type]

    # -- cutting and encoding --

    def _cut(self, draft: MemoryDraft) -> _Cut:
        text = embedding_text(draft)
        offsets = self._encoder.tokenize(text)
        if draft.kind != PARENT_KIND and len(offsets) <= self._encoder.window:
            return _Cut(draft, len(offsets))
        if draft.vector is not None:
            raise InvalidInput.of("vector", "cannot be given for a text that is cut into segments")
        if draft.text is not text:
            offsets = self._encoder.tokenize(draft.text)
        return _Cut(replace(draft, kind=PARENT_KIND), len(offsets), self._segments(draft, offsets))

    def _segments(self, draft: MemoryDraft, offsets: Sequence[tuple[int, int]]) -> list[tuple[MemoryDraft, int]]:
        limits = self._limits
        title_tokens = len(self._encoder.tokenize(draft.title)) + 1 if draft.title else 0
        size = max(16, min(limits.segment_tokens, self._encoder.window - title_tokens))
        spans = segment(draft.text, offsets, size=size, overlap=limits.segment_overlap, window=size)
        starts = [start for start, _ in offsets]
        part = replace(draft, kind=SEGMENT_KIND, id=None, idempotency_key=None, deduplicate=False)
        return [
            (
                replace(part, text=draft.text[start:end], source=Source(position=position, start=start, end=end)),
                bisect_left(starts, end) - bisect_left(starts, start),
            )
            for position, (start, end) in enumerate(spans)
        ]

    def _encode(self, drafts: Sequence[MemoryDraft]) -> dict[int, Embedded | VimbankError]:
        """Embedding of each draft, by the draft's identity in memory; one bad text does not spoil the others."""
        given = {id(draft): Embedded(draft.vector) for draft in drafts if draft.vector is not None}
        rest = [draft for draft in drafts if draft.vector is None]
        texts = [embedding_text(draft) for draft in rest]
        try:
            results: Sequence[Embedded | VimbankError] = self._embed(texts)
        except ModelError:
            results = [self._embed_alone(text) for text in texts]
        return given | {id(draft): result for draft, result in zip(rest, results, strict=True)}

    def _embed_alone(self, text: str) -> Embedded | VimbankError:
        try:
            return self._embed([text])[0]
        except ModelError as error:
            return error

    def _embed(self, texts: Sequence[str]) -> list[Embedded]:
        if not texts:
            return []
        if self._tokens is None:
            return [Embedded(vector) for vector in self._encoder.encode_documents(texts)]
        tokens = self._tokens.encode_document_tokens(texts)
        vectors = pool_tokens(tokens, self._encoder.identity.dimension)
        return [Embedded(vector, each) for vector, each in zip(vectors, tokens, strict=True)]

    def _assemble(self, cut: _Cut, encoded: dict[int, Embedded | VimbankError]) -> PreparedDraft | VimbankError:
        segments = []
        for draft, tokens in cut.segments:
            part = encoded[id(draft)]
            if isinstance(part, VimbankError):
                return part
            segments.append(_prepared(draft, tokens, part))
        embedding = None if cut.draft.kind == PARENT_KIND else encoded[id(cut.draft)]
        if isinstance(embedding, VimbankError):
            return embedding
        return self._written(cut, embedding, segments)

    def _written(self, cut: _Cut, embedding: Embedded | None, segments: Sequence[PreparedDraft]) -> PreparedDraft:
        claims = keys_of(cut.draft) if self._limits.conflicts else ()
        return _prepared(cut.draft, cut.tokens, embedding, segments, claims)


def _prepared(
    draft: MemoryDraft,
    tokens: int,
    embedding: Embedded | None,
    segments: Sequence[PreparedDraft] = (),
    claims: Sequence[tuple[str, str]] = (),
) -> PreparedDraft:
    return PreparedDraft(
        draft, content_hash(draft), tokens, embedding, segments, claims, information=information(draft.text)
    )


def _as_draft(memory: Memory) -> MemoryDraft:
    """The memory as its author would give it now: what the limits and the hash look at."""
    return MemoryDraft(**{name: getattr(memory, name) for name in _AUTHORED})


def _optional_id(value: str | None, field: str) -> str | None:
    return None if value is None else clean_id(value, field)


def _optional_text(value: str | None, field: str) -> str | None:
    return None if value is None else clean_text(value, field, max_chars=1_000)


def _check_numbers(importance: object) -> None:
    if importance is not None and not (isinstance(importance, int | float) and 0 <= importance <= 1):
        raise InvalidInput.of("importance", "must be between 0 and 1")


def _check_interval(draft: MemoryDraft) -> None:
    errors = [
        FieldError(field, "must have a time zone")
        for field in ("created_at", "event_at", "valid_from", "valid_to", "expires_at")
        if isinstance(value := getattr(draft, field), datetime) and value.tzinfo is None
    ]
    if errors:
        raise InvalidInput(errors)
    if draft.valid_from is not None and draft.valid_to is not None and draft.valid_to <= draft.valid_from:
        raise InvalidInput.of("valid_to", "must be after valid_from")


def _check_vector(vector: Vector | None, dimension: int) -> None:
    if vector is None:
        return
    if vector.shape != (dimension,):
        raise InvalidInput.of("vector", f"must have {dimension} numbers")
    norm = float((vector.astype("float64") ** 2).sum()) ** 0.5
    if not abs(norm - 1) < 1e-3:
        raise InvalidInput.of("vector", "must have unit length")
