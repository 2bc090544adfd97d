"""Archive, restore, suppress, unsuppress and the forecast over REST."""

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import add, search


@pytest.mark.parametrize(
    ("away", "back", "state"),
    [
        ("archive", "restore", "archived"),
        ("suppress", "unsuppress", "suppressed"),
    ],
)
def test_there_and_back(client: TestClient, away: str, back: str, state: str) -> None:
    name = add(client, "the old pier")
    answer = client.post(f"/v1/memories/{name}/{away}")
    assert (answer.status_code, answer.json()["state"]) == (200, state)
    assert search(client, "old pier") == []
    assert client.get("/v1/memories", params={"user_id": "alice", "state": state}).json()["total"] == 1
    assert client.post(f"/v1/memories/{name}/{away}").json() == answer.json()
    assert client.post(f"/v1/memories/{name}/{back}").json()["state"] == "active"
    assert [hit["id"] for hit in search(client, "old pier")] == [name]
    events = [each["event"] for each in client.get(f"/v1/memories/{name}/history").json()["items"]]
    assert events == ["add", "state", "state"]


def test_what_may_not_be(client: TestClient) -> None:
    name = add(client, "the old pier")
    assert client.post("/v1/memories/nope/archive").status_code == 404
    assert client.post(f"/v1/memories/{name}/archive", params={"expected_revision": 9}).status_code == 409
    client.post(f"/v1/memories/{name}/suppress")
    assert client.post(f"/v1/memories/{name}/archive").status_code == 409
    assert client.post(f"/v1/memories/{name}/restore").status_code == 409


def test_an_id_with_odd_characters(client: TestClient) -> None:
    """Case 84."""
    body = {"bank": "dialog", "text": "the old pier", "user_id": "alice", "id": "a/b c?#"}
    client.post("/v1/memories", json=body)
    assert client.post("/v1/memories/a%2Fb%20c%3F%23/archive").json()["state"] == "archived"


def test_forecast(client: TestClient) -> None:
    name = add(client, "the old pier")
    told = client.get("/v1/forecast", params={"user_id": "alice", "days": 400}).json()
    assert (told["total"], told["memories"]) == (1, 1)
    [item] = told["items"]
    assert (item["id"], item["reason"], item["to"]) == (name, "forgotten", "archived")
    assert client.get("/v1/forecast", params={"user_id": "bob"}).json()["items"] == []
    assert client.get("/v1/forecast").status_code == 422
    assert client.get("/v1/forecast", params={"user_id": "alice", "days": -1}).status_code == 422
    assert client.get("/v1/forecast", params={"user_id": "alice", "bank": "attic"}).status_code == 422
