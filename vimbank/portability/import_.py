"""Memories from a file into the store: VIMBank's own exports, JSON Lines, and other systems' dumps.

The file comes in pieces. A line that is bad is named by its number and the others go in; what is there already is
found by its id and left alone, so a second run goes on where the first was stopped.
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

import orjson

from vimbank.domain.archive import Archived, Past
from vimbank.domain.models import PARENT_KIND, Event, Memory, MemoryDraft
from vimbank.domain.sanitize import clean_id
from vimbank.errors import Conflict, InvalidInput, ModelError, VimbankError
from vimbank.ingestion.jsonl import read_jsonl
from vimbank.portability.dumps import READERS, Found, found_in
from vimbank.portability.export import FORMAT, Archive
from vimbank.portability.lines import archived_of, identity_of
from vimbank.ports import Embedded, PreparedDraft
from vimbank.service import ALL_USERS, MemoryService

__all__ = ["FormatName", "ImportReport", "Importer", "Problem"]

FormatName = Literal["auto", "vimbank", "mem0", "agent-memory", "memorybank", "jsonl"]

_BATCH: Final = 128
"""Entries a transaction."""
_BATCH_BYTES: Final = 8_000_000
_MOST_LINE_BYTES: Final = 64_000_000
_MOST_SHOWN: Final = 1_000
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = uuid.UUID("7d0f3f1e-5a0b-5c63-9a26-0f3f6e1d2b7a")
"""Of the ids that are made for memories without one: of the content, so that a second run finds them."""


_Batch: TypeAlias = list[tuple[int, Archived]]


@dataclass(frozen=True, slots=True)
class Problem:
    """What did not go in: the number of the line, or of the item in a dump, from 1; the id where there is one."""

    line: int
    error: str
    id: str | None = None


@dataclass(slots=True)
class ImportReport:
    """What became of a file; of a dry run, what would.

    ``bad`` cannot be read, ``conflicts`` contradict what is stored; the first 1,000 of each are listed, ``failed``
    counts all. ``embedded``: how many were encoded here, as the file has no vector of this store's encoder.
    ``complete``: an export was read to its end, unchanged; None where the format has no end. ``notes``: for people.
    """

    format: str = "auto"
    dry_run: bool = False
    added: int = 0
    duplicates: int = 0
    failed: int = 0
    embedded: int = 0
    complete: bool | None = None
    bad: list[Problem] = field(default_factory=list)
    conflicts: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, line: int, error: VimbankError, id: str | None = None) -> None:
        """Count what did not go in."""
        self.failed += 1
        listed = self.conflicts if isinstance(error, Conflict) else self.bad
        if len(listed) < _MOST_SHOWN:
            listed.append(Problem(line, str(error), id))


class Importer:
    """Takes a file in pieces; not thread-safe. ``finish`` gives the report.

    Args:    user_id, bank: stand in where the file names none.
             format: ``auto`` looks at the beginning.
             dry_run: look what would be added, is there, contradicts or is bad; nothing is written.
             history: rows of mem0's table of that name, where they come beside the dump.
             max_document_bytes: the largest dump that is one JSON document, which has to be read whole.
    """

    def __init__(
        self,
        service: MemoryService,
        archive: Archive,
        *,
        tenant: str,
        actor: str,
        user_id: str | None = None,
        bank: str | None = None,
        format: str = "auto",
        dry_run: bool = False,
        max_document_bytes: int = 256_000_000,
        history: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if format not in get_args(FormatName):
            raise InvalidInput.of("format", f"must be one of {', '.join(get_args(FormatName))}")
        if user_id == ALL_USERS:
            raise InvalidInput.of("user_id", "must name one user")
        if bank is not None and bank not in service.limits.banks:
            raise InvalidInput.of("bank", f"must be one of {', '.join(sorted(service.limits.banks))}")
        self._service = service
        self._archive = archive
        self._tenant = tenant
        self._actor = actor
        self._user_id = None if user_id is None else clean_id(user_id, "user_id")
        self._bank = bank
        self._max_document_bytes = max_document_bytes
        self._history = history
        self._report = ImportReport(format, dry_run)
        self._decided = format in ("vimbank", "jsonl")
        self._document: bytearray | None = None if format in ("auto", "vimbank", "jsonl") else bytearray()
        self._rest = b""
        self._skipping = False
        self._number = 0
        self._batch: _Batch = []
        self._batch_bytes = 0
        self._dimension: int | None = None
        self._digest, self._lines = hashlib.sha256(), 0
        self._seen: set[bytes] = set()

    def feed(self, piece: bytes) -> None:
        """The next bytes of the file. Raises InvalidInput for a file that cannot be read at all; BackendError."""
        if self._reads_whole():
            self._grow(piece)
            return
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest
        for line in lines:
            self._take_line(line)
        if self._reads_whole():
            self._grow(self._rest)
            self._rest = b""
        elif len(self._rest) > _MOST_LINE_BYTES:
            self._take_long_line()

    def finish(self) -> ImportReport:
        """The file has ended."""
        if self._document is None and self._rest.strip():
            self._take_line(self._rest)
        self._rest = b""
        if self._document is not None:
            self._take_document(bytes(self._document))
            self._document = None
        self._write()
        if self._report.format == "vimbank" and self._report.complete is None:
            self._report.complete = False
            self._report.notes.append("the file has no end: it was cut short, or not yet whole")
        return self._report

    # -- lines --

    def _take_line(self, line: bytes) -> None:
        if self._document is not None:
            self._grow(line + b"\n")
            return
        self._number += 1
        if self._skipping:
            self._skipping = False
            return
        if not line.strip():
            return
        if not self._decided and not self._is_of_lines(line):
            self._document = bytearray()
            self._grow(line + b"\n")
            return
        try:
            if self._report.format == "vimbank":
                self._take_export_line(line)
            else:
                self._take_jsonl_line(line)
        except VimbankError as error:
            if not isinstance(error, InvalidInput):
                raise
            self._report.refuse(self._number, error)

    def _take_long_line(self) -> None:
        """What has no end of line in sight: one document, or a line that is refused."""
        if not self._decided:
            self._decided = True
            self._document = bytearray()
            self._grow(self._rest)
        elif not self._skipping:
            self._skipping = True
            self._report.refuse(self._number + 1, InvalidInput.of("line", f"is longer than {_MOST_LINE_BYTES} bytes"))
        self._rest = b""

    def _is_of_lines(self, line: bytes) -> bool:
        """Whether the first line that is not blank tells a format of lines; else the file is read whole."""
        self._decided = True
        try:
            first = orjson.loads(line.removeprefix(_BOM))
        except orjson.JSONDecodeError:
            return False
        if isinstance(first, dict) and "vimbank" in first:
            self._report.format = "vimbank"
        elif isinstance(first, dict) and isinstance(first.get("text"), str) and found_in([first]) == "jsonl":
            self._report.format = "jsonl"
        else:
            return False
        return True

    def _take_export_line(self, line: bytes) -> None:
        value = _json(line.removeprefix(_BOM))
        if isinstance(value, dict) and "vimbank" in value:
            self._take_header(value)
            return
        if isinstance(value, dict) and "end" in value:
            self._take_end(value["end"])
            return
        self._digest.update(line + b"\n")
        self._lines += 1
        limits = self._service.limits
        entry = archived_of(value, tenant=self._tenant, limits=limits, dimension=self._dimension)
        self._add(self._number, entry, len(line))

    def _take_header(self, header: dict[str, Any]) -> None:
        if header["vimbank"] != FORMAT:
            raise InvalidInput.of("vimbank", f"this is an export of format {header['vimbank']}, not {FORMAT}")
        mine, theirs = self._service.encoder.identity, identity_of(header.get("encoder"))
        self._dimension = mine.dimension if theirs == mine else None
        if theirs != mine:
            self._report.notes.append(
                f"its vectors are by {theirs or 'no encoder that is named'}: encoded anew by {mine}"
            )

    def _take_end(self, end: Any) -> None:
        said = end if isinstance(end, dict) else {}
        self._report.complete = (said.get("lines"), said.get("sha256")) == (self._lines, self._digest.hexdigest())
        if not self._report.complete:
            self._report.notes.append("the file is not as it was written: its digest does not fit")

    def _take_jsonl_line(self, line: bytes) -> None:
        bank = self._bank or "knowledge"
        for each in read_jsonl([line], tenant=self._tenant, user_id=self._user_id, bank=bank):
            if each.error is not None:
                raise each.error
            assert each.draft is not None
            self._add_found([(self._number, Found(each.draft))])

    # -- documents --

    def _reads_whole(self) -> bool:
        return self._document is not None

    def _grow(self, piece: bytes) -> None:
        assert self._document is not None
        if len(self._document) + len(piece) > self._max_document_bytes:
            raise InvalidInput.of(
                "body",
                f"is one JSON document of more than {self._max_document_bytes} bytes, or no format that is known",
            )
        self._document += piece

    def _take_document(self, raw: bytes) -> None:
        if not raw.strip():
            return
        value = _document(raw)
        if self._history:
            value = {"results": _results(value), "history": list(self._history)}
        if self._report.format == "auto":
            self._report.format = found_in(value)
        found = READERS[self._report.format](
            value, tenant=self._tenant, user_id=self._user_id, bank=self._bank or "dialog"
        )
        waiting: list[tuple[int, Found]] = []
        for number, each in enumerate(found, 1):
            if isinstance(each, InvalidInput):
                self._report.refuse(number, each)
                continue
            waiting.append((number, each))
            if len(waiting) == _BATCH:
                self._add_found(waiting)
                waiting = []
        self._add_found(waiting)

    def _add_found(self, found: Sequence[tuple[int, Found]]) -> None:
        """Check, cut and encode drafts, and add them. A memory without a draft has a past alone."""
        living = [(number, each) for number, each in found if each.draft is not None]
        drafts = [_named(each.draft) for _, each in living if each.draft is not None]
        prepared = iter(self._service.preparer.checked(drafts))
        for number, each in found:
            if each.draft is None:
                self._add(number, _dead(each, self._tenant), 1_000)
                continue
            ready = next(prepared)
            if isinstance(ready, PreparedDraft):
                self._add(number, _living(each, ready, self._service.clock()), len(ready.draft.text))
            else:
                self._report.refuse(number, ready, each.draft.id)

    # -- to the store --

    def _add(self, number: int, entry: Archived, size: int) -> None:
        self._batch.append((number, entry))
        self._batch_bytes += size
        if len(self._batch) >= _BATCH or self._batch_bytes > _BATCH_BYTES:
            self._write()

    def _write(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        dry_run = self._report.dry_run
        if not dry_run and any(_lacking(entry) for _, entry in batch):
            # What is there already need not be encoded again: a second run is quick.
            batch = self._embedded(self._settle(batch, dry_run=True))
        for _, entry in self._settle(batch, dry_run=dry_run):
            if dry_run and self._is_repeated(entry):
                self._report.duplicates += 1
            else:
                self._report.added += 1
        if batch and not dry_run:
            self._service.announce()

    def _settle(self, batch: _Batch, *, dry_run: bool) -> _Batch:
        """Have the store take the batch; count what is there or does not fit, and give the rest."""
        entries = [entry for _, entry in batch]
        now = self._service.clock()
        results = self._archive.restore(entries, actor=self._actor, now=now, dry_run=dry_run)
        added = []
        for (number, entry), result in zip(batch, results, strict=True):
            if not isinstance(result, str):
                self._report.refuse(number, result, entry.id)
            elif result == "added":
                added.append((number, entry))
            else:
                self._report.duplicates += 1
        return added

    def _is_repeated(self, entry: Archived) -> bool:
        """Whether a preview has met the id before: a run would have added it then."""
        name = hashlib.blake2b(entry.id.encode(), digest_size=16).digest()
        if name in self._seen:
            return True
        self._seen.add(name)
        return False

    def _embedded(self, batch: _Batch) -> _Batch:
        """The batch with the vectors that it lacks; an entry whose text the encoder refuses is reported."""
        lacking = [memory for _, entry in batch for memory in _lacking(entry)]
        vectors = self._vectors(lacking)
        whole = []
        for number, entry in batch:
            try:
                whole.append((number, _with_vectors(entry, vectors)))
            except ModelError as error:
                self._report.refuse(number, error, entry.id)
        self._report.embedded += sum(isinstance(each, Embedded) for each in vectors.values())
        return whole

    def _vectors(self, memories: Sequence[Memory]) -> dict[str, Embedded | ModelError]:
        preparer = self._service.preparer
        try:
            return {memory.id: embedded for memory, embedded in preparer.embeddings(memories)}
        except ModelError:
            pass
        made: dict[str, Embedded | ModelError] = {}
        for memory in memories:
            try:
                made[memory.id] = preparer.embeddings([memory])[0][1]
            except ModelError as error:
                made[memory.id] = error
        return made


# --- from drafts to entries ---------------------------------------------------------------------------------------


def _json(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise InvalidInput.of("line", f"is not JSON: {exc}") from exc


def _document(raw: bytes) -> Any:
    """One JSON document, or one a line; a line that is none is its error."""
    try:
        return orjson.loads(raw.removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        first = error
    values: list[Any] = []
    for line in raw.split(b"\n"):
        try:
            values += [_json(line)] if line.strip() else []
        except InvalidInput as error:
            values.append(error)
    if not any(isinstance(each, dict) for each in values):
        raise InvalidInput.of("body", f"is neither JSON nor JSON Lines: {first}") from first
    return values


def _results(value: Any) -> Any:
    return value.get("results", [value] if "memory" in value else []) if isinstance(value, dict) else value


def _named(draft: MemoryDraft) -> MemoryDraft:
    """The draft with an id: its own, or one made of what it says."""
    if draft.id is not None:
        return draft
    said = [
        draft.tenant, draft.user_id, draft.bank, draft.kind, draft.text, draft.title, draft.speaker, draft.agent_id,
        draft.session_id, draft.source.position, dict(draft.metadata),
        *(None if each is None else each.isoformat() for each in (draft.created_at, draft.event_at)),
    ]  # fmt: skip
    return replace(draft, id=str(uuid.uuid5(_SPACE, orjson.dumps(said, option=orjson.OPT_SORT_KEYS).hex())))


def _lacking(entry: Archived) -> list[Memory]:
    """The memories of an entry that are indexed and have no vector yet."""
    own = [each for each in (entry, *entry.parts) if each.vector is None]
    return [each.memory for each in own if each.memory is not None and each.memory.kind != PARENT_KIND]


def _with_vectors(entry: Archived, vectors: Mapping[str, Embedded | ModelError]) -> Archived:
    made = vectors.get(entry.id)
    if isinstance(made, ModelError):
        raise made
    if made is not None:
        entry = replace(entry, vector=made.vector, tokens=None, token_vectors=made.token_vectors)
    return replace(entry, parts=[_with_vectors(part, vectors) for part in entry.parts])


def _living(found: Found, prepared: PreparedDraft, now: datetime) -> Archived:
    draft = prepared.draft
    assert draft.id is not None
    memory = _memory(prepared, draft.id, now)
    memory = replace(
        memory,
        updated_at=found.updated_at or memory.updated_at,
        strength=found.strength,
        recall_count=found.recall_count,
        last_recalled_at=found.last_recalled_at,
    )
    parts = []
    for position, part in enumerate(prepared.segments):
        name = f"{draft.id}:{position:04d}"
        segment = _memory(part, name, now)
        source = replace(segment.source, parent_id=draft.id, position=position)
        parts.append(_entry(replace(segment, source=source, created_at=memory.created_at), ()))
    past = [replace(each, before=_before(each, memory)) for each in found.past]
    entry = _entry(memory, past)
    return replace(entry, key=draft.idempotency_key, parts=parts, fold=draft.deduplicate and not found.identified)


def _entry(memory: Memory, past: Sequence[Past]) -> Archived:
    return Archived(id=memory.id, tenant=memory.tenant, user_id=memory.user_id, memory=memory, past=past)


def _before(past: Past, memory: Memory) -> Memory | None:
    """What the memory was before a change of its text, as far as a dump tells."""
    if past.event is Event.ADD or past.old_text is None:
        return None
    return replace(memory, text=past.old_text, updated_at=past.at)


def _dead(found: Found, tenant: str) -> Archived:
    assert found.id is not None
    assert found.user_id is not None
    return Archived(id=found.id, tenant=tenant, user_id=found.user_id, past=found.past)


def _memory(prepared: PreparedDraft, memory_id: str, now: datetime) -> Memory:
    memory = prepared.memory(memory_id, now=now)
    return replace(memory, updated_at=memory.created_at)
