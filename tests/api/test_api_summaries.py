"""Summaries and portraits over HTTP: whose they are, what they say of themselves, stale at once."""

from starlette.testclient import TestClient

from tests.api.conftest import ClientFor, Tenants
from vimbank.jobs.runner import Jobs

TURNS = (
    "I moved to Lisbon on 3 March.",
    "I love the cello.",
    "My cat Mochi hides from everyone.",
    "The ferry takes forty minutes.",
    "I am allergic to peanuts.",
)


def told(client: TestClient, user: str = "ana") -> list[str]:
    turns = [{"role": "user", "content": text, "event_at": "2026-01-01T09:00:00Z"} for text in TURNS]
    answer = client.post("/v1/sessions/s/turns", json={"user_id": user, "turns": turns})
    return [each["id"] for each in answer.json()["results"]]


def written(jobs: Jobs, tenant: str) -> None:
    for name in ("summarise", "portrait"):
        job = jobs.start(name, {"tenant": tenant})
        for _ in jobs.events(job.id, timeout_s=20):
            pass
        assert jobs.get(job.id).state == "succeeded"


def test_they_are_listed_by_level_and_say_what_they_are(client_for: ClientFor, tenants: Tenants, jobs: Jobs) -> None:
    client = client_for("a-write")
    ids = told(client)
    written(jobs, tenants.a)
    found = client.get("/v1/summaries", params={"user_id": "ana"}).json()
    assert sorted(each["metadata"]["level"] for each in found["items"]) == ["day", "global", "group"]
    (day,) = client.get("/v1/summaries", params={"user_id": "ana", "level": "day", "bank": "dialog"}).json()["items"]
    assert day["metadata"]["sources"] == ids
    assert (day["metadata"]["method"], day["metadata"]["model"], day["metadata"]["stale"]) == (
        "extractive",
        None,
        False,
    )
    portraits = client.get("/v1/portraits", params={"user_id": "ana"}).json()
    assert {each["kind"] for each in portraits["items"]} == {"portrait"}
    assert portraits["total"] == 2
    client.delete(f"/v1/memories/{ids[0]}")
    stale = client.get("/v1/summaries", params={"user_id": "ana"}).json()["items"]
    assert all(each["metadata"]["stale"] for each in stale)


def test_the_one_nearest_to_a_question(client_for: ClientFor, tenants: Tenants, jobs: Jobs) -> None:
    client = client_for("a-write")
    told(client)
    written(jobs, tenants.a)
    found = client.get("/v1/summaries", params={"user_id": "ana", "question": "where is the cat?"}).json()
    assert [each["metadata"]["level"] for each in found["items"]] == ["group"]
    none = client.get("/v1/summaries", params={"user_id": "ben", "question": "where is the cat?"}).json()
    assert none == {"items": [], "total": 0, "next_cursor": None}


def test_case_61_nothing_of_another_tenant_or_user(client_for: ClientFor, tenants: Tenants, jobs: Jobs) -> None:
    told(client_for("a-write"))
    written(jobs, tenants.a)
    for path in ("/v1/summaries", "/v1/portraits"):
        assert client_for("b").get(path, params={"user_id": "ana"}).json()["total"] == 0
        assert client_for("a-read").get(path, params={"user_id": "ben"}).json()["total"] == 0
        assert client_for("a-read").get(path).status_code == 422
        assert client_for("a-read").get(path, params={"user_id": "ana", "level": "year"}).status_code == 422
