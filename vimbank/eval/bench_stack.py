"""The benches of the scaled-out form, on running services: Elasticsearch, PostgreSQL, Redis with Celery workers."""

import http.client
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from elasticsearch import Elasticsearch
from elasticsearch.helpers import bulk

from vimbank.domain.models import FusionName, Query
from vimbank.domain.text import analyze_query
from vimbank.eval.bench_celery import celery_rate
from vimbank.eval.bench_life import LIFE_ON_POSTGRES
from vimbank.eval.measure import Plan, Row, percentiles
from vimbank.eval.servers import running_server
from vimbank.eval.synthetic import Corpus
from vimbank.indexes.elasticsearch.mappings import sparse_document
from vimbank.indexes.elasticsearch.naming import partition_key
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service

__all__ = ["NEEDS", "STACK_BENCHES"]

_SERVERS: Final = 4
_THREADS_A_SERVER: Final = 4
_ADDS: Final = 10_000
_MEMORIES: Final = 20_000
_CANDIDATES: Final = 200
_WARM: Final = 50
_AIM_MS: Final = 3.0
_AIM_SHARE: Final = 0.9


def elasticsearch_search(plan: Plan) -> Iterator[Row]:
    """Hybrid search with the keyword leg in Elasticsearch, one partition; beside it a bare client's search.

    The bare client asks for the same: the 200 best of the partition by the same terms, without their sources. Both
    take turns, so that what else the machine does strikes both.
    """
    corpus = Corpus(_MEMORIES)
    fusions: tuple[FusionName, ...] = ("convex", "sparse")
    for fusion in fusions:
        with _on_elasticsearch(plan, corpus) as (service, client, alias):
            whole, bare = [], []
            for number, query in enumerate(corpus.queries(plan.searches + _WARM)):
                asked = replace(query, fusion=fusion)
                search_ms, degraded = _search_ms(service, asked)
                client_ms = _bare_search_ms(client, alias, asked)
                if number >= _WARM:
                    whole.append(search_ms)
                    bare.append(client_ms)
                if degraded:
                    raise RuntimeError(f"a search was answered without {degraded}")
        p50, p95 = percentiles(whole)
        round_trip, _ = percentiles(bare)
        yield Row(
            f"search with the Elasticsearch leg, {fusion}, {_MEMORIES:,} memories",
            p50,
            "ms p50",
            f"<= Elasticsearch's round trip + {_AIM_MS:g} ms = {round_trip + _AIM_MS:.1f} ms",
            p50 <= round_trip + _AIM_MS,
            f"p95 {p95:.1f} ms; bare client p50 {round_trip:.1f} ms",
        )


def elasticsearch_follow(plan: Plan) -> Iterator[Row]:
    """How fast the feed is followed into a new index, against the client's bulk helper with the same documents."""
    corpus = Corpus(_MEMORIES)
    shares, rates = [], []
    for _ in range(3):
        with _on_elasticsearch(plan, corpus, follow=False) as (service, client, alias):
            started = time.perf_counter()
            service.follow_remote()
            followed_s = time.perf_counter() - started
            bare_s = _bare_bulk_s(service, client, alias)
        shares.append(bare_s / followed_s)
        rates.append(_MEMORIES / followed_s)
    share, _ = percentiles(shares)
    rate, _ = percentiles(rates)
    yield Row(
        f"following {_MEMORIES:,} memories into Elasticsearch, share of the bulk helper's rate",
        share,
        "",
        f">= {_AIM_SHARE}",
        share >= _AIM_SHARE,
        f"{rate:,.0f} memories/s; median of {len(shares)}",
    )


