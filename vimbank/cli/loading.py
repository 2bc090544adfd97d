"""ingest, load."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from vimbank.cli.command import Call, command
from vimbank.cli.memories import ACTOR
from vimbank.cli.progress import Bar, progress
from vimbank.domain.models import AddResult
from vimbank.errors import InvalidInput, VimbankError
from vimbank.ingestion.datasets import LOADERS
from vimbank.ingestion.documents import MEDIA_TYPES
from vimbank.ingestion.jsonl import Line, lines_of, read_jsonl
from vimbank.service import MemoryService
from vimbank.wiring import open_service

__all__ = ["ingest", "load"]

BATCH: Final = 256
"""Drafts a transaction: enough that the encoder can put texts of one length together."""
_JSONL: Final = (".jsonl", ".jsonl.gz", ".ndjson")
_SHOWN_FAILURES: Final = 20


@dataclass(slots=True)
class Tally:
    """What became of all items so far."""

    added: int = 0
    duplicates: int = 0
    segments: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)

    def count(self, outcome: AddResult | VimbankError, **place: Any) -> None:
        """Count one item; ``place`` (path, line) says where it stood if it failed."""
        if isinstance(outcome, VimbankError):
            self.failed.append({**place, "error": str(outcome)})
        elif outcome.duplicate:
            self.duplicates += 1
        else:
            self.added += 1
            self.segments += outcome.segments

    def answer(self, call: Call) -> None:
        """Print the counts, and each failure on standard error; exit code 1 where there is any."""
        for each in self.failed[:_SHOWN_FAILURES]:
            place = ":".join(str(each[name]) for name in ("path", "line") if name in each)
            click.echo(f"vimbank: {place}: {each['error']}", err=True)
        if len(self.failed) > _SHOWN_FAILURES:
            click.echo(f"vimbank: and {len(self.failed) - _SHOWN_FAILURES} more; --json names all", err=True)
        text = (
            f"added {self.added}, already there {self.duplicates}, segments {self.segments}, failed {len(self.failed)}"
        )
        document = {
            "added": self.added, "duplicates": self.duplicates, "segments": self.segments, "failed": self.failed,
        }  # fmt: skip
        call.answer(document, text)
        if self.failed:
            raise click.exceptions.Exit(1)


@command("ingest", example="vimbank ingest notes/ memories.jsonl --user ana")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--user", "user_id", help="Whose memories; a JSONL line may name its own.")
@click.option("--bank", default="knowledge", show_default=True, help="A JSONL line may name its own.")
def ingest(call: Call, paths: Sequence[Path], user_id: str | None, bank: str) -> None:
    """Ingest documents (text, Markdown, HTML, PDF, DOCX), JSONL files, and folders of them.

    Ingesting the same again stores nothing twice. A bad line or file is named, and the rest goes in.
    """
    files = [file for path in paths for file in _files(path)]
    tally = Tally()
    with open_service(call.settings()) as service, progress("ingesting", total=None) as bar:
        for file in files:
            try:
                if file.name.endswith(_JSONL):
                    lines = read_jsonl(lines_of(file), tenant=call.tenant, user_id=user_id, bank=bank)
                    _add_lines(service, lines, str(file), tally, bar)
                else:
                    tally.count(_ingest_document(service, call, file, user_id, bank))
                    bar.advance()
            except VimbankError as error:
                tally.count(error, path=str(file))
    tally.answer(call)


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or what a folder holds that can be read, hidden files left out, in order."""
    if not path.is_dir():
        yield path
        return
    for each in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in each.relative_to(path).parts)
        if each.is_file() and not hidden and (each.suffix.lower() in MEDIA_TYPES or each.name.endswith(_JSONL)):
            yield each


def _ingest_document(service: MemoryService, call: Call, file: Path, user_id: str | None, bank: str) -> AddResult:
    if user_id is None:
        raise InvalidInput.of("user_id", "is missing; give --user")
    try:
        content = file.read_bytes()
    except OSError as exc:
        raise InvalidInput.of("path", f"cannot be read: {exc.strerror}") from exc
    return service.add_document(
        tenant=call.tenant,
        user_id=user_id,
        bank=bank,
        content=content,
        filename=file.name,
        metadata={"filename": file.name},
        actor=ACTOR,
    )


def _add_lines(service: MemoryService, lines: Iterable[Line], place: str, tally: Tally, bar: Bar) -> None:
    """Add the drafts of ``lines`` in batches; what fails is counted with ``place`` and its number."""
    iterator = iter(lines)
    while batch := list(islice(iterator, BATCH)):
        written = iter(service.add_many([line.draft for line in batch if line.draft is not None], actor=ACTOR))
        for line in batch:
            tally.count(next(written) if line.error is None else line.error, path=place, line=line.number)
        bar.advance(len(batch))


@command("load", example="vimbank load locomo ~/data/locomo")
@click.argument("name", type=click.Choice(list(LOADERS)), metavar="NAME")
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--user", "user_id", help="Put everything under this user.  [default: a user a conversation]")
@click.option("--extra-distractors", is_flag=True, help="HotpotQA: also the passages without questions.")
def load(call: Call, name: str, path: Path, user_id: str | None, extra_distractors: bool) -> None:
    """Load a known data set from its folder PATH; datasets/README.md tells how each is obtained.

    NAME is hotpotqa, locomo, memorybank or scm. Loading again stores nothing twice.
    """
    loader = LOADERS[name]
    total = loader.total(path, extra_distractors=extra_distractors)
    drafts = loader.load(path, tenant=call.tenant, user_id=user_id, extra_distractors=extra_distractors)
    lines = (Line(number, draft=draft) for number, draft in enumerate(drafts, 1))
    tally = Tally()
    with open_service(call.settings()) as service, progress(name, total=total) as bar:
        _add_lines(service, lines, str(path), tally, bar)
    tally.answer(call)
