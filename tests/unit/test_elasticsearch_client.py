"""Translating Elasticsearch's failures, and sending again what met an overload: a scripted server answers."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.elasticsearch_kit import change, tombstone
from vimbank.domain.models import Change
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, VimbankError
from vimbank.indexes.elasticsearch.client import ElasticsearchClient, Overloaded
from vimbank.indexes.elasticsearch.mappings import sparse_document, sparse_plans
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex

SECRET = "c2VjcmV0OmtleQ=="
Answer = tuple[int, Any]


class Script:
    """An HTTP server that answers each request by ``answer(method, path, body)`` and remembers it."""

    def __init__(self) -> None:
        self.answer: Callable[[str, str, bytes], Answer] = lambda *_: (200, {})
        self.requests: list[tuple[str, str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.product = "Elasticsearch"
        self.hang = threading.Event()
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                script.requests.append((self.command, self.path, body))
                script.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, value = script.answer(self.command, self.path, body)
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in (
                    ("x-elastic-product", script.product), ("content-type", "application/json"),
                    ("content-length", str(len(data))),
                ):  # fmt: skip
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = respond

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def connect(self, **given: Any) -> ElasticsearchClient:
        return ElasticsearchClient.connect([self.url], **{"search_timeout_s": 0.2, "request_timeout_s": 5.0, **given})

    def close(self) -> None:
        self.hang.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()
    yield made
    made.close()


@pytest.fixture
def client(script: Script) -> Iterator[ElasticsearchClient]:
    made = script.connect()
    yield made
    made.close()


def failing(status: int, kind: str = "some_exception", reason: str = "the secret words") -> Callable[..., Answer]:
    return lambda *_: (status, {"error": {"type": kind, "reason": reason}, "status": status})


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "kind", "error"),
        [
            (400, "parsing_exception", BackendRejected),
            (401, "security_exception", BackendRejected),
            (403, "security_exception", BackendRejected),
            (404, "not_found", BackendRejected),
            (404, "index_not_found_exception", BackendUnavailable),
            (408, "timeout", Overloaded),
            (409, "version_conflict_engine_exception", BackendRejected),
            (413, "too_large", BackendRejected),
            (429, "circuit_breaking_exception", Overloaded),
            (500, "null_pointer_exception", BackendRejected),
            (502, "bad_gateway", Overloaded),
            (503, "unavailable_shards_exception", Overloaded),
            (504, "timeout", Overloaded),
        ],
    )
    def test_each_status_has_its_error(
        self, script: Script, client: ElasticsearchClient, status: int, kind: str, error: type[VimbankError]
    ) -> None:
        script.answer = failing(status, kind)
        with pytest.raises(error, match=f"status {status}, {kind}") as caught:
            client.ask("POST", "/x/_search", {}, private=True)
        assert type(caught.value) is error
        assert "secret words" not in str(caught.value)
        assert len(script.requests) == 1

    def test_a_reason_is_told_where_it_cannot_be_about_people(
        self, script: Script, client: ElasticsearchClient
    ) -> None:
        script.answer = failing(400, "validation_exception", "too many shards")
        with pytest.raises(BackendRejected, match="too many shards"):
            client.ask("PUT", "/x", {})

    def test_an_answer_that_is_no_json(self, script: Script, client: ElasticsearchClient) -> None:
        script.answer = lambda *_: (200, b"{broken")
        with pytest.raises(BackendRejected, match="cannot be read"):
            client.ask("GET", "/")

    def test_an_error_page_of_a_proxy(self, script: Script, client: ElasticsearchClient) -> None:
        script.answer = lambda *_: (502, b'"<html>no upstream</html>"')
        with pytest.raises(Overloaded, match="status 502"):
            client.ask("GET", "/")

    def test_nobody_listens(self) -> None:
        client = ElasticsearchClient.connect(["http://127.0.0.1:1"], request_timeout_s=1.0)
        with pytest.raises(BackendUnavailable, match="no answer"):
            client.check()
        client.close()

    def test_a_node_that_hangs_costs_the_patience_of_a_search_and_no_more(
        self, script: Script, client: ElasticsearchClient
    ) -> None:
        script.answer = lambda *_: (script.hang.wait(10), (200, {}))[1]
        with pytest.raises(BackendUnavailable, match="no answer"):
            client.search("x", {}, routing="r")
        assert len(script.requests) == 1

    @pytest.mark.parametrize("cut", [{"timed_out": True}, {"timed_out": False, "_shards": {"failed": 1}}])
    def test_an_answer_that_is_not_whole_is_none(
        self, script: Script, client: ElasticsearchClient, cut: dict[str, Any]
    ) -> None:
        script.answer = lambda *_: (200, {**cut, "hits": {"hits": [{"sort": [1.0, 1]}]}})
        with pytest.raises(BackendUnavailable, match="cut short"):
            client.search("x", {}, routing="r")

    def test_another_node_is_asked_where_one_is_away(self, script: Script) -> None:
        client = ElasticsearchClient.connect(["http://127.0.0.1:1", script.url], request_timeout_s=1.0)
        script.answer = lambda *_: (200, {"fine": True})
        assert [client.ask("GET", "/") for _ in range(4)] == [{"fine": True}] * 4
        client.close()


class TestCheck:
    def test_the_version(self, script: Script, client: ElasticsearchClient) -> None:
        script.answer = lambda *_: (200, {"version": {"number": "9.1.0-SNAPSHOT"}})
        assert client.check() == "9.1.0-SNAPSHOT"
        assert client.version() == (9, 1, 0)

    def test_another_product(self, script: Script, client: ElasticsearchClient) -> None:
        script.product = "Something"
        script.answer = lambda *_: (200, {"version": {"number": "8.15.0"}})
        with pytest.raises(ConfigError, match="no Elasticsearch"):
            client.check()

    @pytest.mark.parametrize("answer", [{}, {"version": "8"}, {"version": {"number": "eight"}}])
    def test_no_version(self, script: Script, client: ElasticsearchClient, answer: Any) -> None:
        script.answer = lambda *_: (200, answer)
        with pytest.raises(ConfigError, match="version"):
            client.check()

    @pytest.mark.parametrize("status", [401, 403])
    def test_refused_credentials_are_not_told(self, script: Script, status: int) -> None:
        script.answer = failing(status, "security_exception", f"unable to authenticate {SECRET}")
        client = script.connect(api_key=SECRET)
        with pytest.raises(ConfigError, match="credentials are refused") as caught:
            client.check()
        client.close()
        assert script.headers[0]["authorization"] == f"ApiKey {SECRET}"
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(client)

    def test_no_tls_where_tls_is_asked_for(self, script: Script) -> None:
        client = ElasticsearchClient.connect([script.url.replace("http:", "https:")], request_timeout_s=2.0)
        with pytest.raises(ConfigError, match="TLS"):
            client.check()
        client.close()


class TestConnect:
    @pytest.mark.parametrize(
        ("urls", "given", "message"),
        [
            ([], {}, "needs an address"),
            (["localhost"], {}, "cannot be used"),
            (["http://x:9200"], {"api_key": SECRET, "username": "u", "password": "p"}, "not both"),
            (["http://x:9200"], {"username": "u"}, "or neither"),
            (["http://x:9200"], {"password": SECRET}, "or neither"),
            (["http://x:9200"], {"ca_certs": Path("/ca.pem")}, "no address begins with https"),
            (["https://x:9200"], {"ca_certs": Path("/no/such/ca.pem")}, "cannot be read"),
        ],
    )
    def test_settings_that_contradict_each_other(self, urls: list[str], given: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message) as caught:
            ElasticsearchClient.connect(urls, **given)
        assert SECRET not in str(caught.value)

    def test_name_and_password(self, script: Script) -> None:
        client = script.connect(username="u", password="p")
        client.ask("GET", "/")
        client.close()
        assert script.headers[0]["authorization"] == "Basic dTpw"


class Bulk:
    """Answers bulk requests: statuses by memory number, the first of each list for its first attempt."""

    def __init__(self, script: Script, statuses: dict[str, list[int]]) -> None:
        self.statuses = statuses
        self.sent: list[list[str]] = []
        script.answer = self.answer

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        if path == "/":
            return 200, {"version": {"number": "8.15.3"}}
        assert (method, path.partition("?")[0]) == ("POST", "/_bulk")
        assert "require_alias=true" in path
        actions = [json.loads(line) for line in body.splitlines()]
        actions = [action for action in actions if {"index", "delete"} & action.keys()]
        ids = [next(iter(action.values()))["_id"] for action in actions]
        self.sent.append(ids)
        items = []
        for name, action in zip(ids, actions, strict=True):
            left = self.statuses.get(name, [])
            status = left.pop(0) if left else 201
            error = {} if status < 300 else {"error": {"type": "some_exception"}}
            items.append({next(iter(action)): {"status": status, **error}})
        return 200, {"errors": any(each > 299 for item in items for each in _statuses(item)), "items": items}


def _statuses(item: dict[str, dict[str, Any]]) -> list[int]:
    return [result["status"] for result in item.values()]


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def index(client: ElasticsearchClient, waits: list[float]) -> ElasticsearchIndex:
    plans = sparse_plans(["dialog"], prefix="p", store_id="s")
    return ElasticsearchIndex(
        client, "sparse", plans, sparse_document, batch_size=3, sleep=waits.append, random=Random(7)
    )


def changes(count: int) -> list[Change]:
    return [change(n, "tea") for n in range(1, count + 1)]


class TestBackOff:
    def test_only_what_met_an_overload_is_sent_again_after_growing_waits(
        self, script: Script, index: ElasticsearchIndex, waits: list[float]
    ) -> None:
        bulk = Bulk(script, {"1": [429], "3": [503, 504, 502]})
        index.apply(changes(3))
        assert bulk.sent == [["1", "2", "3"], ["1", "3"], ["3"], ["3"]]
        for wait, longest in zip(waits, (0.1, 0.2, 0.4), strict=True):
            assert longest / 2 <= wait <= longest

    def test_what_is_newer_there_or_already_gone_is_done(
        self, script: Script, index: ElasticsearchIndex, waits: list[float]
    ) -> None:
        bulk = Bulk(script, {"1": [409], "2": [404], "3": [409]})
        index.apply([change(1, "tea"), tombstone(2, 2), tombstone(3, 3)])
        assert bulk.sent == [["1", "2", "3"]]
        assert waits == []

    @pytest.mark.parametrize("status", [400, 403, 404, 413, 500])
    def test_what_is_refused_is_named_and_never_sent_again(
        self, script: Script, index: ElasticsearchIndex, waits: list[float], status: int
    ) -> None:
        bulk = Bulk(script, {"2": [status]})
        with pytest.raises(BackendRejected, match=f"memory 2: status {status}, some_exception"):
            index.apply(changes(3))
        assert len(bulk.sent) == 1
        assert waits == []

    def test_an_overload_that_lasts_ends_in_unavailable(
        self, script: Script, index: ElasticsearchIndex, waits: list[float]
    ) -> None:
        Bulk(script, {"1": [429] * 99})
        with pytest.raises(BackendUnavailable, match="1 of 3 writes were not taken in time"):
            index.apply(changes(3))
        assert max(waits) <= 5.0
        assert sum(waits) < 30

    def test_a_request_that_is_refused_as_a_whole_is_sent_again(
        self, script: Script, index: ElasticsearchIndex, waits: list[float]
    ) -> None:
        bulk = Bulk(script, {})
        refusals = iter([429, 503])

        def answer(method: str, path: str, body: bytes) -> Answer:
            status = next(refusals, None) if "_bulk" in path else None
            return failing(status)() if status else bulk.answer(method, path, body)

        script.answer = answer
        index.apply(changes(2))
        assert bulk.sent == [["1", "2"]]
        assert len(waits) == 2

    def test_batches_are_bounded_in_number_and_in_bytes(self, script: Script, index: ElasticsearchIndex) -> None:
        bulk = Bulk(script, {})
        long = "wörds " * 260_000  # about 3 MB of terms, more than half of a request
        index.apply([change(1, "tea"), change(2, long), change(3, long), *changes(7)[3:]])
        assert bulk.sent == [["1", "2"], ["3", "4", "5"], ["6", "7"]]

    def test_nothing_to_apply_asks_nobody(self, script: Script, index: ElasticsearchIndex) -> None:
        index.apply([])
        assert script.requests == []
