"""Core statements compiled once a dialect and run on the driver's own cursor.

SQLAlchemy compiles and caches, but each execution through it costs about ten times the query itself when the query is
one row by its key. These run for every add and every search.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from sqlalchemy import (
    ClauseElement,
    Dialect,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.sql import Select
from sqlalchemy.sql.compiler import SQLCompiler

from vimbank.store.changes import STATE_FIELDS
from vimbank.store.lives import LIFE_COLUMNS, life_states
from vimbank.store.rows import MEMORY_COLUMNS, STANDING_COLUMNS
from vimbank.store.tables import LIVE, claims, counter, embeddings, encoders, history, memories, recalls

__all__ = ["Statement", "Statements"]

ACTIVE: Final = text("state = 'active'")  # literally, as the partial index says it
_RECALLED: Final = tuple(memories.c[name] for name in ("number", "id", "bank", "created_at", *STANDING_COLUMNS))
INDEXED: Final = text("state = 'active' AND kind <> 'document'")  # Memory.indexed


class Statement:
    """One compiled statement; parameters by name."""

    __slots__ = ("_fixed", "_names", "sql")

    def __init__(self, clause: ClauseElement, dialect: Dialect) -> None:
        compiled = cast(SQLCompiler, clause.compile(dialect=dialect, compile_kwargs={"render_postcompile": True}))
        self.sql = str(compiled)
        self._names: list[str] | None = compiled.positiontup
        given = {name for name, bind in compiled.binds.items() if bind.required}
        self._fixed = {name: value for name, value in compiled.params.items() if name not in given}

    def bind(self, values: Mapping[str, Any]) -> Any:
        """The parameters as the driver takes them."""
        given = {**self._fixed, **values} if self._fixed else values
        return given if self._names is None else [given[name] for name in self._names]

    def run(self, cursor: Any, **values: Any) -> Any:
        """Execute on a driver's cursor; the cursor."""
        cursor.execute(self.sql, self.bind(values))
        return cursor

    def run_many(self, cursor: Any, rows: Iterable[Mapping[str, Any]]) -> None:
        """Execute once a row."""
        cursor.executemany(self.sql, [self.bind(row) for row in rows])


def _memory(*conditions: Any) -> Select[Any]:
    return select(*MEMORY_COLUMNS).where(*conditions)


def _given(name: str) -> Any:
    return bindparam(name, required=True)


def _rivals(*names: str) -> Select[Any]:
    """Those before a memory or together with it, and those after it (``changes.Rows.rivals``).

    The claimants are looked up once, as what is sorted by alone: an engine carries along what it selects.
    """
    claimed = (claims.c[name] == _given(name) for name in ("tenant", "user_id", "bank", *names))
    said = func.coalesce(memories.c.valid_from, memories.c.event_at, memories.c.created_at)
    ended = (memories.c.state == "superseded") & (memories.c.valid_to <= _given("said_at"))
    others = (
        select(memories.c.number, said.label("said"), case((ended, 1), else_=0).label("ended"))
        .where(
            memories.c.number.in_(select(claims.c.number).where(*claimed)),
            memories.c.number != _given("own_number"),
            memories.c.agent_id.is_not_distinct_from(_given("agent_id")),
            or_(*(memories.c.state == state for state in ("active", "archived", "superseded"))),
        )
        .cte("others")
    )
    column, instant = others.c, _given("said_at")
    before = select(column.number).where(column.said <= instant)
    after = select(column.number).where(column.said > instant)
    nearest = [
        before.order_by(column.ended, column.said.desc(), column.number.desc()).limit(_given("limit")),
        after.order_by(column.said, column.number).limit(_given("limit")),
    ]
    wanted = union_all(*(select(each.subquery().c.number) for each in nearest))
    return _memory(memories.c.number.in_(wanted)).order_by(memories.c.number)


