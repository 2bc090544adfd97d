"""The indexes that hold dense vectors in Elasticsearch: one a bank and encoder, written from the feed."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import orjson

from vimbank.domain.models import Change, Vector
from vimbank.errors import ConfigError
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.elasticsearch.mappings import IndexPlan, load_body
from vimbank.indexes.elasticsearch.naming import bank_alias, partition_key
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex
from vimbank.ports import EncoderIdentity

__all__ = [
    "MOST_DIMENSIONS",
    "drop_former_vectors",
    "former_vectors",
    "identity_hash",
    "vector_document",
    "vector_json",
    "vectors_alias",
    "vectors_index",
]

_VERSION: Final = 1
MOST_DIMENSIONS: Final = 4_096
"""What a ``dense_vector`` may have, from Elasticsearch 8.11 on."""


def vectors_index(
    client: ElasticsearchClient,
    *,
    banks: Iterable[str],
    prefix: str,
    store_id: str,
    identity: EncoderIdentity,
    batch_size: int = 1_000,
) -> ElasticsearchIndex:
    """The ``RemoteIndex`` called ``dense``: an index a bank, of one encoder's vectors.

    It is bound to this encoder. When the store is switched to another, its index starts at cursor 0 beside the former
    one, which ``drop_former_vectors`` removes once the new one is filled. Memories without a vector, or with a zero
    vector, whose cosine is undefined, are not put in.

    Raises:  ConfigError: vectors that are longer than Elasticsearch can keep.
    """
    if identity.dimension > MOST_DIMENSIONS:
        raise ConfigError(
            f"the vectors of {identity} are too long for Elasticsearch, which keeps up to {MOST_DIMENSIONS} "
            "dimensions: set VIMBANK_INDEX__DENSE=faiss"
        )
    plans = {bank: _plan(bank, prefix, store_id, identity) for bank in banks}
    return ElasticsearchIndex(client, "dense", plans, vector_document, batch_size=batch_size)


def former_vectors(client: ElasticsearchClient, *, prefix: str, store_id: str, identity: EncoderIdentity) -> list[str]:
    """This store's indexes of vectors by other encoders, or under former mappings; sorted."""
    found = client.ask("GET", f"/{prefix}-*-vectors-v*/_mapping", params={"allow_no_indices": "true"})
    ours = re.compile(rf"{re.escape(prefix)}-[a-z0-9_.]+-vectors-v\d+-[0-9a-f]{{8}}\b")
    current = f"-{_ending(identity)}"
    return sorted(
        index
        for index, each in found.items()
        if (name := ours.match(index))
        and not name.group().endswith(current)
        and each["mappings"].get("_meta", {}).get("store") == store_id
    )


def drop_former_vectors(
    client: ElasticsearchClient, *, prefix: str, store_id: str, identity: EncoderIdentity
) -> list[str]:
    """Drop ``former_vectors``; their names. Only when the present index's cursor has reached the store's revision."""
    dropped = former_vectors(client, prefix=prefix, store_id=store_id, identity=identity)
    for index in dropped:
        client.ask("DELETE", f"/{index}", params={"ignore_unavailable": "true"})
    return dropped


def vectors_alias(prefix: str, bank: str, identity: EncoderIdentity) -> str:
    """``{prefix}-{bank}-vectors-v1-{hash of the encoder's identity}``: what a bank's vectors are searched under."""
    return f"{bank_alias(prefix, bank)}-{_ending(identity)}"


def vector_document(change: Change) -> dict[str, Any] | None:
    """What Elasticsearch keeps of a change; None where the memory is not to be found by its vector."""
    if change.memory is None or not change.memory.indexed or change.vector is None or not change.vector.any():
        return None
    return {
        "vector": vector_json(change.vector),
        "partition": partition_key(change.partition),
        "id": change.id,
        "number": change.number,
        "revision": change.revision,
    }


def identity_hash(identity: EncoderIdentity) -> str:
    """Eight hexadecimal digits of everything that makes two encoders differ (cases 16, 134)."""
    return hashlib.sha256(json.dumps(asdict(identity), sort_keys=True).encode()).hexdigest()[:8]


def vector_json(vector: Vector) -> orjson.Fragment:
    """The numbers, ready for a body, in as few digits as give the same float32 again: 4.7 KB for 384, not 8."""
    return orjson.Fragment(
        orjson.dumps(np.ascontiguousarray(vector, dtype=np.float32), option=orjson.OPT_SERIALIZE_NUMPY)
    )


def _ending(identity: EncoderIdentity) -> str:
    return f"vectors-v{_VERSION}-{identity_hash(identity)}"


def _plan(bank: str, prefix: str, store_id: str, identity: EncoderIdentity) -> IndexPlan:
    body: dict[str, Any] = load_body("vectors", _VERSION)
    body["mappings"]["properties"]["vector"]["dims"] = identity.dimension
    body["mappings"]["_meta"].update(store=store_id, encoder=asdict(identity))
    alias = vectors_alias(prefix, bank, identity)
    return IndexPlan(alias=alias, stem=alias, body=body)
