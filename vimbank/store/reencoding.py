"""Which encoder a store belongs to, and the change to another one while the store is in use (cases 16, 134).

The new encoder's embeddings are filled in beside the old ones; then one transaction switches.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, delete, exists, func, select

from vimbank.domain.models import PARENT_KIND, Memory
from vimbank.errors import ConfigError, Conflict
from vimbank.ports import Embedded, EncoderIdentity
from vimbank.store.rows import MEMORY_COLUMNS, dump_identity, load_identity
from vimbank.store.sql_rows import SqlRows
from vimbank.store.tables import LIVE, embeddings, encoders, memories

__all__ = ["STALE", "claim", "missing", "number_of", "put", "switch"]

STALE = "the store was switched to another encoder meanwhile: restart this process with it"


def claim(rows: SqlRows, identity: EncoderIdentity) -> int:
    """The encoder's number in the store, which is bound to it where it holds no embedding yet."""
    current = rows.counters.encoder
    number = _number(rows, identity)
    if current != 0 and current == number:
        return current
    if rows.all(select(embeddings.c.number).limit(1)):
        stored = rows.all(select(encoders.c.identity).where(encoders.c.number == current))
        name = str(load_identity(stored[0][0])) if stored else "an encoder that was not named"
        raise ConfigError(
            f"the store holds embeddings by {name}, but {identity} is set: "
            "set the former again, or change over with `vimbank reindex`"
        )
    rows.counters.encoder = _add(rows, identity) if number is None else number
    return rows.counters.encoder


def missing(encoder: int) -> Select[Any]:
    """The memories that need an embedding by an encoder and have none, by number."""
    has_one = exists().where(embeddings.c.number == memories.c.number, embeddings.c.encoder == encoder)
    return select(*MEMORY_COLUMNS).where(LIVE, memories.c.kind != PARENT_KIND, ~has_one).order_by(memories.c.number)


def put(rows: SqlRows, identity: EncoderIdentity, embedded: Sequence[tuple[Memory, Embedded]]) -> int:
    """Keep embeddings of memories whose text is still what was embedded; how many."""
    encoder = _number(rows, identity)
    if encoder is None:
        encoder = _add(rows, identity)
    kept = 0
    for memory, embedding in embedded:
        # An update drops the embeddings of the old text; one that was made of it comes too late. The revision would be
        # too strict: recalls change it.
        standing = rows.by_id(memory.tenant, memory.id)
        if standing is None or (standing.number, standing.text, standing.title) != (
            memory.number,
            memory.text,
            memory.title,
        ):
            continue
        rows.all(
            delete(embeddings).where(embeddings.c.number == memory.number, embeddings.c.encoder == encoder), fetch=False
        )
        rows.put_embedding(memory.number, embedding, encoder)
        kept += 1
    return kept


def switch(rows: SqlRows, identity: EncoderIdentity) -> int:
    """Make ``identity`` the store's encoder and drop the embeddings of all others; its number.

    Raises: Conflict: some memory still lacks its embedding; nothing was changed.
    """
    number = _number(rows, identity)
    lacking = rows.all(select(func.count()).select_from(missing(-1 if number is None else number).subquery()))[0][0]
    if lacking:
        raise Conflict(f"{lacking} memories have no embedding by {identity} yet")
    if number is None:
        number = _add(rows, identity)
    if number != rows.counters.encoder:
        rows.all(delete(embeddings).where(embeddings.c.encoder != number), fetch=False)
        rows.counters.encoder = number
        rows.counters.generation += 1
    return number


def number_of(identity: EncoderIdentity) -> Select[Any]:
    """The query of an encoder's number."""
    return select(encoders.c.number).where(encoders.c.identity == dump_identity(identity))


def _number(rows: SqlRows, identity: EncoderIdentity) -> int | None:
    found = rows.all(number_of(identity))
    return int(found[0][0]) if found else None


def _add(rows: SqlRows, identity: EncoderIdentity) -> int:
    number = 1 + int(rows.all(select(func.coalesce(func.max(encoders.c.number), 0)))[0][0])
    rows.add_encoder(number, dump_identity(identity))
    return number
