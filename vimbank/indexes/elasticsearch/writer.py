"""The feed's writer: a family of indexes, one a bank, that follows the store and keeps its cursor inside itself.

Beside the memories each index holds two bookkeeping documents, which have no terms and so count in no statistics:
``birth`` with the ``incarnation``, a random name that the index is given once, and ``cursor`` with the revision up to
which everything is searchable and the incarnation that this is true of. They are lost and restored with the data.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple
from uuid import uuid4

from vimbank.domain.models import Change, Partition
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError
from vimbank.indexes.elasticsearch.client import (
    BACKEND,
    MISSING_INDEX,
    PASSING,
    ElasticsearchClient,
    Overloaded,
    ndjson,
)
from vimbank.indexes.elasticsearch.mappings import IndexPlan
from vimbank.indexes.elasticsearch.naming import partition_key

__all__ = ["BOOKKEEPING_FIELDS", "Document", "ElasticsearchIndex", "IndexStatus"]

Document = Callable[[Change], Mapping[str, Any] | None]
"""Makes what an index keeps of a change's memory; None: the memory must not be in it."""

BOOKKEEPING_FIELDS: Final = frozenset({"incarnation", "cursor"})
"""What every mapping has beside the fields of ``Document``."""
MOST_REQUEST_BYTES: Final = 5 * 1024 * 1024
"""Of one bulk request; a single larger document goes alone."""
MOST_APPLY_S: Final = 120.0
"""After this a batch is given up and read again. A deletion is remembered for ``index.gc_deletes``, 10 minutes, in
which it keeps older writes of the same memory out: a batch that was read long ago must not be sent."""

_TRIES: Final = 8
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 5.0
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_REQUIRE_ALIAS_FROM: Final = (7, 10)
_NO_SHARD: Final = "no_shard_available_action_exception"
_STARTING_S: Final = 2  # how long the shards of a new index may take to start
_ALREADY_EXISTS: Final = "resource_already_exists_exception"
_PAGE: Final = 5_000
_BIRTH: Final = "birth"
_CURSOR: Final = "cursor"
_FIRST: Final = "1"


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One bank's index: its full name, cursor, memories, deleted ones not yet merged away, size, and ``_meta``."""

    index: str
    cursor: int
    documents: int
    deleted: int
    nbytes: int
    meta: Mapping[str, Any]


class _Operation(NamedTuple):
    """One item of a bulk request; ``lines`` are its bytes. Made for each memory, so of the cheapest kind."""

    name: str
    lines: bytes


