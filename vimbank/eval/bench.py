"""The bench: each operation that has a bar, measured in one run on one machine, as table, JSON and plot.

Vectors are given, so that the encoder is out of the figure, except where the row says otherwise.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from vimbank.domain.filters import Condition
from vimbank.domain.models import MemoryDraft, Query
from vimbank.encoders.onnx import OnnxEncoder
from vimbank.eval.bench_life import LIFE_BENCHES
from vimbank.eval.bench_stack import NEEDS, STACK_BENCHES
from vimbank.eval.crash import crash_rounds
from vimbank.eval.machine import describe_machine
from vimbank.eval.measure import Plan, Row, percentiles
from vimbank.eval.servers import running_server
from vimbank.eval.synthetic import Corpus
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service

__all__ = ["BENCHES", "run_benches"]

_WARM: Final = 50
_SHARES: Final = {"permille": "0.1 %", "percent": "1 %", "tenth": "10 %", "all": "100 %"}


def run_benches(names: Sequence[str], plan: Plan) -> dict[str, Any]:
    """Run the named benches in order; the result names machine, versions, commit and sizes."""
    rows: list[Row] = []
    for name in names:
        plan.say(f"{name} ...")
        for row in _ALL[name](plan):
            rows.append(row)
            plan.say(f"  {_line(row)}")
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "plan": {key: value for key, value in asdict(plan).items() if key in _SIZES},
        "rows": [asdict(row) for row in rows],
    }


# -- search ----------------------------------------------------------------------------------------------------


def search_one_of_many(plan: Plan) -> Iterator[Row]:
    """Hybrid search of one user of 100."""
    yield from _search(plan, Corpus(plan.size, users=100), "one user of 100", aim_ms=2.0)


def search_one_partition(plan: Plan) -> Iterator[Row]:
    """Hybrid search of one partition that holds everything."""
    yield from _search(plan, Corpus(plan.size, users=1), "one partition", aim_ms=5.0)


def _search(plan: Plan, corpus: Corpus, name: str, *, aim_ms: float) -> Iterator[Row]:
    with _filled(plan, corpus) as service:
        times = _timed(service, corpus.queries(plan.searches + _WARM))
        p50, p95 = percentiles(times)
        label = f"hybrid search, {name}, {plan.size:,} memories"
        yield Row(label, p50, "ms p50", f"<= {aim_ms:g} ms", p50 <= aim_ms, f"p95 {p95:.2f} ms")
        service.fold_recalls()  # so that the reference ranks by the same recalls
        found = {
            key: _answers(service, corpus.queries(40, filter=Condition(f"metadata.{key}", "eq", True)))
            for key in _SHARES
        }
    with _open(plan, corpus, dense="exact") as reference:
        for key, share in _SHARES.items():
            queries = corpus.queries(40, filter=Condition(f"metadata.{key}", "eq", True))
            recall = _recall(found[key], _answers(reference, queries))
            yield Row(f"recall@10 against exact, {name}, filter passes {share}", recall, "", "= 1.0", recall == 1.0)


def _timed(service: MemoryService, queries: Sequence[Query]) -> list[float]:
    """Milliseconds of each search, warm: every partition is loaded first, the first searches are not counted."""
    for query in {query.user_id: query for query in queries}.values():
        service.search(query)
    times = []
    for query in queries:
        started = time.perf_counter()
        found = service.search(query)
        times.append((time.perf_counter() - started) * 1e3)
        assert len(found.results) == query.top_k
    return times[_WARM:]


def _answers(service: MemoryService, queries: Sequence[Query]) -> list[list[str]]:
    return [[each.memory.id for each in service.search(replace(query, reinforce=False)).results] for query in queries]


def _recall(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    """Share of the exact top ten that was found, over all queries that have an answer."""
    wanted = sum(len(ids) for ids in exact)
    return sum(len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)) / wanted if wanted else 0.0


# -- writing ---------------------------------------------------------------------------------------------------


def durable_add(plan: Plan) -> Iterator[Row]:
    """One add after another, each found by the search that follows; beside it the disk's own fsync."""
    corpus = Corpus(plan.adds + 20, users=1)
    with tempfile.TemporaryDirectory(dir=plan.folder) as folder, _service(Path(folder)) as service:
        adds, floors = [], []
        with (Path(folder) / "floor").open("wb", buffering=0) as file:
            for draft in corpus.drafts():
                floors.append(_fsync_ms(file.fileno()))
                started = time.perf_counter()
                result = service.add(draft)
                adds.append((time.perf_counter() - started) * 1e3)
                found = service.search(_query_for(draft))
                assert found.results[0].memory.id == result.id
    p50, floor = statistics.median(adds[20:]), statistics.median(floors[20:])
    bar = 2 * floor + 0.5
    yield Row(
        "durable add, found by the next search",
        p50,
        "ms p50",
        f"<= 2 x fsync + 0.5 = {bar:.2f} ms",
        p50 <= bar,
        f"fsync {floor:.2f} ms",
    )


