"""Dense vectors in Elasticsearch: an index a bank and encoder, written from the feed, and asked by kNN."""

import copy
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from elasticsearch import ApiError, Elasticsearch, NotFoundError, TransportError

from vimbank.domain.models import Change, Partition, Vector
from vimbank.errors import BackendError, BackendRejected, BackendUnavailable, ConfigError
from vimbank.ports import EncoderIdentity

__all__ = ["ElasticsearchVectors", "identity_hash", "vector_document"]

MAPPING_VERSION: Final = 1
MOST_DIMENSIONS: Final = 4_096
"""What a ``dense_vector`` may have, from Elasticsearch 8.11 on."""
_BACKEND: Final = "elasticsearch"
_CURSOR_ID: Final = "cursor"
_PASSING: Final = frozenset({429, 502, 503, 504})
_NOT_FOUND: Final = 404
_WAITS_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
_WRITE: Final = "-write"
"""Ends the alias that is written through: a write to an index that is gone must not make one without a mapping."""
_PAGE: Final = 10_000
_BATCH: Final = 1_000
_SCORED: Final = "hits.hits._score,hits.hits.fields,timed_out"


class ElasticsearchVectors:
    """The ``RemoteIndex`` called ``dense``, and the ``VectorSearch`` of ``ElasticsearchDense``.

    There is an index a bank, ``{prefix}-{bank}-vectors-v1-{hash of the encoder's identity}``. Its ``_meta`` names the
    encoder, the store and the version of the mapping. Each keeps the cursor up to which it holds everything, as a
    document inside itself, so that an index which is lost, restored from a backup, or of a bank that was declared
    later is filled from where it stands: ``cursor`` is the least of them.

    One object is bound to one encoder. When the store is switched to another, a new object's indexes start at cursor 0
    beside the old ones, which ``drop_others`` removes once the new ones are filled.

    Memories without a vector, or with a zero vector, whose cosine is undefined, are not put in.

    Args:    client: its time-outs are those of bulk requests.  search_timeout_s: patience of one search, seconds.
             banks: those that are searched; memories of others are left out until their bank is declared.
             store_id: the store that the vectors come from (``SqlStore.store_id``).
             definition: settings and mappings, as in ``es_mappings/vectors.v1.json``.
             wait: sleeps between two tries, seconds.
    Raises:  ConfigError: the encoder's vectors are longer than Elasticsearch can keep.
    """

    name: Final = "dense"

    def __init__(
        self,
        client: Elasticsearch,
        *,
        prefix: str,
        banks: Iterable[str],
        identity: EncoderIdentity,
        store_id: str,
        definition: Mapping[str, Any],
        search_timeout_s: float,
        batch_size: int = _BATCH,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        if identity.dimension > MOST_DIMENSIONS:
            raise ConfigError(
                f"{identity} cannot be kept in Elasticsearch, whose vectors have at most {MOST_DIMENSIONS} dimensions: "
                "set VIMBANK_INDEX__DENSE=faiss"
            )
        self._client = client
        self._searching = client.options(request_timeout=search_timeout_s, max_retries=0)
        self._prefix = prefix
        self._ending = f"vectors-v{MAPPING_VERSION}-{identity_hash(identity)}"
        self._indexes = {bank: f"{prefix}-{bank}-{self._ending}" for bank in sorted(banks)}
        self._store_id = store_id
        self._body = _definition(definition, identity, store_id)
        self._batch_size = batch_size
        self._wait = wait

    # -- following the feed --

    def cursor(self) -> int:
        """See ``RemoteIndex.cursor``: the least of the banks' cursors.

        Raises:  ConfigError: an index of this name holds the vectors of another store.
        """
        if not self._indexes:
            return 0
        with _translated():
            for index in self._indexes.values():
                self._ensure(index)
            found = self._client.mget(docs=[{"_index": index, "_id": _CURSOR_ID} for index in self._indexes.values()])
        return min((int(_source(each).get("revision", 0)) for each in found["docs"]), default=0)

    def apply(self, changes: Sequence[Change]) -> None:
        """See ``RemoteIndex.apply``. Raises BackendRejected, naming the memory, for a vector that is refused."""
        wanted = [change for change in changes if change.partition.bank in self._indexes]
        for start in range(0, len(wanted), self._batch_size):
            self._write([self._action(change) for change in wanted[start : start + self._batch_size]])

    def advance(self, cursor: int) -> None:
        """See ``RemoteIndex.advance``. A cursor is never set back, whoever is slower."""
        if not self._indexes or cursor < 1:
            return
        with _translated():
            self._client.indices.refresh(index=list(self._indexes.values()))
        self._write([self._cursor_action(index, cursor) for index in self._indexes.values()])

    def holds(self, partition: Partition) -> Mapping[int, int]:
        """See ``RemoteIndex.holds``."""
        held: dict[int, int] = {}
        after: dict[str, Any] = {}
        while partition.bank in self._indexes:
            with _translated():
                answer = self._client.search(
                    index=self._indexes[partition.bank],
                    routing=partition_key(partition),
                    query={"term": {"partition": partition_key(partition)}},
                    sort=[{"number": "asc"}],
                    size=_PAGE,
                    source=False,
                    docvalue_fields=[{"field": "number"}, {"field": "revision"}],
                    allow_partial_search_results=False,
                    **after,
                )
            hits = answer["hits"]["hits"]
            held |= {hit["fields"]["number"][0]: hit["fields"]["revision"][0] for hit in hits}
            if len(hits) < _PAGE:
                break
            after = {"search_after": hits[-1]["sort"]}
        return held

    def reset(self) -> None:
        """See ``RemoteIndex.reset``: the indexes of this encoder are dropped."""
        for index in self._indexes.values():
            self._drop(index)

    def others(self) -> list[str]:
        """Indexes of this store's vectors by other encoders or mappings, of which nothing is used any more; sorted."""
        with _translated():
            found = self._client.indices.get_mapping(index=f"{self._prefix}-*-vectors-v*", allow_no_indices=True)
        return sorted(
            index
            for index, each in found.body.items()
            if index not in self._indexes.values() and _meta(each).get("store") == self._store_id
        )

    def drop_others(self) -> list[str]:
        """Drop ``others``; their names. To be called when this object's cursor has reached the store's revision."""
        dropped = self.others()
        for index in dropped:
            self._drop(index)
        return dropped

    # -- searching --

    def search(self, partition: Partition, body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The hits of a search inside the partition. See ``VectorSearch``."""
        index = self._indexes.get(partition.bank)
        if index is None:
            return []
        key = partition_key(partition)
        knn = {**body["knn"], "filter": [{"term": {"partition": key}}, *body["knn"]["filter"]]}
        with _translated():
            try:
                answer = self._searching.search(
                    index=index,
                    routing=key,
                    source=False,
                    stored_fields="_none_",
                    allow_partial_search_results=False,
                    filter_path=_SCORED,
                    **{**body, "knn": knn},
                )
            except NotFoundError:
                return []
        if answer.get("timed_out"):
            raise BackendUnavailable(_BACKEND, "a search was cut short by its time limit")
        hits: Sequence[Mapping[str, Any]] = answer.get("hits", {}).get("hits", [])
        return hits

    # -- inside --

    def _ensure(self, index: str) -> None:
        try:
            found = self._client.indices.get_mapping(index=index)
        except NotFoundError:
            self._create(index)
            return
        [mapping] = found.body.values()
        owner = _meta(mapping).get("store")
        if owner != self._store_id:
            raise ConfigError(
                f"the Elasticsearch index {index} belongs to the store {owner}, this one is {self._store_id}: "
                "set another VIMBANK_ELASTICSEARCH__PREFIX, or delete the index"
            )

    def _create(self, index: str) -> None:
        try:
            self._client.indices.create(index=index, aliases={index + _WRITE: {}}, **self._body)
        except ApiError as exc:
            if exc.error != "resource_already_exists_exception":  # another process was quicker
                raise

    def _drop(self, index: str) -> None:
        with _translated():
            self._client.indices.delete(index=index, ignore_unavailable=True)

    def _cursor_action(self, index: str, cursor: int) -> "_Action":
        target = {"_index": index + _WRITE, "_id": _CURSOR_ID, "version": cursor, "version_type": "external_gte"}
        return {"index": target}, {"revision": cursor}

    def _action(self, change: Change) -> "_Action":
        target = {
            "_index": self._indexes[change.partition.bank] + _WRITE,
            "_id": str(change.number),
            "routing": partition_key(change.partition),
            "version": change.revision,
            "version_type": "external",
        }
        document = vector_document(change)
        return ({"delete": target}, None) if document is None else ({"index": target}, document)

    def _write(self, actions: Sequence["_Action"]) -> None:
        """Write all, those again that the server was too busy for; what is there in a newer version stays."""
        for wait_s in (*_WAITS_S, None):
            if not actions:
                return
            operations = [line for action in actions for line in action if line is not None]
            with _translated():
                answer = self._client.bulk(operations=operations, require_alias=True)
            outcomes = [next(iter(item.values())) for item in answer["items"]]
            for outcome in outcomes:
                _check(outcome)
            actions = [each for each, outcome in zip(actions, outcomes, strict=True) if outcome["status"] in _PASSING]
            if actions and wait_s is not None:
                self._wait(wait_s)
        raise BackendUnavailable(_BACKEND, f"too busy to write {len(actions)} vectors")


_Action = tuple[dict[str, Any], dict[str, Any] | None]


def partition_key(partition: Partition) -> str:
    """One string a partition, whatever characters its parts have (case 63)."""
    return json.dumps([partition.tenant, partition.user_id, partition.bank], ensure_ascii=False, separators=(",", ":"))


def vector_document(change: Change) -> dict[str, Any] | None:
    """What Elasticsearch keeps of a change; None where the memory is not to be found by its vector."""
    if change.memory is None or not change.memory.indexed or change.vector is None or not change.vector.any():
        return None
    return {
        "vector": _shortest(change.vector),
        "partition": partition_key(change.partition),
        "id": change.id,
        "number": change.number,
        "revision": change.revision,
    }


def identity_hash(identity: EncoderIdentity) -> str:
    """Eight hexadecimal digits of everything that makes two encoders differ (cases 16, 134)."""
    return hashlib.sha256(json.dumps(asdict(identity), sort_keys=True).encode()).hexdigest()[:8]


def _shortest(vector: Vector) -> list[float]:
    """The numbers in as few digits as give the same float32 again: half of what a float64 is written in."""
    return list(map(float, vector.astype(np.float32).astype(str).tolist()))


def _definition(definition: Mapping[str, Any], identity: EncoderIdentity, store_id: str) -> dict[str, Any]:
    body: dict[str, Any] = copy.deepcopy(dict(definition))
    body["mappings"]["properties"]["vector"]["dims"] = identity.dimension
    body["mappings"]["_meta"] = {"encoder": asdict(identity), "mapping": MAPPING_VERSION, "store": store_id}
    return body


def _meta(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = mapping["mappings"].get("_meta", {})
    return found


def _source(found: Mapping[str, Any]) -> Mapping[str, Any]:
    source: Mapping[str, Any] = found.get("_source", {})
    return source


def _check(outcome: Mapping[str, Any]) -> None:
    """Raise for an item that failed for good. 409: a newer version is there; 404 without error: it was gone already."""
    status = outcome["status"]
    if status < 300 or status == 409 or status in _PASSING or (status == _NOT_FOUND and "error" not in outcome):
        return
    reason = f"memory {outcome['_id']}: {json.dumps(outcome.get('error'))}"
    raise (BackendUnavailable if status == _NOT_FOUND else BackendRejected)(_BACKEND, reason)


@contextmanager
def _translated() -> Iterator[None]:
    """The client's exceptions as ours: what may pass is BackendUnavailable, the rest BackendRejected."""
    try:
        yield
    except BackendError:
        raise
    except TransportError as exc:
        raise BackendUnavailable(_BACKEND, str(exc)) from exc
    except ApiError as exc:
        # An index that is gone is made again, and filled, by the next look at the cursor.
        kind = BackendUnavailable if exc.meta.status in _PASSING | {_NOT_FOUND} else BackendRejected
        raise kind(_BACKEND, f"{exc.meta.status} {exc}") from exc
