"""Jobs and leases in the tables beside the memories, for every process that opens the store."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import Dialect, and_, bindparam, delete, func, insert, or_, select, true, update

from vimbank.domain.jobs import Job, JobState, Progress, QueueName
from vimbank.domain.times import from_micros, to_micros
from vimbank.errors import NotFound
from vimbank.store import job_changes
from vimbank.store.connections import Connections
from vimbank.store.group_commit import GroupCommit
from vimbank.store.sql_rows import SqlRows
from vimbank.store.statements import Statement
from vimbank.store.tables import jobs, leases

__all__ = ["SqlJobStore"]

_COLUMNS: Final = tuple(column for column in jobs.c if column.name not in ("number", "sent_at"))
_UNFINISHED: Final = (JobState.QUEUED.value, JobState.RUNNING.value)


class _Statements:
    """What runs for every job, compiled once."""

    def __init__(self, dialect: Dialect) -> None:
        def compiled(clause: Any) -> Statement:
            return Statement(clause, dialect)

        def given(name: str) -> Any:
            return bindparam(name, required=True)

        this = jobs.c.id == given("at_id")
        self.read = compiled(select(*_COLUMNS).where(this))
        self.read_to_write = compiled(select(*_COLUMNS).where(this).with_for_update())
        self.by_key = compiled(select(*_COLUMNS).where(jobs.c.key == given("key")))
        self.last = compiled(select(func.max(jobs.c.number)))
        self.insert = compiled(insert(jobs).inline().values({c: given(c.name) for c in jobs.c}))
        self.rewrite = compiled(
            update(jobs).values({c: given(f"new_{c.name}") for c in _COLUMNS if c.name != "id"}).where(this)
        )
        # What a crash of the server takes back of these is done once more, as jobs may be. They need not wait for its
        # disk: a condition, so that it costs no round trip.
        soon = func.set_config("synchronous_commit", "off", true()).is_not(None)
        this_soon = and_(this, soon) if dialect.name == "postgresql" else this
        running = jobs.c.state == JobState.RUNNING.value
        run_out = or_(  # as job_changes.run_out
            jobs.c.lease_until.is_(None),
            jobs.c.lease_until <= given("now"),
            jobs.c.lease_until > given("latest_end"),
        )
        self.claim = compiled(
            update(jobs)
            .values(
                state=JobState.RUNNING.value,
                owner=given("new_owner"),
                lease_until=given("new_lease_until"),
                attempts=jobs.c.attempts + 1,
                started_at=func.coalesce(jobs.c.started_at, given("new_started_at")),
            )
            .where(this_soon, or_(jobs.c.state == JobState.QUEUED.value, and_(running, run_out)))
            .returning(*_COLUMNS)
        )
        mine = and_(this_soon, running, jobs.c.owner == given("of_owner"))
        self.beat = compiled(
            update(jobs)
            .values({jobs.c[name]: given(f"new_{name}") for name in ("lease_until", "done", "total", "message")})
            .where(mine)
            .returning(*_COLUMNS)
        )
        self.finish = compiled(
            update(jobs)
            .values(
                {jobs.c[name]: given(f"new_{name}") for name in ("state", "result", "error", "finished_at")},
            )
            .values(lease_until=None)
            .where(mine)
            .returning(*_COLUMNS)
        )
        self.send = compiled(update(jobs).values(sent_at=given("new_sent_at")).where(this))
        self.waiting = compiled(
            select(*_COLUMNS, jobs.c.sent_at).where(jobs.c.state.in_(_UNFINISHED)).order_by(jobs.c.number)
        )
        named = leases.c.name == given("at_name")
        self.lease = compiled(select(leases.c.owner, leases.c.until).where(named))
        self.take_lease = compiled(insert(leases).inline().values({c: given(c.name) for c in leases.c}))
        self.renew_lease = compiled(
            update(leases).values(owner=given("new_owner"), until=given("new_until")).where(named)
        )
        self.drop_lease = compiled(delete(leases).where(named, leases.c.owner == given("of_owner")))


class SqlJobStore:
    """``JobStore`` on the connections of a ``SqlStore``, whose writing transactions it shares. Thread-safe."""

    def __init__(self, commits: GroupCommit[SqlRows], connections: Connections, dialect: Dialect) -> None:
        """``SqlStore.jobs`` is the usual way."""
        self._commits = commits
        self._connections = connections
        self._statements = _Statements(dialect)
        self._in_file = dialect.name == "sqlite"

    def create(
        self, name: str, params: Mapping[str, Any], *, queue: QueueName, key: str | None, now: datetime
    ) -> tuple[Job, bool]:
        """See ``JobStore.create``."""
        job = Job(
            id=uuid.uuid4().hex,
            name=name,
            params=orjson.loads(orjson.dumps(dict(params))),
            queue=queue,
            state=JobState.QUEUED,
            created_at=now,
            key=key,
        )

        def write(rows: SqlRows) -> tuple[Job, bool]:
            known = None if key is None else rows.run(self._statements.by_key, key=key).fetchone()
            if known is not None:
                return job_changes.refuse_other(_job(known), name=name, params=job.params), False
            number = (rows.run(self._statements.last).fetchone()[0] or 0) + 1
            rows.run(self._statements.insert, number=number, sent_at=to_micros(now), **_row(job))
            return job, True

        return self._commits.run(write)

    def get(self, job_id: str) -> Job:
        """See ``JobStore.get``."""
        read = self._statements.read
        return self._connections.read(lambda cursor: _found(read.run(cursor, at_id=job_id), job_id))

    def list(self, *, name: str | None = None, state: JobState | None = None, limit: int = 100) -> Sequence[Job]:
        """See ``JobStore.list``."""
        query = select(*_COLUMNS).order_by(jobs.c.number.desc()).limit(limit)
        if name is not None:
            query = query.where(jobs.c.name == name)
        if state is not None:
            query = query.where(jobs.c.state == state.value)
        with self._connections.snapshot() as connection:
            return [_job(row) for row in connection.execute(query)]

    def claim(self, job_id: str, owner: str, *, lease_s: float, now: datetime) -> Job | None:
        """See ``JobStore.claim``."""
        job = self._at_once(
            self._statements.claim,
            at_id=job_id,
            new_owner=owner,
            new_lease_until=to_micros(job_changes.lease_from(now, lease_s)),
            new_started_at=to_micros(now),
            now=to_micros(now),
            latest_end=to_micros(job_changes.latest_end(now, lease_s)),
        )
        if job is None:
            self.get(job_id)  # raises NotFound
        return job

    def beat(self, job_id: str, owner: str, progress: Progress, *, lease_s: float, now: datetime) -> bool:
        """See ``JobStore.beat``."""
        job = self._at_once(
            self._statements.beat,
            at_id=job_id,
            of_owner=owner,
            new_lease_until=to_micros(job_changes.lease_from(now, lease_s)),
            new_done=progress.done,
            new_total=progress.total,
            new_message=progress.message,
        )
        if job is None:
            job = job_changes.beaten(self.get(job_id), owner, progress, lease_s=lease_s, now=now)  # raises why not
        return not job.cancel_requested

    def finish(
        self,
        job_id: str,
        owner: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: str | None = None,
        now: datetime,
    ) -> Job:
        """See ``JobStore.finish``."""
        job = self._at_once(
            self._statements.finish,
            at_id=job_id,
            of_owner=owner,
            new_state=state.value,
            new_result=None if result is None else _json(result),
            new_error=error,
            new_finished_at=to_micros(now),
        )
        if job is not None:
            return job
        return job_changes.finished(self.get(job_id), owner, state, result=result, error=error, now=now)

    def release(self, job_id: str, owner: str, *, now: datetime) -> None:
        """See ``JobStore.release``."""

        def write(rows: SqlRows) -> None:
            self._rewrite(rows, job_changes.released(self._read(rows, job_id), owner, now=now))
            rows.run(self._statements.send, at_id=job_id, new_sent_at=to_micros(now))

        self._commits.run(write)

    def cancel(self, job_id: str, *, now: datetime) -> Job:
        """See ``JobStore.cancel``."""
        job = self._change(job_id, lambda job: job_changes.cancelled(job, now=now))
        assert job is not None
        return job

    def stale(self, *, sent_before: datetime, lease_s: float, now: datetime) -> Sequence[Job]:
        """See ``JobStore.stale``."""
        earliest, latest = to_micros(sent_before), to_micros(now)
        patient = latest - round(lease_s * 1e6) + 1
        rows = self._connections.read(lambda cursor: self._statements.waiting.run(cursor).fetchall())
        found = ((_job(row), row[-1]) for row in rows)
        return [
            job
            for job, sent_at in found
            if job_changes.waits(job, lease_s=lease_s, now=now)
            and not (patient if job.state is JobState.RUNNING else earliest) <= sent_at <= latest
        ]

    def note_sent(self, job_id: str, *, now: datetime) -> None:
        """See ``JobStore.note_sent``."""

        def write(rows: SqlRows) -> None:
            rows.run(self._statements.send, at_id=self._read(rows, job_id).id, new_sent_at=to_micros(now))

        self._commits.run(write)

    def forget(self, *, finished_before: datetime) -> int:
        """See ``JobStore.forget``."""
        old = jobs.c.finished_at < to_micros(finished_before)

        def write(rows: SqlRows) -> int:
            count = int(rows.all(select(func.count()).select_from(jobs).where(old))[0][0])
            if count:
                rows.all(delete(jobs).where(old), fetch=False)
            return count

        return self._commits.run(write)

    def hold(self, name: str, owner: str, *, lease_s: float, now: datetime) -> bool:
        """See ``JobStore.hold``."""
        until = to_micros(job_changes.lease_from(now, lease_s))

        def write(rows: SqlRows) -> bool:
            held = rows.run(self._statements.lease, at_name=name).fetchone()
            if held is None:
                rows.run(self._statements.take_lease, name=name, owner=owner, until=until)
                return True
            if held[0] != owner and not job_changes.run_out(from_micros(held[1]), lease_s=lease_s, now=now):
                return False
            rows.run(self._statements.renew_lease, at_name=name, new_owner=owner, new_until=until)
            return True

        return self._commits.run(write)

    def let_go(self, name: str, owner: str) -> None:
        """See ``JobStore.let_go``."""

        def write(rows: SqlRows) -> None:
            rows.run(self._statements.drop_lease, at_name=name, of_owner=owner)

        self._commits.run(write)

    # -- inside --

    def _at_once(self, statement: Statement, **values: Any) -> Job | None:
        """A change of one row by one statement, which decides as it writes; None where its condition does not hold.

        These run for every job. On a server each is a transaction by itself, one round trip, and holds up no writer
        of memories; in a file it shares the next transaction. Whether it is run once or twice makes no difference.
        """

        if self._in_file:
            return self._commits.run(lambda rows: _first(rows.run(statement, **values)))
        return self._connections.read(lambda cursor: _first(statement.run(cursor, **values)))

    def _change(self, job_id: str, decide: Callable[[Job], Job | None]) -> Job | None:
        """Read, decide and write in one transaction; what raises has written nothing."""

        def write(rows: SqlRows) -> Job | None:
            before = self._read(rows, job_id)
            after = decide(before)
            if after is not None and after != before:
                self._rewrite(rows, after)
            return after

        return self._commits.run(write)

    def _read(self, rows: SqlRows, job_id: str) -> Job:
        return _found(rows.run(self._statements.read_to_write, at_id=job_id), job_id)

    def _rewrite(self, rows: SqlRows, job: Job) -> None:
        values = {f"new_{name}": value for name, value in _row(job).items() if name != "id"}
        rows.run(self._statements.rewrite, at_id=job.id, **values)


def _first(cursor: Any) -> Job | None:
    rows = cursor.fetchall()
    return _job(rows[0]) if rows else None


def _found(cursor: Any, job_id: str) -> Job:
    row = cursor.fetchone()
    if row is None:
        raise NotFound(f"no job with the id {job_id!r}")
    return _job(row)


def _row(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "params": _json(job.params),
        "queue": job.queue,
        "state": job.state.value,
        "created_at": to_micros(job.created_at),
        "key": job.key,
        "done": job.progress.done,
        "total": job.progress.total,
        "message": job.progress.message,
        "attempts": job.attempts,
        "owner": job.owner,
        "lease_until": _micros(job.lease_until),
        "cancel_requested": job.cancel_requested,
        "started_at": _micros(job.started_at),
        "finished_at": _micros(job.finished_at),
        "result": None if job.result is None else _json(job.result),
        "error": job.error,
    }


def _job(row: Sequence[Any]) -> Job:
    given = dict(zip((column.name for column in _COLUMNS), row, strict=False))
    return Job(
        id=given["id"],
        name=given["name"],
        params=orjson.loads(given["params"]),
        queue=given["queue"],
        state=JobState(given["state"]),
        created_at=from_micros(given["created_at"]),
        key=given["key"],
        progress=Progress(given["done"], given["total"], given["message"]),
        attempts=given["attempts"],
        owner=given["owner"],
        lease_until=_time(given["lease_until"]),
        cancel_requested=bool(given["cancel_requested"]),
        started_at=_time(given["started_at"]),
        finished_at=_time(given["finished_at"]),
        result=None if given["result"] is None else orjson.loads(given["result"]),
        error=given["error"],
    )


def _json(value: Mapping[str, Any]) -> str:
    return orjson.dumps(dict(value)).decode()


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
