"""The benches of a memory's life: folding recalls, a pass of forgetting, deletion, export; on SQLite and PostgreSQL.

What has a bar of memory runs in a process of its own, whose peak is set against what it holds before the work. Its own
memory counts: pages of the database's file that are mapped into it are the kernel's to take back.
"""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from vimbank.domain.models import MemoryDraft, RecallEntry, Scope, Signal
from vimbank.eval.measure import Plan, Row
from vimbank.eval.synthetic import Corpus
from vimbank.portability.erase import erase
from vimbank.portability.export import export
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.store.sql import SqlStore
from vimbank.wiring import open_service, store_url, utc_now
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_archive, open_eraser

__all__ = ["LIFE_BENCHES", "LIFE_ON_POSTGRES"]

_LINES: Final = 100_000
_RECALLED: Final = 20_000
_HOT: Final = 1_000
_DELETED: Final = 1_000
_EXPORTED: Final = 50_000
_BATCH: Final = 1_000
_OLD_DAYS: Final = 9_000.0  # whatever they tell: a hundred times 30 days is the longest
_YOUNG_DAYS: Final = 3.0
_OLD_SHARE: Final = 20  # one in so many goes
_MOST_FOLD_S: Final = 10.0
_MOST_FORGET_S: Final = 5.0
_MOST_WAIT_S: Final = 0.25
_MOST_DELETE_S: Final = 2.0
_MOST_MB: Final = 200.0
_LOOK_S: Final = 0.002


def fold(plan: Plan) -> Iterator[Row]:
    """100,000 lines of the access log, over many memories and over a few hot ones."""
    yield from _fold(plan, None)


def fold_on_postgres(plan: Plan) -> Iterator[Row]:
    """The same on PostgreSQL."""
    yield from _fold(plan, plan.postgres)


def _fold(plan: Plan, url: str | None) -> Iterator[Row]:
    settings, tenant = _settings(plan, "fold", url), _new_tenant()
    with open_service(settings) as service, closing(SqlStore.open(store_url(settings))) as log:
        ids = _fill(service, tenant, _RECALLED)
        rng, signals = np.random.default_rng(1), list(Signal)
        for distinct in (_RECALLED, _HOT):
            service.fold_recalls()
            now = service.clock()
            chosen = rng.integers(distinct, size=_LINES)
            lines = [
                RecallEntry(tenant, ids[which], now + timedelta(microseconds=place), signals[place % len(signals)])
                for place, which in enumerate(chosen.tolist())
            ]
            for start in range(0, len(lines), _BATCH):
                log.append(lines[start : start + _BATCH])
            longest = _Longest()
            started, cpu_s = time.perf_counter(), time.process_time()
            folded = service.fold_recalls(progress=longest)
            took_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_s
            yield Row(
                f"folding {folded:,} recalls of {distinct:,} memories, {_engine(url)}",
                took_s,
                "s",
                f"<= {_MOST_FOLD_S:g} s",
                took_s <= _MOST_FOLD_S and folded == _LINES,
                f"processor {cpu_s:.1f} s, longest transaction {longest.seconds:.2f} s",
            )


def trim(plan: Plan) -> Iterator[Row]:
    """100,000 folded lines of the access log are removed while another process writes."""
    yield from _trim(plan, None)


def trim_on_postgres(plan: Plan) -> Iterator[Row]:
    """The same on PostgreSQL."""
    yield from _trim(plan, plan.postgres)


def _trim(plan: Plan, url: str | None) -> Iterator[Row]:
    settings, tenant = _settings(plan, "trim", url), _new_tenant()
    with open_service(settings) as service, closing(SqlStore.open(store_url(settings))) as log:
        (name,) = _fill(service, tenant, 1)
        now = service.clock()
        for start in range(0, _LINES, _BATCH):
            noted = (now - timedelta(days=_OLD_DAYS) + timedelta(seconds=start + place) for place in range(_BATCH))
            log.append([RecallEntry(tenant, name, at) for at in noted])
        service.fold_recalls()
        with closing(open_jobs(settings, service)) as jobs, _Writing(settings, tenant, name) as writer:
            started = time.perf_counter()
            run = jobs.run(jobs.start("compact", {"keep_days": _YOUNG_DAYS}).id)
            took_s = time.perf_counter() - started
        label = f"removing {_LINES:,} folded recalls, {_engine(url)}"
        right = run.result is not None and run.result["recalls"] >= _LINES  # those of another bench may be there, too
        yield Row(label, took_s, "s", f"<= {_MOST_FOLD_S:g} s", right and took_s <= _MOST_FOLD_S)
        longest_ms, limit = 1e3 * writer.longest_s, 1e3 * _MOST_WAIT_S
        met = f"median {1e3 * writer.median_s:.1f} ms, of {writer.count} writes"
        yield Row(f"{label}: another process waits", longest_ms, "ms", f"<= {limit:g} ms", longest_ms <= limit, met)


