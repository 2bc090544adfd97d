"""Documents, sessions and tasks over REST."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import add, fields_of, search

RULES = "Quiet hours start at ten in the evening. " * 3


def test_a_document_comes_as_json(client: TestClient) -> None:
    body = {"user_id": "alice", "title": "House rules", "content": RULES, "metadata": {"year": 2026}, "id": "rules"}
    answer = client.post("/v1/documents", json=body)
    assert answer.status_code == 201
    assert (answer.json()["id"], answer.json()["segments"]) == ("rules", 1)
    hit = search(client, "quiet hours")[0]
    assert (hit["source"]["parent_id"], hit["title"], hit["metadata"]) == ("rules", "House rules", {"year": 2026})
    assert client.get("/v1/memories/rules").json()["kind"] == "document"


def test_a_document_comes_as_a_file(client: TestClient) -> None:
    files = {"file": ("rules.md", f"# House rules\n\n{RULES}".encode(), "text/markdown")}
    data = {"user_id": "alice", "metadata": '{"year": 2026}', "bank": "knowledge"}
    answer = client.post("/v1/documents", files=files, data=data)
    assert answer.status_code == 201, answer.text
    assert search(client, "quiet hours")[0]["metadata"] == {"year": 2026}
    assert client.get(f"/v1/memories/{answer.json()['id']}").json()["title"] == "rules.md"


@pytest.mark.parametrize("sent", ["1767225600", "1767225600000", "2026-01-01T00:00:00Z"])
def test_a_form_takes_the_times_that_json_takes(client: TestClient, sent: str) -> None:
    files = {"file": ("rules.md", f"# House rules\n\n{RULES}".encode(), "text/markdown")}
    answer = client.post("/v1/documents", files=files, data={"user_id": "alice", "created_at": sent})
    assert answer.status_code == 201, answer.text
    assert client.get(f"/v1/memories/{answer.json()['id']}").json()["created_at"] == "2026-01-01T00:00:00Z"


FILE = {"file": ("a.txt", b"tea", "text/plain")}


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"json": {"user_id": "alice", "title": "t"}}, "content"),
        ({"json": {"user_id": "alice", "title": "t", "content": "  "}}, "text"),
        ({"json": {"user_id": "alice", "title": "t", "content": "x", "colour": 1}}, "colour"),
        ({"json": [1]}, "body"),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, "body"),
        ({"content": b"tea", "headers": {"content-type": "text/plain"}}, "body"),
        ({"files": FILE, "data": {}}, "user_id"),
        ({"files": FILE, "data": {"user_id": "alice", "metadata": "{"}}, "metadata"),
        ({"files": FILE, "data": {"user_id": "alice", "metadata": "[]"}}, "metadata"),
        ({"files": FILE, "data": {"user_id": "alice", "content": "x"}}, "content"),
        ({"files": {"file": (None, "tea")}, "data": {"user_id": "alice"}}, "file"),
        ({"files": {"attachment": FILE["file"]}, "data": {"user_id": "alice"}}, "attachment"),
    ],
)
def test_a_bad_document_names_its_field(client: TestClient, sent: dict[str, Any], field: str) -> None:
    assert fields_of(client.post("/v1/documents", **sent))[0] == field
    assert client.get("/v1/memories").json()["total"] == 0


def test_a_malformed_form_is_a_bad_request(client: TestClient) -> None:
    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = client.post("/v1/documents", content=b"nothing of the kind", headers=headers)
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:vimbank:problem:bad-request"


def test_turns_become_rounds_and_go_on_where_they_ended(client: TestClient) -> None:
    turns = [
        {"role": "user", "content": "Can I eat satay?", "event_at": "2026-01-31T09:30:00Z", "speaker": "Anna"},
        {"role": "assistant", "content": "Better not, its sauce has peanuts."},
        {"role": "system", "content": "The session was paused."},
    ]
    url = "/v1/sessions/trip%2F1/turns"
    answer = client.post(url, json={"user_id": "alice", "turns": turns}).json()
    assert (answer["failed"], len(answer["results"])) == (0, 2)
    client.post(url, json={"user_id": "alice", "turns": [{"role": "user", "content": "And pad thai?"}]})
    items = client.get("/v1/memories", params={"session_id": "trip/1"}).json()["items"]
    assert [(item["kind"], item["source"]["position"]) for item in items] == [("round", 0), ("turn", 1), ("turn", 2)]
    assert items[0]["text"] == "Can I eat satay?\nBetter not, its sauce has peanuts."
    assert (items[0]["speaker"], items[0]["event_at"]) == ("Anna", "2026-01-31T09:30:00Z")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"user_id": "alice", "turns": []}, "turns"),
        ({"user_id": "alice", "turns": [{"role": "user", "content": " "}]}, "turns.0.content"),
        ({"user_id": "alice", "turns": [{"role": "user", "content": "x", "at": 1}]}, "turns.0.at"),
        ({"turns": [{"role": "user", "content": "x"}]}, "user_id"),
    ],
)
def test_bad_turns_name_their_place(client: TestClient, body: dict[str, Any], field: str) -> None:
    assert fields_of(client.post("/v1/sessions/s1/turns", json=body)) == [field]


def test_a_task_becomes_a_run_and_its_steps(client: TestClient) -> None:
    body = {
        "user_id": "alice",
        "id": "run-1",
        "instruction": "put a clean mug on the desk",
        "steps": [
            {"thought": "mugs are in the kitchen", "action": "open cabinet 1", "observation": "a dirty mug"},
            {"tool": "wash", "arguments": {"object": "mug 1"}, "observation": "it is clean"},
        ],
        "outcome": "success",
    }
    answer = client.post("/v1/tasks", json=body)
    assert answer.status_code == 201
    assert (answer.json()["id"], answer.json()["failed"], len(answer.json()["results"])) == ("run-1", 0, 3)
    items = client.get("/v1/memories", params={"parent_id": "run-1"}).json()["items"]
    assert [item["kind"] for item in items] == ["step", "step"]
    assert search(client, "wash mug", banks=["task"])[0]["metadata"]["outcome"] == "success"


def test_a_bad_task_names_its_place_and_a_taken_id_is_a_conflict(client: TestClient) -> None:
    body = {"user_id": "alice", "instruction": "put a mug on the desk"}
    assert fields_of(client.post("/v1/tasks", json={**body, "steps": [{}]})) == ["steps.0"]
    assert fields_of(client.post("/v1/tasks", json={**body, "outcome": "maybe"})) == ["outcome"]
    add(client, "something else", id="run-1")
    assert client.post("/v1/tasks", json={**body, "id": "run-1"}).status_code == 409
