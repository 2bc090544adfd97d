"""Keys, request ids, sizes, errors and logs: what surrounds every route."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import ClientFor, Tenants, add, client_of, fields_of, settings_in
from vimbank.api.app import create_app
from vimbank.api.auth import is_loopback
from vimbank.errors import BackendUnavailable, ConfigError
from vimbank.jobs.runner import Jobs
from vimbank.observability.context import usable_request_id
from vimbank.observability.logs import set_up_logging
from vimbank.service import MemoryService
from vimbank.settings import ApiSettings, Settings


@pytest.mark.parametrize(
    "api",
    [
        {},
        {"host": "0.0.0.0"},
        {"host": "0.0.0.0", "allow_anonymous": True},
        {"host": "::", "allow_anonymous": True},
        {"host": "192.168.1.4", "allow_anonymous": True},
        {"host": "example.com", "allow_anonymous": True},
        {"keys": [{"key": ""}]},
        {"keys": [{"key": " k"}]},
        {"keys": [{"key": "k", "tenant": "a"}, {"key": "k", "tenant": "b"}]},
    ],
)
def test_a_server_does_not_start_open_case_67(stored: MemoryService, jobs: Jobs, api: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        create_app(stored, Settings(api=ApiSettings(**api)), jobs)


def test_on_loopback_a_switch_opens_it_for_the_default_tenant_case_67(stored: MemoryService, jobs: Jobs) -> None:
    client = client_of(create_app(stored, Settings(api=ApiSettings(allow_anonymous=True)), jobs), None)
    memory_id = add(client, "tea")
    assert stored.get("default", memory_id).text == "tea"
    assert client.delete("/v1/memories", params={"user_id": "alice"}).status_code == 200


def test_keys_are_needed_even_where_the_switch_is_set(stored: MemoryService, jobs: Jobs) -> None:
    api = ApiSettings(allow_anonymous=True, keys=[{"key": "k"}])
    client = client_of(create_app(stored, Settings(api=api), jobs), None)
    assert client.get("/v1/memories").status_code == 401


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer nope"},
        {"Authorization": "Bearer "},
        {"Authorization": "key-a-0"},
        {"Authorization": "Basic key-a-0"},
        {"X-API-Key": "key-a-0x"},
        {"X-API-Key": ""},
        {"Authorization": "Bearer nope", "X-API-Key": "key-a-0"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/memories", "/v1/search", "/v1/stats", "/nowhere"])
def test_no_valid_key_no_answer(client_for: ClientFor, headers: dict[str, str], path: str) -> None:
    answer = client_for("").post(path, headers=headers, content=b"{")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["type"] == "urn:vimbank:problem:unauthorized"


@pytest.mark.parametrize(
    "headers", [{"Authorization": "bearer key-a-0"}, {"X-API-Key": "key-a-0"}, {"x-api-key": " key-a-0 "}]
)
def test_a_key_comes_in_either_header(client_for: ClientFor, headers: dict[str, str]) -> None:
    assert client_for("").get("/v1/memories", headers=headers).status_code == 200


def test_health_and_front_door_need_no_key(client_for: ClientFor) -> None:
    client = client_for("")
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/").json()["docs"] == "/docs"
    ready = client.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert ready.json()["components"]["store"] == "ok"
    assert client.get("/openapi.json").status_code == client.get("/docs").status_code == 200


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_answers_head_as_get_without_a_body(client_for: ClientFor, path: str) -> None:
    client = client_for("")
    asked, told = client.head(path), client.get(path)
    assert (asked.status_code, asked.content) == (200, b"")
    assert {**asked.headers, "x-request-id": ""} == {**told.headers, "x-request-id": ""}


def test_readiness_goes_red_with_the_encoder_and_liveness_does_not(
    client_for: ClientFor, stored: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise BackendUnavailable("encoder", "refused")

    monkeypatch.setattr(stored, "_probe_encoder", refuse)
    client = client_for("")
    ready = client.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
    assert ready.json()["components"]["encoder"] == "encoder: refused"
    assert client.get("/health/live").status_code == 200


def test_an_engine_out_of_reach_is_503_and_asks_to_try_again(
    client: TestClient, stored: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_query: object) -> None:
        raise BackendUnavailable("encoder", "refused")

    monkeypatch.setattr(stored, "search", refuse)
    answer = client.post("/v1/search", json={"query": "tea", "user_id": "alice"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["detail"] == "encoder: refused"


def test_the_unforeseen_is_a_problem_with_the_request_id_and_a_logged_traceback(
    client: TestClient, stored: MemoryService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def burst(_query: object) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(stored, "search", burst)
    body = {"query": "tea", "user_id": "alice"}
    answer = client.post("/v1/search", json=body, headers={"X-Request-ID": "abc-1"})
    assert answer.status_code == 500
    assert answer.json()["instance"] == "urn:vimbank:request:abc-1"
    assert "foresaw" not in answer.text
    assert "nobody foresaw this" in caplog.text


def test_a_request_id_is_kept_or_made(client: TestClient) -> None:
    assert client.get("/health/live", headers={"X-Request-ID": "req-7"}).headers["x-request-id"] == "req-7"
    made = [client.get("/health/live").headers["x-request-id"] for _ in range(2)]
    assert len(set(made)) == 2
    for bad in ("", "a b", "x" * 129, 'a"b'):
        assert client.get("/health/live", headers={"X-Request-ID": bad}).headers["x-request-id"] != bad
    assert usable_request_id("a\nb") is None


def test_unknown_paths_and_methods_are_problems_too(client: TestClient) -> None:
    for path in ("/nowhere", "/v1/search/", "/v1"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    answer = client.put("/v1/search", json={})
    assert (answer.status_code, answer.json()["type"]) == (405, "urn:vimbank:problem:method-not-allowed")
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"query": NaN}', b'"query"', b"[1]", b"null", b'{"a": "\\ud800"}'],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/memories", "/v1/memories/batch", "/v1/documents", "/v1/tasks"])
def test_what_is_not_a_json_object_is_422_naming_the_body(client: TestClient, path: str, body: bytes) -> None:
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    assert fields_of(answer) == ["body"]


def test_json_under_another_name_is_refused(client: TestClient) -> None:
    body = json.dumps({"query": "tea", "user_id": "alice"})
    assert fields_of(client.post("/v1/search", content=body, headers={"content-type": "text/plain"})) == ["body"]


@pytest.fixture
def small(tmp_path: Path, stored: MemoryService, jobs: Jobs) -> TestClient:
    """A client of a server that takes 1,000 bytes a body."""
    return client_of(create_app(stored, settings_in(tmp_path, api={"max_body_mb": 0.001}), jobs), Tenants(0).key("a"))


def test_a_body_too_large_is_413_announced_or_not(small: TestClient) -> None:
    headers = {"content-type": "application/json"}
    assert small.post("/v1/search", content=b" " * 1_001, headers=headers).status_code == 413

    def drops() -> Iterator[bytes]:
        yield from [b" " * 300] * 4

    streamed = small.post("/v1/search", content=drops(), headers=headers)
    assert (streamed.status_code, streamed.json()["type"]) == (413, "urn:vimbank:problem:too-large")
    files = {"file": ("a.txt", b"x" * 1_001, "text/plain")}
    assert small.post("/v1/documents", files=files, data={"user_id": "alice"}).status_code == 413
    fits = json.dumps({"query": "tea", "user_id": "alice"}).ljust(1_000).encode()
    assert small.post("/v1/search", content=fits, headers=headers).status_code == 200


def test_deep_metadata_is_refused_or_comes_back(client: TestClient) -> None:
    for depth in (5, 60, 240, 500, 900):
        value: Any = 1
        for _ in range(depth):
            value = {"k": value}
        body = {"bank": "dialog", "text": f"depth {depth}", "user_id": "alice", "metadata": {"k": value}}
        assert client.post("/v1/memories", json=body).status_code in (201, 422)
        assert client.get("/v1/memories").status_code == 200
        search = {"query": "depth", "user_id": "alice", "filter": value}
        assert client.post("/v1/search", json=search).status_code in (200, 422)


@pytest.mark.parametrize("number", ["1e400", "123456789012345678901234567890", "-0.0", "1E-400"])
def test_odd_numbers_in_metadata_come_back_as_json_or_are_refused(client: TestClient, number: str) -> None:
    body = f'{{"bank": "dialog", "text": "n", "user_id": "alice", "metadata": {{"n": {number}}}}}'
    answer = client.post("/v1/memories", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (201, 422)
    listed = client.get("/v1/memories")
    assert listed.status_code == 200
    if answer.status_code == 201:
        assert isinstance(listed.json()["items"][0]["metadata"]["n"], int | float)


def test_the_access_log_tells_the_request_and_no_text(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="vimbank")
    add(client, "marzipan is a secret")
    client.post("/v1/search", json={"query": "marzipan", "user_id": "alice"})
    client.get("/v1/memories", params={"filter": '{"topic": "marzipan"}'})
    lines = [record.getMessage() for record in caplog.records if record.name == "vimbank.api.access"]
    assert [line.rsplit(" ", 2)[0] for line in lines] == [
        "POST /v1/memories 201",
        "POST /v1/search 200",
        "GET /v1/memories 200",
    ]
    assert "marzipan" not in caplog.text


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield root
    logging.getLogger("httpx2").setLevel("NOTSET")
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("format", ["text", "json"])
def test_logs_go_to_standard_error_one_line_an_event(
    client: TestClient, root_logger: logging.Logger, capsys: pytest.CaptureFixture[str], format: Any
) -> None:
    set_up_logging("INFO", format)
    set_up_logging("INFO", format)
    logging.getLogger("httpx2").setLevel("WARNING")  # the test's own client speaks there
    client.get("/health/live", headers={"X-Request-ID": "req-7"})
    logging.getLogger("vimbank.test").warning("two\nlines")
    printed = capsys.readouterr()
    assert printed.out == ""
    first, second = printed.err.splitlines()
    if format == "json":
        line = json.loads(first)
        assert {key: line[key] for key in ("logger", "request_id", "method", "path", "status")} == {
            "logger": "vimbank.api.access",
            "request_id": "req-7",
            "method": "GET",
            "path": "/health/live",
            "status": 200,
        }
        assert json.loads(second)["message"] == "two\nlines"
    else:
        assert " INFO vimbank.api.access [req-7] GET /health/live 200 " in first
        assert second.endswith("WARNING vimbank.test two\\nlines")
