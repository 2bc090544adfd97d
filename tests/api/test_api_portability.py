"""Export and import over HTTP."""

from pathlib import Path

from starlette.testclient import TestClient

from tests.api.conftest import ClientFor, Tenants, add, client_of, fields_of, search, settings_in
from vimbank.api.app import create_app
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService


def test_case_127_over_http(client: TestClient) -> None:
    add(client, "the marigold key is under the mat", metadata={"n": 1}, pinned=True)
    add(client, "the pump runs at 50 Hz. " * 300, bank="knowledge")
    first = client.get("/v1/export", params={"user_id": "alice"})
    assert first.headers["content-type"] == "application/x-ndjson"
    client.delete("/v1/users/alice")
    answer = client.post("/v1/import", content=first.content)
    assert answer.status_code == 200, answer.text
    assert answer.json()["complete"] is True
    assert answer.json()["failed"] == answer.json()["embedded"] == 0
    second = client.get("/v1/export", params={"user_id": "alice"})
    assert second.content.splitlines()[1:] == first.content.splitlines()[1:]
    assert len(search(client, "marigold")) >= 1


def test_a_preview_writes_nothing_and_bad_lines_are_named(client: TestClient) -> None:
    """Case 116."""
    body = b'{"text": "one", "user_id": "alice"}\n{"text": 2}\n{"text": "three", "user_id": "alice"}'
    preview = client.post("/v1/import", content=body, params={"dry_run": "true"}).json()
    assert (preview["added"], [each["line"] for each in preview["bad"]]) == (2, [2])
    assert client.get("/v1/memories", params={"user_id": "alice"}).json()["total"] == 0
    assert client.post("/v1/import", content=body).json()["added"] == 2


def test_it_takes_the_right_keys(client: TestClient, client_for: ClientFor) -> None:
    add(client, "mine")
    assert client_for("a-read").get("/v1/export").status_code == 403
    assert client_for("a-read").get("/v1/export", params={"user_id": "alice"}).status_code == 200
    assert client_for("a-write").post("/v1/import", content=b"").status_code == 403
    other = client_for("b").get("/v1/export").content
    assert b"mine" not in other
    assert fields_of(client.get("/v1/export", params={"user_id": " "})) == ["user_id"]
    assert fields_of(client.post("/v1/import", params={"format": "yaml"})) == ["format"]
    assert fields_of(client.post("/v1/import", content=b"nonsense")) == ["body"]


def test_a_body_larger_than_others_may_be_is_taken_in_lines(stored: MemoryService, jobs: Jobs, tmp_path: Path) -> None:
    app = create_app(stored, settings_in(tmp_path, api={"max_body_mb": 0.001}), jobs)
    client = client_of(app, Tenants(0).key("a"))
    lines = b"".join(b'{"text": "line %d", "user_id": "import", "bank": "dialog"}\n' % n for n in range(300))
    assert client.post("/v1/import", content=lines).json()["added"] == 300
    whole = client.post("/v1/import", content=b'{"results": [' + b" " * 2_000 + b"]}")
    assert fields_of(whole) == ["body"]