class _Writing:
    """Another process that writes every few milliseconds inside the block, and then says how long it waited."""

    longest_s = median_s = 0.0
    count = 0

    def __init__(self, settings: Settings, tenant: str, name: str) -> None:
        self._settings, self._given = settings, {"tenant": tenant, "name": name}

    def __enter__(self) -> "_Writing":
        call = [sys.executable, "-m", __name__, "write"]
        self._process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(_order(self._settings, self._given) + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()  # it has begun
        return self

    def __exit__(self, *_: object) -> None:
        told, _error = self._process.communicate()  # its input ends, and so does it
        waits = sorted(json.loads(told)["waits"])
        self.longest_s, self.median_s, self.count = waits[-1], waits[len(waits) // 2], len(waits)


class _Longest:
    """The longest time between two batches."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last = time.perf_counter()

    def __call__(self, _done: int) -> None:
        now = time.perf_counter()
        self.seconds, self._last = max(self.seconds, now - self._last), now


def forget(plan: Plan) -> Iterator[Row]:
    """A pass of forgetting over one partition that holds everything: what it takes, and what it holds meanwhile."""
    yield from _forget(plan, None)


def forget_on_postgres(plan: Plan) -> Iterator[Row]:
    """The same on PostgreSQL."""
    yield from _forget(plan, plan.postgres)


def _forget(plan: Plan, url: str | None) -> Iterator[Row]:
    settings, tenant = _settings(plan, "forget", url), _new_tenant()
    with open_service(settings) as service:
        _fill(service, tenant, plan.size, created_days=_mostly_young)
    for dry_run in (True, False):
        measured = _apart("forget", settings, tenant=tenant, dry_run=dry_run)
        what = "dry run" if dry_run else f"{measured['moved']:,} archived"
        label = f"forgetting, {measured['memories']:,} memories, {what}, {_engine(url)}"
        took_s, held = measured["took_s"], measured["held_mb"]
        right = measured["memories"] == plan.size and measured["due"] == plan.size // _OLD_SHARE
        yield Row(label, took_s, "s", f"<= {_MOST_FORGET_S:g} s", right and took_s <= _MOST_FORGET_S)
        yield Row(f"{label}: above the idle process", held, "MB", f"<= {_MOST_MB:g} MB", held <= _MOST_MB)


def _mostly_young(number: int) -> float:
    return _OLD_DAYS if number % _OLD_SHARE == 0 else _YOUNG_DAYS


def delete_user(plan: Plan) -> Iterator[Row]:
    """A user with 1,000 memories: deleted, and erased."""
    yield from _delete_user(plan, None)


def delete_user_on_postgres(plan: Plan) -> Iterator[Row]:
    """The same on PostgreSQL."""
    yield from _delete_user(plan, plan.postgres)


def _delete_user(plan: Plan, url: str | None) -> Iterator[Row]:
    settings, tenant = _settings(plan, "delete", url), _new_tenant()
    with open_service(settings) as service:
        _fill(service, tenant, 10 * _DELETED, users=10)
        users = [Scope(tenant, f"user-{number:04d}") for number in range(2)]
        for what, work in (
            ("deleting", lambda: service.delete_all(users[0])),
            ("erasing", lambda: erase(service, open_eraser(service), users[1], actor="bench")),
        ):
            started = time.perf_counter()
            work()
            took_s = time.perf_counter() - started
            left = service.store.counts(tenant).memories
            label = f"{what} a user with {_DELETED:,} memories, {_engine(url)}"
            expected = (9 if what == "deleting" else 8) * _DELETED
            yield Row(label, took_s, "s", f"<= {_MOST_DELETE_S:g} s", took_s <= _MOST_DELETE_S and left == expected)


def export_user(plan: Plan) -> Iterator[Row]:
    """An export of 50,000 memories, streamed: what the process holds above what it holds at rest."""
    yield from _export(plan, None)


def export_on_postgres(plan: Plan) -> Iterator[Row]:
    """The same on PostgreSQL."""
    yield from _export(plan, plan.postgres)


def _export(plan: Plan, url: str | None) -> Iterator[Row]:
    settings, tenant = _settings(plan, "export", url), _new_tenant()
    with open_service(settings) as service:
        _fill(service, tenant, _EXPORTED)
    measured = _apart("export", settings, tenant=tenant)
    held, lines = measured["held_mb"], measured["lines"]
    yield Row(
        f"export of {_EXPORTED:,} memories, {_engine(url)}: above the idle process",
        held,
        "MB",
        f"<= {_MOST_MB:g} MB",
        held <= _MOST_MB and lines == _EXPORTED + 2,
        f"{measured['bytes'] / 1e6:,.0f} MB written in {measured['took_s']:.1f} s",
    )


# -- in a process of its own -----------------------------------------------------------------------------------


def _apart(work: str, settings: Settings, **given: Any) -> Mapping[str, Any]:
    call = [sys.executable, "-m", __name__, work]
    order = _order(settings, given)
    done = subprocess.run(call, input=order, capture_output=True, text=True, check=True)  # a URL may hold a password
    measured: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _order(settings: Settings, given: Mapping[str, Any]) -> str:
    return json.dumps({"settings": settings.model_dump(mode="json", exclude_unset=True), "given": given})


def _write(settings: Settings, given: Mapping[str, Any]) -> None:
    """Write until the input ends; then tell how long each write took, seconds."""
    over, waits = threading.Event(), list[float]()

    def listen() -> None:
        sys.stdin.read()
        over.set()

    with closing(SqlStore.open(store_url(settings))) as log:
        threading.Thread(target=listen, daemon=True).start()
        while not over.wait(_LOOK_S):
            started = time.perf_counter()
            log.append([RecallEntry(given["tenant"], given["name"], utc_now())])
            waits.append(time.perf_counter() - started)
            if len(waits) == 1:
                sys.stdout.write("begun\n")
                sys.stdout.flush()
    sys.stdout.write(json.dumps({"waits": waits}))


def _run_forget(service: MemoryService, settings: Settings, given: Mapping[str, Any]) -> Mapping[str, Any]:
    with closing(open_jobs(settings, service)) as jobs:
        run = jobs.run(jobs.start("forget", given).id)
    if run.result is None:
        raise RuntimeError(f"forget ended as {run.state}: {run.note}")
    return {name: run.result[name] for name in ("memories", "due", "moved")}


def _run_export(service: MemoryService, _settings: Settings, given: Mapping[str, Any]) -> Mapping[str, Any]:
    written, lines = 0, 0
    for piece in export(service, open_archive(service), tenant=given["tenant"], user_id=None):
        written += len(piece)
        lines += piece.count(b"\n")
    return {"bytes": written, "lines": lines}


_WORK: Final[Mapping[str, Callable[[MemoryService, Settings, Mapping[str, Any]], Mapping[str, Any]]]] = {
    "forget": _run_forget,
    "export": _run_export,
}


def main(arguments: Sequence[str]) -> None:
    """Do one work and print what it took: settings and parameters come by the standard input, as JSON."""
    (work,) = arguments
    order = json.loads(sys.stdin.readline())
    settings = Settings.model_validate(order["settings"])
    if work == "write":
        _write(settings, order["given"])
        return
    with open_service(settings) as service:
        service.store.state()
        with _Peak() as peak:
            started = time.perf_counter()
            result = _WORK[work](service, settings, order["given"])
            took_s = time.perf_counter() - started
        sys.stdout.write(json.dumps({**result, "took_s": took_s, "held_mb": peak.held_mb}))


class _Peak:
    """The most anonymous memory that the process held inside the block, above what it held at its start."""

    def __init__(self) -> None:
        self._idle_mb = self._most_mb = _anonymous_mb()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def held_mb(self) -> float:
        return self._most_mb - self._idle_mb

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            self._most_mb = max(self._most_mb, _anonymous_mb())


def _anonymous_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return float(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no RssAnon")


# -- shared ----------------------------------------------------------------------------------------------------


def _settings(plan: Plan, name: str, url: str | None) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": plan.folder / f"life-{name}-{_engine(url)}",
            "encoder": {"kind": "hashing"},
            "store": {"url": url},
        }
    )


def _engine(url: str | None) -> str:
    return "SQLite" if url is None else "PostgreSQL"


def _new_tenant() -> str:
    return f"bench-{uuid.uuid4().hex[:12]}"


def _fill(
    service: MemoryService,
    tenant: str,
    size: int,
    *,
    users: int = 1,
    created_days: Callable[[int], float] = lambda _number: _YOUNG_DAYS,
) -> list[str]:
    """New memories in the dialog bank, so many days old; their ids, in order."""
    now = utc_now()

    def drafts() -> Iterator[MemoryDraft]:
        for number, draft in enumerate(Corpus(size, users=users).drafts()):
            yield replace(draft, tenant=tenant, created_at=now - timedelta(days=created_days(number)))

    waiting, ids = drafts(), list[str]()
    while batch := list(islice(waiting, _BATCH)):
        for result in service.add_many(batch):
            if isinstance(result, Exception):
                raise result
            ids.append(result.id)
    return ids


LIFE_BENCHES: Final[dict[str, Callable[[Plan], Iterator[Row]]]] = {
    "fold": fold,
    "trim": trim,
    "forget": forget,
    "delete-user": delete_user,
    "export": export_user,
}
LIFE_ON_POSTGRES: Final[dict[str, Callable[[Plan], Iterator[Row]]]] = {
    "postgres-fold": fold_on_postgres,
    "postgres-trim": trim_on_postgres,
    "postgres-forget": forget_on_postgres,
    "postgres-delete-user": delete_user_on_postgres,
    "postgres-export": export_on_postgres,
}

if __name__ == "__main__":
    main(sys.argv[1:])