def concurrent_adds(plan: Plan) -> Iterator[Row]:
    """Eight threads, each adding one memory after another."""
    threads, each = 8, max(50, plan.adds)
    drafts = list(Corpus(threads * each, users=8).drafts())
    with tempfile.TemporaryDirectory(dir=plan.folder) as folder, _service(Path(folder)) as service:
        workers = [
            threading.Thread(target=lambda part=drafts[number::threads]: [service.add(draft) for draft in part])
            for number in range(threads)
        ]
        started = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        rate = len(drafts) / (time.perf_counter() - started)
        stats = service.stats("default")
        clean = service.check().ok
    whole = stats.memories == len(drafts) and stats.revision == len(drafts) and clean
    yield Row("8 threads adding", rate, "adds/s", ">= 1,500", rate >= 1_500, f"{len(drafts):,} adds")
    yield Row("8 threads adding: lost or doubled", float(len(drafts) - stats.memories), "memories", "= 0", whole)


def bulk_load(plan: Plan) -> Iterator[Row]:
    """A bulk load with the encoder against the encoder alone, on the same texts, turn about."""
    encoder = OnnxEncoder.open()
    corpus = Corpus(plan.passages, users=1, words_per_text=50)
    drafts = [replace(draft, vector=None) for draft in corpus.drafts()]
    texts = [draft.text for draft in drafts]
    encoder.encode_documents(texts[:32])
    ratios, rates = [], []
    for _ in range(3):
        started = time.perf_counter()
        encoder.encode_documents(texts)
        alone = time.perf_counter() - started
        with tempfile.TemporaryDirectory(dir=plan.folder) as folder:
            service = open_service(Settings(data_dir=Path(folder)), encoder=encoder)
            with service:
                started = time.perf_counter()
                for start in range(0, len(drafts), 256):
                    service.add_many(drafts[start : start + 256])
                loaded = time.perf_counter() - started
        ratios.append(alone / loaded)
        rates.append(len(drafts) / loaded)
    ratio = statistics.median(ratios)
    yield Row(
        "bulk load against the encoder alone",
        ratio,
        "of its rate",
        ">= 0.95",
        ratio >= 0.95,
        f"{statistics.median(rates):.1f} passages/s",
    )


# -- processes -------------------------------------------------------------------------------------------------


def http_search(plan: Plan) -> Iterator[Row]:
    """Search over HTTP with the encoder, one client, against the encoder alone in the same minutes."""
    encoder = OnnxEncoder.open()
    corpus = Corpus(2_000, users=2)
    queries = [query.text for query in corpus.queries(300)]
    with tempfile.TemporaryDirectory(dir=plan.folder) as folder:
        with open_service(Settings(data_dir=Path(folder)), encoder=encoder) as service:
            drafts = list(corpus.drafts())
            for start in range(0, len(drafts), 1_000):
                service.add_many(drafts[start : start + 1_000])
        with running_server(Path(folder)) as port, socket.create_connection(("127.0.0.1", port)) as connection:
            for text in queries[:_WARM]:
                _post_search(connection, corpus.user(0), text + " warm")
            over_http, alone = [], []
            for start in range(0, len(queries), 30):  # turn about, in blocks: each finds its own caches warm
                block = queries[start : start + 30]
                alone += [_encode_ms(encoder, text) for text in block]
                over_http += [_post_search(connection, corpus.user(0), text) for text in block]
    p50, floor = statistics.median(taken for taken, _ in over_http), statistics.median(alone)
    around = statistics.median(taken - encoding for taken, encoding in over_http)
    yield Row(
        "search over HTTP with the encoder",
        p50,
        "ms p50",
        f"<= encoder + 2 = {floor + 2:.2f} ms",
        p50 <= floor + 2,
        f"encoder alone {floor:.2f} ms; all but the encoding of the same requests {around:.2f} ms",
    )


def restart(plan: Plan) -> Iterator[Row]:
    """A new process: from the end of its imports to the first answer."""
    for users, name in ((100, "100 users"), (1, "one partition")):
        corpus = Corpus(plan.size, users=users)
        with _filled(plan, corpus):
            pass
        program = _RESTART.format(folder=str(_folder(plan, corpus)), users=users, size=plan.size)
        times = [float(_python(program)) for _ in range(5)]
        p50 = statistics.median(times)
        yield Row(f"restart to first answer, {plan.size:,} memories, {name}", p50, "s p50", "<= 0.5 s", p50 <= 0.5)


