"""es status, es migrate, es reindex."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from vimbank.cli.command import Call, command, group
from vimbank.cli.progress import Bar, progress
from vimbank.cli.render import table
from vimbank.domain.records import plain
from vimbank.errors import ConfigError, Conflict
from vimbank.feed.rebuild import rebuild
from vimbank.feed.remotes import Lease
from vimbank.settings import Settings
from vimbank.wiring import open_cluster, utc_now

if TYPE_CHECKING:
    from vimbank.wiring.elasticsearch import Cluster, ConfiguredIndex

__all__ = ["es", "migrate", "reindex", "status"]


@dataclass(frozen=True, slots=True)
class _Line:
    """One index. ``current``: it was made as the settings and this version of VIMBank would make it now."""

    leg: str
    bank: str
    alias: str
    index: str | None
    mapping: int | None
    current: bool
    documents: int
    deleted: int
    cursor: int
    lag: int
    nbytes: int


@command("status", example="vimbank es status --json", tenant=False)
def status(call: Call) -> None:
    """Show the cluster and each index in it: how far it follows the store, how much it holds, how it was made.

    Exit code 3 where the cluster is out of reach.
    """
    with open_cluster(call.settings()) as cluster:
        version = cluster.client.check()
        revision = cluster.store.state().revision
        lines = [line for each in cluster.indexes for line in _lines(each, revision)]
    rows = [
        (
            each.leg,
            each.bank,
            each.index or f"{each.alias} (missing)",
            "yes" if each.current else "NO",
            f"{each.documents:,}",
            f"{each.deleted:,}",
            str(each.cursor),
            str(each.lag),
            f"{each.nbytes / 2**20:,.1f}",
        )
        for each in lines
    ]
    heading = ("leg", "bank", "index", "current", "memories", "deleted", "cursor", "lag", "MB")
    text = [f"Elasticsearch {version} at {cluster.url}; the store is at revision {revision}"]
    text.append(table(rows, heading=heading))
    if not all(each.current for each in lines if each.index is not None):
        text.append("Indexes that are not current are not used; `vimbank es migrate` makes them anew.")
    document = {"cluster": {"url": cluster.url, "version": version}, "revision": revision, "indexes": plain(lines)}
    call.answer(document, "\n".join(text))


@command("migrate", example="vimbank es migrate", tenant=False)
def migrate(call: Call) -> None:
    """Make anew what was made by another version or with other settings; what is current stays as it is.

    The new index is filled and compared with the store beside the old one, which serves meanwhile; then it takes its
    place at once. An interrupted run is taken up where it stopped; doing so twice changes nothing.
    """
    with open_cluster(call.settings()) as cluster:
        old = [each for each in cluster.indexes if not all(line.current for line in _lines(each, 0))]
        reports = _rebuild(call.settings(), cluster, old)
    call.answer({"rebuilt": reports}, _told(reports) or "all indexes are current")


@command("reindex", example="vimbank es reindex --leg sparse", tenant=False)
@click.option("--leg", type=click.Choice(["sparse", "dense"]), help="Only this one.  [default: all in Elasticsearch]")
def reindex(call: Call, leg: str | None) -> None:
    """Make the indexes anew from the store, whatever they hold now.

    The new index is filled and compared with the store beside the present one, which serves meanwhile; then it takes
    its place at once. An interrupted run is taken up where it stopped.
    """
    with open_cluster(call.settings()) as cluster:
        wanted = [each for each in cluster.indexes if leg in (None, each.index.name)]
        if not wanted:
            raise ConfigError(f"the settings keep no {leg or 'index'} in Elasticsearch")
        reports = _rebuild(call.settings(), cluster, wanted)
    call.answer({"rebuilt": reports}, _told(reports))


def _lines(configured: "ConfiguredIndex", revision: int) -> Iterator[_Line]:
    index = configured.index
    there = index.status()
    for bank, plan in index.plans.items():
        found = there.get(bank)
        yield _Line(
            leg=index.name,
            bank=bank,
            alias=plan.alias,
            index=None if found is None else found.index,
            mapping=None if found is None else found.meta.get("mapping"),
            current=found is not None and found.meta == plan.meta,
            documents=0 if found is None else found.documents,
            deleted=0 if found is None else found.deleted,
            cursor=0 if found is None else found.cursor,
            lag=revision if found is None else max(0, revision - found.cursor),
            nbytes=0 if found is None else found.nbytes,
        )


def _rebuild(settings: Settings, cluster: "Cluster", wanted: "Sequence[ConfiguredIndex]") -> list[dict[str, Any]]:
    lease = Lease(cluster.store.jobs, "es-rebuild", lease_s=settings.jobs.lease_s, clock=utc_now)
    if not lease.hold():
        raise Conflict("another process makes the indexes anew at this moment")
    try:
        return [_rebuild_one(settings, cluster, each, lease) for each in wanted]
    finally:
        lease.let_go()


def _rebuild_one(settings: Settings, cluster: "Cluster", configured: "ConfiguredIndex", lease: Lease) -> dict[str, Any]:
    with progress(f"filling {configured.index.name}", total=None, unit="revisions") as bar:
        report = rebuild(
            cluster.store,
            configured.index,
            batch_size=settings.elasticsearch.batch_size,
            expected=configured.expected,
            progress=lambda done, total: _show(bar, lease, done, total),
        )
    document: dict[str, Any] = plain(report)
    return document


def _show(bar: Bar, lease: Lease, done: int, total: int) -> None:
    lease.hold()  # renewed, where it is time to
    bar.reach(done, total)


def _told(reports: Sequence[dict[str, Any]]) -> str:
    return "\n".join(
        f"{each['name']}: made anew with {each['memories']:,} memories, at revision {each['revision']}"
        for each in reports
    )


es = group(
    "es",
    [status, migrate, reindex],
    summary="Look at the indexes in Elasticsearch, or make them anew.",
    example="vimbank es status",
)
