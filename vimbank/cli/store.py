"""store migrate, store copy."""

import click

from vimbank.cli.command import Call, command, group
from vimbank.cli.progress import progress
from vimbank.cli.render import table
from vimbank.domain.records import plain
from vimbank.store.copying import copy_store
from vimbank.store.schema import migrate_store
from vimbank.wiring import store_url

__all__ = ["copy", "migrate", "store"]


@command("migrate", example="vimbank store migrate --json", tenant=False)
@click.option(
    "--url", metavar="URL", help="Which store.  [default: VIMBANK_STORE__URL, else SQLite in the data folder]"
)
def migrate(call: Call, url: str | None) -> None:
    """Bring the store to the newest schema; where there is none, make it. Doing so twice changes nothing.

    A server does the same when it starts.
    """
    settings = call.settings()
    if url is None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    done = migrate_store(url or store_url(settings), busy_timeout_s=settings.store.busy_timeout_s)
    former = "no schema" if done.former is None else f"schema {done.former}"
    text = f"from {former} to schema {done.current}" if done.changed else f"{former} is the newest"
    call.answer({"former": done.former, "current": done.current, "changed": done.changed}, text)


@command(
    "copy", example="vimbank store copy --from sqlite:///data/vimbank.db --to postgresql://ana@db/vimbank", tenant=False
)
@click.option("--from", "source", metavar="URL", required=True, help="The store to read.")
@click.option("--to", "target", metavar="URL", required=True, help="An empty database; a SQLite file may be missing.")
def copy(call: Call, source: str, target: str) -> None:
    """Copy a store to another database and compare every row: SQLite to PostgreSQL, or back.

    Ids, revisions, history and the store's identity stay, so indexes fit the copy. Stop the servers first: what is
    written to the old store meanwhile is not in the new one. An interrupted copy leaves the target empty. Passwords
    are better left out of the URL: PostgreSQL's PGPASSWORD or password file serve as well.
    """
    settings = call.settings()
    with progress("copying and comparing", total=None, unit="rows") as bar:
        report = copy_store(source, target, busy_timeout_s=settings.store.busy_timeout_s, progress=bar.reach)
    rows = [(each.name, str(each.rows), each.digest[:16]) for each in report.tables]
    lines = [
        table(rows, heading=("table", "rows", "digest")),
        f"copied and compared {report.rows} rows; both stores are at revision {report.revision}",
    ]
    call.answer(plain(report), "\n".join(lines))


store = group(
    "store",
    [migrate, copy],
    summary="Migrate the store, or copy it to another database.",
    example="vimbank store migrate",
)