_RESTART: Final = """
import time
from pathlib import Path
import vimbank.wiring, vimbank.eval.bench as bench
from vimbank.eval.servers import running_server
from vimbank.eval.synthetic import Corpus
query = Corpus({size}, users={users}).queries(1)[0]
started = time.perf_counter()
with bench._service(Path({folder!r})) as service:
    assert len(service.search(query).results) == 10
    print(time.perf_counter() - started)
"""


_HEAVY: Final = """
import json, sys, vimbank
print(json.dumps([name for name in ("faiss", "onnxruntime", "torch") if name in sys.modules]))
"""


def command_help(_plan: Plan) -> Iterator[Row]:
    """``vimbank --help``, and what importing vimbank loads."""
    times = []
    for _ in range(7):
        started = time.perf_counter()
        shown = subprocess.run([sys.executable, "-m", "vimbank", "--help"], capture_output=True, check=True).stdout
        times.append(time.perf_counter() - started)
        assert b"search" in shown
    p50 = statistics.median(times)
    yield Row("vimbank --help", p50, "s p50", "<= 0.4 s", p50 <= 0.4)
    heavy = json.loads(_python(_HEAVY))
    yield Row("heavy modules loaded by importing vimbank", float(len(heavy)), "modules", "= 0", not heavy)


def crash(plan: Plan) -> Iterator[Row]:
    """Kill a writing process at random moments; count acknowledged adds that are gone, and checks not clean."""
    with tempfile.TemporaryDirectory(dir=plan.folder) as folder:
        report = crash_rounds(Path(folder), rounds=plan.rounds, seed=1)
    yield Row(
        f"{plan.rounds} kills: acknowledged adds lost",
        float(report.lost),
        "adds",
        "= 0",
        report.lost == 0,
        f"{report.acknowledged:,} acknowledged",
    )
    yield Row(f"{plan.rounds} kills: checks not clean", float(report.unclean), "checks", "= 0", report.unclean == 0)


BENCHES: Final[dict[str, Callable[[Plan], Iterator[Row]]]] = {
    "search-one-of-many": search_one_of_many,
    "search-one-partition": search_one_partition,
    "durable-add": durable_add,
    "concurrent-adds": concurrent_adds,
    "bulk-load": bulk_load,
    "http-search": http_search,
    "restart": restart,
    "help": command_help,
    "crash": crash,
    **LIFE_BENCHES,
}
_ALL: Final = {**BENCHES, **STACK_BENCHES}
_SIZES: Final = ("size", "searches", "adds", "passages", "rounds")


# -- shared ----------------------------------------------------------------------------------------------------


def _settings(folder: Path, dense: str = "faiss") -> Settings:
    return Settings.model_validate(
        {"data_dir": folder, "encoder": {"kind": "hashing", "dimension": 384}, "index": {"dense": dense}}
    )


def _service(folder: Path, dense: str = "faiss") -> MemoryService:
    return open_service(_settings(folder, dense))


def _folder(plan: Plan, corpus: Corpus) -> Path:
    return plan.folder / f"synthetic-{corpus.size}-{corpus.users}"


def _open(plan: Plan, corpus: Corpus, *, dense: str) -> MemoryService:
    return _service(_folder(plan, corpus), dense)


@contextmanager
def _filled(plan: Plan, corpus: Corpus) -> Iterator[MemoryService]:
    """The corpus in a service, loaded once a run."""
    with _open(plan, corpus, dense="faiss") as service:
        if service.stats("default").memories < corpus.size:
            started = time.perf_counter()
            batch: list[MemoryDraft] = []
            for draft in corpus.drafts():
                batch.append(draft)
                if len(batch) == 1_000:
                    service.add_many(batch)
                    batch.clear()
            service.add_many(batch)
            plan.say(
                f"  loaded {corpus.size:,} memories of {corpus.users} users in {time.perf_counter() - started:.1f} s"
            )
        yield service


def _query_for(draft: MemoryDraft) -> Query:
    return Query(
        tenant=draft.tenant,
        user_id=draft.user_id,
        text=draft.text,
        banks=[draft.bank],
        vector=draft.vector,
        top_k=1,
        include_shared=False,
        reinforce=False,
    )


def _fsync_ms(descriptor: int) -> float:
    os.write(descriptor, b"\0" * 4096)
    started = time.perf_counter()
    os.fsync(descriptor)
    return (time.perf_counter() - started) * 1e3


def _python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def _encode_ms(encoder: OnnxEncoder, text: str) -> float:
    started = time.perf_counter()
    encoder.encode_queries([text])
    return (time.perf_counter() - started) * 1e3


