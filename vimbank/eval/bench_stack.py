"""The benches of the scaled-out form, on running services: Elasticsearch, PostgreSQL, Redis with Celery workers."""

import http.client
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

from vimbank.eval.measure import Plan, Row
from vimbank.eval.servers import running_server

__all__ = ["NEEDS", "STACK_BENCHES"]

_SERVERS: Final = 4
_THREADS_A_SERVER: Final = 4
_ADDS: Final = 10_000


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
    "postgres-processes": concurrent_processes,
}

NEEDS: Final[dict[str, Sequence[str]]] = {
    "postgres-processes": ("postgres",),
}
"""Which services a bench runs on, by the names of the options that give their URLs."""
