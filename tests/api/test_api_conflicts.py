"""What a write supersedes, the job `conflicts`, and `as_of` of get, list and search over REST."""

from typing import Any

from starlette.testclient import TestClient

from tests.api.conftest import search

JAN, FEB, MAR, APR = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"


def say(client: TestClient, text: str, created_at: str, **fields: Any) -> dict[str, Any]:
    body = {"bank": "dialog", "user_id": "alice", "text": text, "created_at": created_at, **fields}
    answer = client.post("/v1/memories", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def read(client: TestClient, name: str, **params: Any) -> dict[str, Any]:
    answer = client.get(f"/v1/memories/{name}", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def listed(client: TestClient, **params: Any) -> list[str]:
    answer = client.get("/v1/memories", params={"user_id": "alice", **params})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["items"]]


def test_an_add_names_what_it_superseded(client: TestClient) -> None:
    oslo = say(client, "I live in Oslo.", JAN)
    both = say(client, "I live in Oslo. My phone number is 555-0100.", JAN)
    rome = say(client, "I live in Rome.", MAR)
    assert (oslo["superseded"], rome["superseded"]) == ([], [oslo["id"]])
    old = read(client, oslo["id"])
    assert (old["state"], old["superseded_by"], old["valid_to"]) == ("superseded", rome["id"], MAR)
    part = read(client, both["id"])
    assert (part["state"], part["ended"]) == (
        "active",
        [
            {
                "subject": "@user",
                "attribute": "residence",
                "value": "oslo",
                "new_id": rome["id"],
                "from_instant": MAR,
                "reason": "changed",
            }
        ],
    )
    assert {hit["id"] for hit in search(client, "where does alice live")} == {rome["id"], both["id"]}
    batch = {"items": [{"bank": "dialog", "user_id": "alice", "text": "I live in Bern.", "created_at": APR}]}
    assert client.post("/v1/memories/batch", json=batch).json()["results"][0]["superseded"] == [rome["id"]]


def test_as_of_tells_what_was_true_then(client: TestClient) -> None:
    oslo, rome = (say(client, f"I live in {place}.", at)["id"] for place, at in (("Oslo", JAN), ("Rome", MAR)))
    assert (read(client, oslo, as_of=FEB)["state"], read(client, oslo, as_of=APR)["state"]) == ("active", "superseded")
    assert client.get(f"/v1/memories/{rome}", params={"as_of": FEB}).status_code == 404
    assert (listed(client, as_of=FEB), listed(client, as_of=APR), listed(client)) == ([oslo], [rome], [rome])
    assert listed(client, as_of="1769904000") == [oslo]  # FEB in seconds
    for at, expected in ((FEB, oslo), (APR, rome)):
        body = {"query": "where does alice live", "user_id": "alice", "as_of": at}
        assert [hit["id"] for hit in client.post("/v1/search", json=body).json()["results"]] == [expected]


def test_a_deleted_memory_is_there_as_of_before(client: TestClient) -> None:
    """Case 106."""
    name = say(client, "the old pier", JAN)["id"]
    client.delete(f"/v1/memories/{name}")
    assert client.get(f"/v1/memories/{name}").status_code == 404
    assert read(client, name, as_of=FEB)["text"] == "the old pier"


def test_a_time_that_is_none(client: TestClient) -> None:
    for path in ("/v1/memories?user_id=alice&as_of=soon", "/v1/memories/x?as_of=soon"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "as_of")


def test_restore_takes_it_back_and_the_job_agrees(client: TestClient) -> None:
    oslo = say(client, "I live in Oslo.", JAN)["id"]
    say(client, "I live in Rome.", MAR)
    back = client.post(f"/v1/memories/{oslo}/restore").json()
    assert (back["state"], back["superseded_by"], back["valid_to"], back["ended"]) == ("active", None, None, [])
    assert oslo in {hit["id"] for hit in search(client, "live in Oslo")}
    assert len(listed(client)) == 2