def _post_search(connection: socket.socket, user_id: str, text: str) -> tuple[float, float]:
    """One request on a connection that is kept: milliseconds to the end of its answer, and of the encoding therein."""
    body = json.dumps({"query": text, "user_id": user_id, "banks": ["dialog"]})
    head = f"POST /v1/search HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    request = f"{head}\r\n\r\n{body}".encode()
    started = time.perf_counter()
    connection.sendall(request)
    answer = connection.recv(65_536)
    while (missing := _missing_bytes(answer)) > 0:
        answer += connection.recv(missing)
    taken = (time.perf_counter() - started) * 1e3
    if not answer.startswith(b"HTTP/1.1 200") or not answer.endswith(b"}"):
        raise RuntimeError(f"search answered {answer[:300]!r}")
    encoding = re.search(rb"encode;dur=([\d.]+)", answer)
    return taken, float(encoding[1]) if encoding else 0.0


def _missing_bytes(answer: bytes) -> int:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
    return int(length[1]) - len(body) if end and length else 65_536


def _line(row: Row) -> str:
    verdict = {True: "ok", False: "MISSED", None: ""}[row.within]
    return f"{row.operation}: {row.figure:.3f} {row.unit} (bar {row.bar}) {verdict} {row.detail}".rstrip()


def _markdown(report: dict[str, Any]) -> str:
    machine = report["machine"]
    lines = [
        f"Measured {report['at']} on {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB; "
        f"Python {machine['python']}; "
        + ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
        + f"; commit {machine['commit']}.",
        "",
        "| operation | figure | bar | kept | detail |",
        "|---|---|---|---|---|",
    ]
    for row in report["rows"]:
        kept = {True: "yes", False: "**no**", None: ""}[row["within"]]
        figure = f"{row['figure']:,.3f} {row['unit']}".strip()
        lines.append(f"| {row['operation']} | {figure} | {row['bar']} | {kept} | {row['detail']} |")
    return "\n".join(lines) + "\n"


def _plot(report: dict[str, Any], path: Path) -> None:
    """One panel a row with a time or rate: the figure as a bar, kept in green, missed in red; no file without one."""
    import matplotlib as mpl  # the extra `bench`

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = [row for row in report["rows"] if row["unit"] not in ("", "memories", "modules", "checks")]
    if not rows:
        return
    figure, axes = plt.subplots(len(rows), 1, figsize=(9, 0.9 * len(rows) + 0.6), squeeze=False)
    for axis, row in zip(axes[:, 0], rows, strict=True):
        axis.barh([0], [row["figure"]], color="tab:red" if row["within"] is False else "tab:green")
        axis.set_yticks([])
        axis.set_title(
            f"{row['operation']}: {row['figure']:.2f} {row['unit']} (bar {row['bar']})", fontsize=8, loc="left"
        )
        axis.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command behind ``scripts/bench``; exit code 1 where a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure what VIMBank promises about speed, and write a table, a plot and a JSON result.",
        epilog="Example: scripts/bench search-one-of-many durable-add --size 20000 --out bench-out",
    )
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"which: {', '.join(_ALL)}; none: all of one form")
    parser.add_argument("--stack", action="store_true", help="the benches of the scaled-out form, on running services")
    parser.add_argument("--elasticsearch", metavar="URL", help="Elasticsearch for --stack")
    parser.add_argument("--postgres", metavar="URL", help="PostgreSQL database for --stack, as a SQLAlchemy URL")
    parser.add_argument("--redis", metavar="URL", help="Redis for --stack")
    parser.add_argument("--out", type=Path, default=Path("bench-out"), help="folder of the results")
    parser.add_argument(
        "--size", type=int, default=Plan(Path()).size, help="memories in the search and restart benches"
    )
    parser.add_argument("--searches", type=int, default=Plan(Path()).searches, help="searches that are timed")
    parser.add_argument("--rounds", type=int, default=Plan(Path()).rounds, help="kills in the crash bench")
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead of the table")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.benches) - set(_ALL))
    if unknown:
        parser.error(f"no bench named {', '.join(unknown)}; there are {', '.join(_ALL)}")
    names = chosen.benches or list(STACK_BENCHES if chosen.stack else BENCHES)
    missing = sorted({need for name in names for need in NEEDS.get(name, ()) if getattr(chosen, need) is None})
    if missing:
        parser.error(f"these benches need {', '.join(f'--{need} URL' for need in missing)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="vimbank-bench-") as folder:
        plan = Plan(
            Path(folder),
            _to_stderr,
            size=chosen.size,
            searches=chosen.searches,
            rounds=chosen.rounds,
            elasticsearch=chosen.elasticsearch,
            postgres=chosen.postgres,
            redis=chosen.redis,
        )
        report = run_benches(names, plan)
    (chosen.out / "bench.json").write_text(json.dumps(report, indent=2) + "\n")
    (chosen.out / "bench.md").write_text(_markdown(report))
    _plot(report, chosen.out / "bench.png")
    print(json.dumps(report) if chosen.json else _markdown(report))
    return 1 if any(row["within"] is False for row in report["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