@contextmanager
def _on_elasticsearch(
    plan: Plan, corpus: Corpus, *, follow: bool = True
) -> Iterator[tuple[MemoryService, Elasticsearch, str]]:
    """The corpus in a service whose keyword leg is a new Elasticsearch index; a bare client, and the index's alias."""
    assert plan.elasticsearch is not None
    prefix = f"bench-{uuid.uuid4().hex[:12]}"
    client = Elasticsearch(plan.elasticsearch, request_timeout=60)
    try:
        with open_service(_settings(plan.folder / f"stack-{corpus.size}", plan.elasticsearch, prefix)) as service:
            # Of the store alone: the service's figures would ask the index, which sets the follower going.
            if service.store.counts("default").memories < corpus.size:
                drafts = list(corpus.drafts())
                for start in range(0, len(drafts), 1_000):
                    service.add_many(drafts[start : start + 1_000])
            if follow:
                service.follow_remote()
            yield service, client, f"{prefix}-{corpus.bank}"
    finally:
        client.indices.delete(index=list(client.indices.get(index=f"{prefix}-*")))
        client.close()


def _settings(folder: Path, url: str, prefix: str) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder,
            "encoder": {"kind": "hashing", "dimension": 384},
            "index": {"sparse": "elasticsearch"},
            # A pause of the server is to show in the figure, not to be answered without it.
            "elasticsearch": {"url": url, "prefix": prefix, "search_timeout_s": 5.0},
        }
    )


def _search_ms(service: MemoryService, query: Query) -> tuple[float, Sequence[str]]:
    started = time.perf_counter()
    recall = service.search(query)
    return (time.perf_counter() - started) * 1e3, recall.degraded


def _bare_search_ms(client: Elasticsearch, alias: str, query: Query) -> float:
    partition = _partition_of(client, alias)
    asked = {
        "bool": {
            "must": {"match": {"terms": " ".join(analyze_query(query.text))}},
            "filter": {"term": {"partition": partition}},
        }
    }
    started = time.perf_counter()
    client.search(
        index=alias,
        routing=partition,
        query=asked,
        size=_CANDIDATES,
        source=False,
        docvalue_fields=[{"field": "id"}],
        sort=["_score", "number"],
        track_total_hits=False,
    )
    return (time.perf_counter() - started) * 1e3


_PARTITIONS: Final[dict[str, str]] = {}


def _partition_of(client: Elasticsearch, alias: str) -> str:
    """The one partition's key, as the documents have it."""
    if alias not in _PARTITIONS:
        [hit] = client.search(index=alias, query={"exists": {"field": "terms"}}, size=1)["hits"]["hits"]
        _PARTITIONS[alias] = hit["_source"]["partition"]
    return _PARTITIONS[alias]


def _bare_bulk_s(service: MemoryService, client: Elasticsearch, alias: str) -> float:
    """Seconds in which the client's helper fills a new index of the same mapping; making it counts, as there."""
    [(name, described)] = client.indices.get(index=alias).items()
    copy = f"{name}-bare"
    settings = described["settings"]["index"]
    own = ("creation_date", "uuid", "version", "provided_name")
    kept = {key: value for key, value in settings.items() if key not in own}
    actions = list(_documents(service, copy))
    started = time.perf_counter()
    client.indices.create(index=copy, settings=kept, mappings=described["mappings"])
    bulk(client, actions, chunk_size=1_000)
    client.indices.refresh(index=copy)
    return time.perf_counter() - started


def _documents(service: MemoryService, target: str) -> Iterator[dict[str, Any]]:
    """What the follower writes, ready made: the helper is spared the reading and the analysis."""
    after = 0
    while changes := service.store.changes(after, limit=5_000):
        for change in changes:
            yield {
                "_index": target,
                "_id": str(change.number),
                "routing": partition_key(change.partition),
                "version": change.revision,
                "version_type": "external",
                "_source": sparse_document(change),
            }
        after = changes[-1].revision