class Statements:
    """All statements that run often, for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        def compiled(clause: ClauseElement) -> Statement:
            return Statement(clause, dialect)

        self._dialect = dialect
        self._sized: dict[tuple[str, int], Statement] = {}
        of_tenant = memories.c.tenant == _given("tenant")
        in_partition = (
            of_tenant,
            memories.c.user_id == _given("user_id"),
            memories.c.bank == _given("bank"),
        )
        numbered = memories.c.number == _given("at_number")
        self.read_counter = compiled(select(counter).with_for_update())
        self.state = compiled(select(counter.c.revision, counter.c.generation, counter.c.compacted))
        self.encoder = compiled(select(counter.c.encoder))
        self.write_counter = compiled(
            update(counter).values(
                {column: _given(f"new_{column.name}") for column in counter.c if column.name != "one"}
            )
        )
        self.by_id = compiled(_memory(of_tenant, memories.c.id == _given("id"), LIVE))
        self.by_key = compiled(_memory(of_tenant, memories.c.idempotency_key == _given("key")))
        self.by_event = compiled(_memory(of_tenant, memories.c.event_id == _given("event_id")))
        # By the hash alone: with the partition beside it the planner would rather walk the partition.
        self.twins = compiled(_memory(memories.c.content_hash == _given("content_hash"), ACTIVE))
        self.insert_memory = compiled(insert(memories).values({c: _given(c.name) for c in memories.c}))
        rewritten = [column for column in MEMORY_COLUMNS if column.name != "number"]
        self.rewrite_memory = compiled(
            update(memories).values({c: _given(f"new_{c.name}") for c in rewritten}).where(numbered)
        )
        self.drop_key = compiled(update(memories).values(idempotency_key=None).where(numbered))
        self.touch_memory = compiled(
            update(memories)
            .values({memories.c[name]: _given(f"new_{name}") for name in (*STANDING_COLUMNS, "revision")})
            .where(numbered)
        )
        self.move_memory = compiled(
            update(memories).values({memories.c[name]: _given(f"new_{name}") for name in STATE_FIELDS}).where(numbered)
        )
        self.insert_embedding = compiled(insert(embeddings).values({c: _given(c.name) for c in embeddings.c}))
        self.delete_embeddings = compiled(delete(embeddings).where(embeddings.c.number == _given("number")))
        self.insert_claim = compiled(insert(claims).values({c: _given(c.name) for c in claims.c}))
        self.delete_claims = compiled(delete(claims).where(claims.c.number == _given("number")))
        self.rivals = compiled(_rivals("subject", "attribute"))
        self.rivals_of_any = compiled(_rivals("subject"))
        self.insert_record = compiled(insert(history).values({c: _given(c.name) for c in history.c}))
        self.history_of = compiled(
            select(history)
            .where(history.c.tenant == _given("tenant"), history.c.memory_id == _given("memory_id"))
            .order_by(history.c.revision)
        )
        self.insert_recall = compiled(insert(recalls).values({c: _given(c.name) for c in recalls.c}))
        self.read_recalls = compiled(
            select(recalls).where(recalls.c.number > _given("after")).order_by(recalls.c.number).limit(_given("limit"))
        )
        folded = select(counter.c.folded).scalar_subquery()
        spent = and_(recalls.c.number > _given("after"), recalls.c.at < _given("before"))
        oldest = (
            select(recalls.c.number)
            .where(spent, recalls.c.number <= folded)
            .order_by(recalls.c.number)
            .limit(_given("limit"))
        ).subquery()
        self.last_spent = compiled(select(func.max(oldest.c.number)))
        self.trim_recalls = compiled(
            delete(recalls).where(spent, recalls.c.number <= _given("last")).returning(recalls.c.number)
        )
        standing = memories.c.tenant == recalls.c.tenant, memories.c.id == recalls.c.memory_id, LIVE
        self.delete_lost_recalls = compiled(
            delete(recalls).where(
                recalls.c.number >= _given("first"),
                recalls.c.number <= _given("last"),
                ~exists().where(*standing),
            )
        )
        self.insert_encoder = compiled(insert(encoders).values({c: _given(c.name) for c in encoders.c}))
        mine = (embeddings.c.number == memories.c.number) & (embeddings.c.encoder == _given("encoder"))
        with_vector = select(*MEMORY_COLUMNS, embeddings.c.vector).select_from(memories.outerjoin(embeddings, mine))
        newer = (
            with_vector.where(memories.c.revision > _given("after"))
            .order_by(memories.c.revision)
            .limit(_given("limit"))
        )
        self.changes = compiled(newer)
        self.partition_changes = compiled(newer.where(*in_partition))
        self.live = compiled(with_vector.where(*in_partition, INDEXED).order_by(memories.c.number))
        self.standing = compiled(with_vector.where(*in_partition, LIVE).order_by(memories.c.number))
        self.lives = {
            superseded: compiled(
                select(*(memories.c[name] for name in LIFE_COLUMNS))
                .where(*in_partition, or_(*(memories.c.state == state for state in life_states(superseded=superseded))))
                .order_by(memories.c.number)
            )
            for superseded in (False, True)
        }
        self.session_tail = compiled(
            select(memories.c.id, memories.c.position, memories.c.text, embeddings.c.vector)
            .select_from(memories.outerjoin(embeddings, mine))
            .where(
                *in_partition,
                memories.c.session_id == _given("session_id"),
                memories.c.position < _given("before"),
                memories.c.parent_id.is_(None),
                LIVE,
            )
            .order_by(memories.c.position.desc())
            .limit(_given("limit"))
        )
        self.last_position = compiled(
            select(func.max(memories.c.position)).where(
                *in_partition, memories.c.session_id == _given("session_id"), memories.c.parent_id.is_(None)
            )
        )

    def of(self, clause: ClauseElement) -> Statement:
        """A statement for one use."""
        return Statement(clause, self._dialect)

    def by_ids(self, count: int) -> tuple[Statement, int]:
        """A statement for ``count`` ids of a tenant, and how many it takes (``id_0`` …): the next power of two."""
        return self._of_size("by_ids", count, lambda ids: _of_tenant(MEMORY_COLUMNS, ids))

    def recalled(self, count: int) -> tuple[Statement, int]:
        """As ``by_ids``, of what folding recalls reads: number, id, bank, creation and STANDING_COLUMNS."""
        return self._of_size("recalled", count, lambda ids: _of_tenant(_RECALLED, ids))

    def parts(self, count: int) -> tuple[Statement, int]:
        """The same for ``count`` ids of parents in a partition."""
        place = (memories.c[name] == _given(name) for name in ("tenant", "user_id", "bank"))
        return self._of_size("parts", count, lambda ids: _memory(*place, memories.c.parent_id.in_(ids), LIVE))

    def vectors(self, count: int) -> tuple[Statement, int]:
        """The same for ``count`` numbers of memories: number and vector."""
        columns, mine = (embeddings.c.number, embeddings.c.vector), embeddings.c.encoder == _given("encoder")
        return self._of_size("vectors", count, lambda ids: select(*columns).where(embeddings.c.number.in_(ids), mine))

    def _of_size(self, name: str, count: int, make: Callable[[Sequence[Any]], ClauseElement]) -> tuple[Statement, int]:
        size = 1 << max(0, count - 1).bit_length()
        statement = self._sized.get((name, size))
        if statement is None:
            clause = make([_given(f"id_{place}") for place in range(size)])
            statement = self._sized[name, size] = Statement(clause, self._dialect)
        return statement, size


def _of_tenant(columns: Sequence[Any], ids: Sequence[Any]) -> Select[Any]:
    return select(*columns).where(memories.c.tenant == _given("tenant"), memories.c.id.in_(ids), LIVE)
