"""export, import."""

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast, get_args

import click
import orjson

from vimbank.cli.command import Call, command
from vimbank.cli.memories import ACTOR
from vimbank.cli.progress import progress
from vimbank.domain.records import plain
from vimbank.errors import InvalidInput
from vimbank.portability.export import export as export_lines
from vimbank.portability.import_ import FormatName, Importer, ImportReport
from vimbank.store.foreign import is_sqlite, rows_of
from vimbank.wiring import open_service
from vimbank.wiring.portability import open_archive

__all__ = ["export", "import_"]

_PIECE: Final = 1 << 20
_SHOWN: Final = 20
_HISTORY: Final = "history"
"""The table of a mem0 history database."""


@command("export", example="vimbank export --user ana --out ana.jsonl.gz")
@click.option("--user", "user_id", help="Whose memories.")
@click.option("--all-users", is_flag=True, help="Those of all users of the tenant.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default="-", show_default=True,
    help="The file; -: standard output. It is packed where its name ends in .gz.",
)  # fmt: skip
def export(call: Call, user_id: str | None, all_users: bool, out: Path) -> None:
    """Export all of a user, losslessly: texts, metadata, times, counters, history, vectors."""
    if (user_id is None) != all_users:
        raise click.UsageError("Give either --user or --all-users.")
    written = 0
    with open_service(call.settings()) as service, progress("exporting", total=None, unit="bytes") as bar:
        pieces = export_lines(service, open_archive(service), tenant=call.tenant, user_id=user_id)
        with _target(out) as file:
            for piece in pieces:
                file.write(piece)
                written += len(piece)
                bar.advance(len(piece))
    if str(out) != "-":
        call.answer({"out": str(out), "bytes": written}, f"exported to {out}")


@contextmanager
def _target(out: Path) -> Iterator[IO[bytes]]:
    """The file, which is there whole or not at all."""
    if str(out) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    unfinished = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as raw:
            if out.suffix == ".gz":
                with gzip.open(raw, "wb") as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        unfinished.replace(out)
    except OSError as exc:
        raise InvalidInput.of("out", f"{out} cannot be written: {exc.strerror}") from exc
    finally:
        unfinished.unlink(missing_ok=True)


@command("import", example="vimbank import ana.jsonl.gz --dry-run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--user", "user_id", help="Whose memories, where the file does not say.")
@click.option("--bank", help="Their bank, where the file does not say.  [default: dialog; of JSON Lines knowledge]")
@click.option("--format", "format_name", type=click.Choice(get_args(FormatName)), default="auto", show_default=True,
              help="Of the file.")  # fmt: skip
@click.option("--history", "history_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="The history database beside a mem0 dump.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Tell what would happen, and write nothing.")
def import_(
    call: Call,
    file: Path,
    user_id: str | None,
    bank: str | None,
    format_name: str,
    history_file: Path | None,
    dry_run: bool,
) -> None:
    """Import an export, JSON Lines, or a dump of mem0, agent-memory-server or MemoryBank from FILE (-: standard input).

    What is bad is named by its line, and the rest goes in; exit code 1 then. Importing again goes on where it was
    stopped: what is there already is left alone. A mem0 history database may itself be the FILE.
    """
    history: list[dict[str, Any]] = [] if history_file is None else rows_of(history_file, _HISTORY)
    with open_service(call.settings()) as service, progress("importing", total=None, unit="bytes") as bar:
        importer = Importer(
            service, open_archive(service), tenant=call.tenant, actor=ACTOR, user_id=user_id, bank=bank,
            format=format_name, dry_run=dry_run, history=history,
        )  # fmt: skip
        for piece in _pieces(file):
            importer.feed(piece)
            bar.advance(len(piece))
        report = importer.finish()
    _answer(call, report)


def _pieces(path: Path) -> Iterator[bytes]:
    if str(path) == "-":
        yield from iter(lambda: sys.stdin.buffer.read(_PIECE), b"")
        return
    if is_sqlite(path):
        yield orjson.dumps({"results": [], "history": rows_of(path, _HISTORY)}, default=str)
        return
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from iter(lambda: file.read(_PIECE), b"")
    except (OSError, EOFError, zlib.error) as exc:
        raise InvalidInput.of("path", f"{path} cannot be read: {exc}") from exc


def _answer(call: Call, report: ImportReport) -> None:
    for each in [*report.bad, *report.conflicts][:_SHOWN]:
        click.echo(f"vimbank: line {each.line}: {each.error}", err=True)
    if report.failed > _SHOWN:
        click.echo(f"vimbank: and {report.failed - _SHOWN} more; --json names the first 1,000 of each kind", err=True)
    verb = "would add" if report.dry_run else "added"
    text = (
        f"{report.format}: {verb} {report.added}, already there {report.duplicates}, encoded {report.embedded}, "
        f"conflicting {len(report.conflicts)}, failed {report.failed}"
    )
    call.answer(plain(report), "\n".join([text, *report.notes]))
    if report.failed or report.complete is False:
        raise click.exceptions.Exit(1)