def concurrent_processes(plan: Plan) -> Iterator[Row]:
    """Four API processes on one PostgreSQL database, 10,000 adds at once: none may be lost or doubled."""
    assert plan.postgres is not None
    user = f"bench-{uuid.uuid4().hex}"
    environment = {"VIMBANK_STORE__URL": plan.postgres, "VIMBANK_ENCODER__KIND": "hashing"}
    with ExitStack() as servers:
        ports = [
            servers.enter_context(running_server(plan.folder / f"api-{number}", environment))
            for number in range(_SERVERS)
        ]
        clients = [port for port in ports for _ in range(_THREADS_A_SERVER)]
        share = _ADDS // len(clients)
        started = time.perf_counter()
        with ThreadPoolExecutor(len(clients)) as pool:
            added = list(pool.map(lambda at: _add(clients[at], user, at * share, share), range(len(clients))))
        took_s = time.perf_counter() - started
        acknowledged = [one for ids in added for one in ids]
        stored = _listed(ports[0], user)
        found = [_found(port, user, f"fact {number}") for port in ports for number in (0, _ADDS // 2)]
    lost = len(set(acknowledged) - set(stored))
    doubled = len(stored) - len(set(acknowledged))
    label = f"{_SERVERS} API processes on PostgreSQL, {len(acknowledged):,} adds"
    yield Row(f"{label}: lost", float(lost), "memories", "= 0", lost == 0)
    yield Row(f"{label}: doubled", float(doubled), "memories", "= 0", doubled == 0)
    yield Row(f"{label}: rate", len(acknowledged) / took_s, "adds/s", "none", None)
    missed = found.count(False)
    yield Row(f"{label}: not found by another process", float(missed), "memories", "= 0", missed == 0)


def celery_jobs(plan: Plan) -> Iterator[Row]:
    """Jobs that do nothing, recorded in PostgreSQL, against bare Celery tasks that do nothing."""
    assert plan.redis is not None
    rate = celery_rate(plan.redis, store_url=plan.postgres)
    yield Row(
        "jobs that do nothing, share of a bare Celery task's rate",
        rate.ratio,
        "",
        f">= {_AIM_SHARE}",
        rate.ratio >= _AIM_SHARE,
        f"{rate.jobs_per_s:,.0f} jobs/s, {rate.bare_per_s:,.0f} bare tasks/s",
    )


def _add(port: int, user: str, start: int, count: int) -> list[str]:
    """Ids of the adds that the server acknowledged."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    ids = []
    for number in range(start, start + count):
        given = {"user_id": user, "bank": "dialog", "text": f"fact {number} of {user}"}
        status, answer = _call(connection, "POST", "/v1/memories", given)
        if status != 201:
            raise RuntimeError(f"POST /v1/memories: {status} {answer}")
        ids.append(answer["id"])
    connection.close()
    return ids


def _listed(port: int, user: str) -> list[str]:
    """The ids of everything the user has, page by page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    ids: list[str] = []
    cursor = ""
    while True:
        _, page = _call(connection, "GET", f"/v1/memories?user_id={user}&limit=1000{cursor}")
        ids += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            connection.close()
            return ids
        cursor = f"&cursor={page['next_cursor']}"


def _found(port: int, user: str, text: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    given = {"query": text, "user_id": user, "banks": ["dialog"], "fusion": "sparse", "top_k": 1}
    _, answer = _call(connection, "POST", "/v1/search", given)
    connection.close()
    return bool(answer["results"]) and answer["results"][0]["text"].startswith(f"{text} ")


def _call(
    connection: http.client.HTTPConnection, method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


STACK_BENCHES: Final[dict[str, Callable[[Plan], Iterator[Row]]]] = {
    "elasticsearch-search": elasticsearch_search,
    "elasticsearch-follow": elasticsearch_follow,
    "celery-jobs": celery_jobs,
    "postgres-processes": concurrent_processes,
    **LIFE_ON_POSTGRES,
}

NEEDS: Final[dict[str, Sequence[str]]] = {
    "elasticsearch-search": ("elasticsearch",),
    "elasticsearch-follow": ("elasticsearch",),
    "celery-jobs": ("redis", "postgres"),
    "postgres-processes": ("postgres",),
    **dict.fromkeys(LIFE_ON_POSTGRES, ("postgres",)),
}
"""Which services a bench runs on, by the names of the options that give their URLs."""