class ElasticsearchIndex:
    """``RemoteIndex`` on one index a bank, each behind an alias. Thread-safe, and safe beside other processes.

    Every write carries the memory's revision as external version: what is not newer is refused by Elasticsearch, and
    that is no error. So changes may come twice, out of order, and from several writers at once.

    Args:    name: ``sparse`` or ``dense``.  plans: the index of each bank; changes of other banks are left out, and
                 when such a bank is declared later, its index begins at cursor 0.
             document: what is kept of a memory.  batch_size: memories a bulk request.
             sleep, random: of the back-off.
    """

    def __init__(
        self,
        client: ElasticsearchClient,
        name: str,
        plans: Mapping[str, IndexPlan],
        document: Document,
        *,
        batch_size: int = 1_000,
        sleep: Callable[[float], None] = time.sleep,
        random: Random | None = None,
    ) -> None:
        self._client = client
        self._name = name
        self._plans = dict(plans)
        self._document = document
        self._batch_size = batch_size
        self._sleep = sleep
        self._random = random or Random()
        self._targets = {bank: plan.alias for bank, plan in self._plans.items()}
        self._incarnations: dict[str, str] = {}  # by bank, as last seen
        self._made_aside = False

    @property
    def name(self) -> str:
        """Which leg it serves."""
        return self._name

    @property
    def plans(self) -> Mapping[str, IndexPlan]:
        """What the index of each bank is made of."""
        return self._plans

    # -- following the feed --

    def cursor(self) -> int:
        """See ``RemoteIndex.cursor``: the least of the banks' cursors, asked with the patience of a search.

        Raises:  ConfigError: an index of this name belongs to another store, or was made with other settings.
        """
        cursors = self._cursors()
        missing = [bank for bank, found in cursors.items() if found is None]
        if missing:
            for bank in missing:
                self._create(bank)
            cursors = self._cursors()
        return min((found or 0 for found in cursors.values()), default=0)

    def apply(self, changes: Sequence[Change]) -> None:
        """See ``RemoteIndex.apply``.

        Raises:  BackendUnavailable: out of reach, overloaded, or too slow for the batch to be still fresh.
                 BackendRejected: names the memory's number and what was wrong, never its text.
        """
        deadline = time.monotonic() + MOST_APPLY_S
        operations = (self._operation(change) for change in changes if change.partition.bank in self._targets)
        for batch in _batches(operations, self._batch_size):
            self._write(batch, deadline)

    def advance(self, cursor: int) -> None:
        """See ``RemoteIndex.advance``. The cursor never goes back, whoever is slower.

        All copies of all shards are refreshed first, and only then the cursors are written: who reads a cursor, which
        is visible at once, finds everything up to it. (``refresh=wait_for`` would be too late: a cursor can be read
        before the refresh that its writer waits for.)
        """
        if not self._targets:
            return
        unknown = [bank for bank in self._targets if bank not in self._incarnations]
        if unknown:
            self._cursors()
        self._client.ask("POST", f"/{','.join(self._targets.values())}/_refresh")
        self._write([self._cursor_operation(bank, cursor) for bank in self._targets], time.monotonic() + MOST_APPLY_S)

    def holds(self, partition: Partition) -> Mapping[int, int]:
        """See ``RemoteIndex.holds``; what was applied last is there after ``advance``."""
        if partition.bank not in self._targets:
            return {}
        key = partition_key(partition)
        body: dict[str, Any] = {
            "size": _PAGE,
            "query": {"bool": {"filter": {"term": {"partition": key}}}},
            "_source": False,
            "version": True,
            "sort": ["number"],
            "track_total_hits": False,
        }
        held: dict[int, int] = {}
        while True:
            answer = self._client.ask(
                "POST",
                f"/{self._targets[partition.bank]}/_search",
                body,
                params={"routing": key, "filter_path": "hits.hits.sort,hits.hits._version"},
                private=True,
            )
            hits = answer.get("hits", {}).get("hits", [])
            held.update((hit["sort"][0], hit["_version"]) for hit in hits)
            if len(hits) < _PAGE:
                return held
            body["search_after"] = hits[-1]["sort"]

    def reset(self) -> None:
        """See ``RemoteIndex.reset``: empty indexes take the places of the old ones, at once."""
        if self._made_aside:
            self.discard()
            self._make_targets()
        else:
            self.rebuild().publish()
        self._incarnations.clear()

    # -- building beside the live indexes --

    def rebuild(self, *, resume: bool = False) -> "ElasticsearchIndex":
        """New, empty indexes that nobody searches yet: apply changes and advance, then ``publish`` or ``discard``.

        Args:    resume: take those, filled as far as they are, that a rebuild left which did not come to its end.
        """
        beside = ElasticsearchIndex(
            self._client,
            self._name,
            self._plans,
            self._document,
            batch_size=self._batch_size,
            sleep=self._sleep,
            random=self._random,
        )
        beside._made_aside = True
        left = self._unpublished() if resume else set()
        suffix = min(left, default=uuid4().hex[:8])
        beside._targets = {bank: f"{plan.stem}-{suffix}" for bank, plan in self._plans.items()}
        beside._make_targets()
        return beside

    def drop_unpublished(self) -> None:
        """Remove what rebuilds left that did not come to their end. None may be under way."""
        for suffix in self._unpublished():
            for plan in self._plans.values():
                self._client.ask("DELETE", f"/{plan.stem}-{suffix}", params={"ignore_unavailable": "true"})

    def _unpublished(self) -> set[str]:
        """The suffixes of this leg's indexes, as they are planned, that are behind no alias."""
        suffixes = set()
        for plan in self._plans.values():
            found = self._client.ask("GET", f"/{plan.stem}-*", params={"allow_no_indices": "true"})
            for index, each in found.items():
                if not each["aliases"] and each["mappings"].get("_meta") == plan.meta:
                    suffixes.add(index.removeprefix(f"{plan.stem}-"))
        return suffixes

    def _make_targets(self) -> None:
        for bank, index in self._targets.items():
            try:
                self._client.ask("PUT", f"/{index}", self._plans[bank].body)
            except BackendRejected as exc:
                if _ALREADY_EXISTS not in str(exc):
                    raise

    def publish(self) -> None:
        """Put the new indexes behind the aliases, in one step; what was there before is removed with it.

        Raises:  ConfigError: what is there belongs to another store.
        """
        actions: list[dict[str, Any]] = []
        for bank, index in self._targets.items():
            plan = self._plans[bank]
            actions += [{"remove_index": {"index": old}} for old in self._behind(plan)]
            actions.append({"add": {"index": index, "alias": plan.alias}})
        if actions:
            self._client.ask("POST", "/_aliases", {"actions": actions})
        self._targets = {bank: plan.alias for bank, plan in self._plans.items()}
        self._made_aside = False

    def discard(self) -> None:
        """Remove indexes that were made by ``rebuild`` and not published; else nothing."""
        if self._made_aside:
            for index in self._targets.values():
                self._client.ask("DELETE", f"/{index}", params={"ignore_unavailable": "true"})

    def status(self) -> Mapping[str, IndexStatus]:
        """Each bank's index, for operators; a bank whose index is missing is left out."""
        cursors = self._cursors(check=False)
        return {bank: self._status(bank, found) for bank, found in cursors.items() if found is not None}

    def _status(self, bank: str, cursor: int) -> IndexStatus:
        target = self._targets[bank]
        index, meta = self._meta(target)
        answer = self._client.ask("GET", f"/{target}/_stats/docs,store", params={"filter_path": "_all.primaries"})
        figures = answer["_all"]["primaries"]
        counted = self._client.ask("POST", f"/{target}/_count", {"query": {"exists": {"field": "number"}}})
        return IndexStatus(
            index=index,
            cursor=cursor,
            documents=counted["count"],
            deleted=figures["docs"]["deleted"],
            nbytes=figures["store"]["size_in_bytes"],
            meta=meta,
        )

    def _behind(self, plan: IndexPlan) -> list[str]:
        """The indexes behind the plan's alias, or the index that has its name; [] where there is none."""
        params = {"ignore_unavailable": "true", "allow_no_indices": "true"}
        found = self._client.ask("GET", f"/{plan.alias}/_mapping", params=params)
        for index, answer in found.items():
            # Elasticsearch itself makes an index of the alias's name where a write comes and there is none.
            if index != plan.alias:
                _check_store(index, answer["mappings"].get("_meta", {}), plan)
        return sorted(found)

    # -- bookkeeping --

    def _cursors(self, *, check: bool = True) -> dict[str, int | None]:
        """Each bank's cursor, None where there is no index."""
        names = list(self._targets)
        wanted = [
            {"_index": self._targets[bank], "_id": each} for bank in names for each in (_BIRTH, _CURSOR)
        ]  # fmt: skip
        if not wanted:
            return {}
        found = self._get(wanted)
        return {
            bank: self._cursor_of(bank, birth, cursor, check=check)
            for bank, birth, cursor in zip(names, found[::2], found[1::2], strict=True)
        }

    def _get(self, wanted: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, Any]]:
        """Documents as they are now, refreshed or not. The shards of an index that is being made are waited for."""
        deadline = time.monotonic() + _STARTING_S
        while True:
            found: Sequence[Mapping[str, Any]]
            found = self._client.ask("POST", "/_mget", {"docs": wanted}, patience="search")["docs"]
            starting = {each["_index"] for each in found if each.get("error", {}).get("type") == _NO_SHARD}
            if not starting or time.monotonic() > deadline:
                return found
            params = {"wait_for_status": "yellow", "timeout": f"{_STARTING_S}s"}
            self._client.ask("GET", f"/_cluster/health/{','.join(sorted(starting))}", params=params)

    def _cursor_of(self, bank: str, birth: Mapping[str, Any], cursor: Mapping[str, Any], *, check: bool) -> int | None:
        if "error" in birth:
            self._incarnations.pop(bank, None)
            return None if birth["error"].get("type") == MISSING_INDEX else _fail(birth["error"])
        if not birth.get("found"):
            return self._give_birth(bank) if check else 0
        incarnation = birth["_source"]["incarnation"]
        if check and self._incarnations.get(bank) != incarnation:
            self._check(bank)
            self._incarnations[bank] = incarnation
        noted = cursor.get("_source", {})
        # Another incarnation's cursor comes from a writer that had not noticed that the index was emptied.
        return int(noted["cursor"]) if noted.get("incarnation") == incarnation else 0

    def _give_birth(self, bank: str) -> int:
        self._check(bank)
        target = self._targets[bank]
        mine = {"create": {"_index": target, "_id": _BIRTH}}
        self._send_bulk([_Operation("birth", ndjson([mine, {"incarnation": uuid4().hex}]))])  # the first one counts
        born = self._client.ask("GET", f"/{target}/_doc/{_BIRTH}")
        self._incarnations[bank] = born["_source"]["incarnation"]
        return 0

    def _create(self, bank: str) -> None:
        """Make the bank's index. Several processes may: the name is the same for all, and only one succeeds."""
        plan = self._plans[bank]
        body = {**plan.body, "aliases": {plan.alias: {}}}
        try:
            self._client.ask("PUT", f"/{plan.stem}-{_FIRST}", body)
        except BackendRejected as exc:
            if _ALREADY_EXISTS not in str(exc):
                raise
            if not self._behind(plan):  # restored from a backup without its alias
                action = {"add": {"index": f"{plan.stem}-{_FIRST}", "alias": plan.alias}}
                self._client.ask("POST", "/_aliases", {"actions": [action]})

    def _check(self, bank: str) -> None:
        """Whether the index that was found is the one that the plan describes."""
        plan = self._plans[bank]
        index, meta = self._meta(self._targets[bank])
        _check_store(index, meta, plan)
        differences = sorted(key for key in {*meta, *plan.meta} if meta.get(key) != plan.meta.get(key))
        if differences:
            told = ", ".join(f"{key} {meta.get(key)!r} (wanted {plan.meta.get(key)!r})" for key in differences)
            raise ConfigError(f"the Elasticsearch index {index} was made with {told}: run `vimbank es reindex`")

    def _meta(self, target: str) -> tuple[str, Mapping[str, Any]]:
        """The full name and ``_meta`` of the one index behind ``target``."""
        found = self._client.ask("GET", f"/{target}/_mapping")
        if len(found) != 1:
            raise ConfigError(f"the alias {target} has to name one index, it names {', '.join(sorted(found))}")
        ((index, answer),) = found.items()
        return index, answer["mappings"].get("_meta", {})

    # -- writing --

    def _operation(self, change: Change) -> _Operation:
        action: dict[str, Any] = {
            "_index": self._targets[change.partition.bank],
            "_id": str(change.number),
            "routing": partition_key(change.partition),
            "version": change.revision,
            "version_type": "external",
        }
        document = self._document(change)
        lines = ndjson(({"delete": action},) if document is None else ({"index": action}, document))
        return _Operation(f"memory {change.number}", lines)

    def _cursor_operation(self, bank: str, cursor: int) -> _Operation:
        # The same revision again may be needed: where a late writer's cursor of another incarnation stands in the way.
        action = {"_index": self._targets[bank], "_id": _CURSOR, "version": cursor, "version_type": "external_gte"}
        noted = {"incarnation": self._incarnations[bank], "cursor": cursor}
        return _Operation("cursor", ndjson([{"index": action}, noted]))

    def _write(self, operations: Sequence[_Operation], deadline: float) -> None:
        """Send until each is done; those that met an overload again, after a while."""
        left = list(operations)
        for attempt in range(_TRIES):
            if time.monotonic() > deadline:
                break
            left = self._send_bulk(left)
            if not left:
                return
            self._sleep(self._wait_s(attempt))
        raise BackendUnavailable(BACKEND, f"{len(left)} of {len(operations)} writes were not taken in time")

    def _wait_s(self, attempt: int) -> float:
        longest: float = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt)
        return longest * self._random.uniform(0.5, 1.0)

    def _send_bulk(self, operations: Sequence[_Operation]) -> list[_Operation]:
        """One bulk request; what has to be sent again. Raises BackendRejected for an item that never will pass."""
        params = {"filter_path": "errors,items.*.status,items.*.error.type"}
        if not self._made_aside and self._client.version() >= _REQUIRE_ALIAS_FROM:
            params["require_alias"] = "true"  # an index that is gone must not come back without its mapping
        lines = b"".join(operation.lines for operation in operations)
        try:
            answer = self._client.ask("POST", "/_bulk", lines, params=params, private=True)
        except Overloaded:
            return list(operations)
        if not answer["errors"]:
            return []
        again = []
        for operation, item in zip(operations, answer["items"], strict=True):
            ((action, result),) = item.items()
            status, kind = result["status"], result.get("error", {}).get("type", "")
            if status in PASSING:
                again.append(operation)
            elif kind == MISSING_INDEX:
                raise BackendUnavailable(BACKEND, "the index is gone; asking for its cursor makes a new one")
            elif not _is_done(action, status):
                raise BackendRejected(BACKEND, f"{operation.name}: status {status}, {kind or 'no reason given'}")
        return again


def _check_store(index: str, meta: Mapping[str, Any], plan: IndexPlan) -> None:
    if meta.get("store") != plan.meta["store"]:
        raise ConfigError(
            f"the Elasticsearch index {index} belongs to the store {meta.get('store')}, and this is the store "
            f"{plan.meta['store']}: give it another VIMBANK_ELASTICSEARCH__PREFIX, or delete the index"
        )


def _is_done(action: str, status: int) -> bool:
    """Written; or something newer is there; or what should go is not there."""
    return status < 300 or status == _CONFLICT or (action == "delete" and status == _NOT_FOUND)


def _fail(error: Mapping[str, Any]) -> int:
    raise BackendUnavailable(BACKEND, f"the cursor cannot be read: {error.get('type')}")


def _batches(operations: Iterable[_Operation], size: int) -> Iterator[list[_Operation]]:
    """Bounded in number and in bytes; the documents are made as they are needed."""
    batch: list[_Operation] = []
    nbytes = 0
    for operation in operations:
        if batch and (len(batch) >= size or nbytes + len(operation.lines) > MOST_REQUEST_BYTES):
            yield batch
            batch, nbytes = [], 0
        batch.append(operation)
        nbytes += len(operation.lines)
    if batch:
        yield batch
