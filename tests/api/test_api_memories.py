"""Add, list, read, change, delete over REST."""

from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import ClientFor, Tenants, add, client_of, fields_of, search, settings_in
from vimbank.api.app import create_app
from vimbank.domain.models import Vectors
from vimbank.encoders.hashing import HashingEncoder
from vimbank.errors import ModelError
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings
from vimbank.wiring import open_encoder, open_service
from vimbank.wiring.jobs import open_jobs


def test_an_added_memory_is_found_by_the_next_search_and_read_back(client: TestClient) -> None:
    answer = client.post(
        "/v1/memories",
        json={
            "bank": "dialog",
            "text": "Anna is allergic to peanuts",
            "user_id": "alice",
            "session_id": "s1",
            "title": "health",
            "speaker": "Anna",
            "metadata": {"topic": "health"},
            "event_at": "2026-01-31T18:30:00+09:00",
            "event_id": "e1",
            "position": 4,
            "importance": 1,
        },
    )
    assert answer.status_code == 201
    body = answer.json()
    assert set(body) == {"id", "revision", "duplicate", "segments", "superseded"}
    assert (body["duplicate"], body["segments"], body["superseded"]) == (False, 0, [])
    memory = client.get(f"/v1/memories/{body['id']}").json()
    assert memory["event_at"] == "2026-01-31T09:30:00Z"
    assert (memory["title"], memory["speaker"], memory["importance"]) == ("health", "Anna", 1.0)
    assert memory["source"] == {"parent_id": None, "position": 4, "start": None, "end": None, "event_id": "e1"}
    assert memory["revision"] == body["revision"]
    assert [hit["id"] for hit in search(client, "allergic peanuts")] == [body["id"]]


def test_the_same_write_again_is_a_duplicate_and_other_content_under_its_id_a_conflict(client: TestClient) -> None:
    body = {"bank": "dialog", "text": "tea at five", "user_id": "alice", "id": "own-1"}
    first = client.post("/v1/memories", json=body).json()
    assert client.post("/v1/memories", json=body).json() == {**first, "duplicate": True}
    clash = client.post("/v1/memories", json={**body, "text": "coffee at six"})
    assert clash.status_code == 409
    assert clash.json()["type"] == "urn:vimbank:problem:conflict"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n\t "}, "text"),
        ({"text": "\u200b\u200d\ufeff"}, "text"),
        ({"text": None}, "text"),
        ({"bank": "nope"}, "bank"),
        ({"user_id": ""}, "user_id"),
        ({"user_id": 7}, "user_id"),
        ({"importance": 1.5}, "importance"),
        ({"importance": True}, "importance"),
        ({"pinned": 1}, "pinned"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"metadata": [1]}, "metadata"),
        ({"position": -1}, "position"),
        ({"colour": "red"}, "colour"),
        ({"source": {"parent_id": "x"}}, "source"),
    ],
)
def test_a_bad_value_names_its_field_and_nothing_is_stored_case_81(
    client: TestClient, change: dict[str, Any], field: str
) -> None:
    body = {"bank": "dialog", "text": "tea", "user_id": "alice", **change}
    assert fields_of(client.post("/v1/memories", json=body)) == [field]
    assert client.get("/v1/memories").json()["total"] == 0


def test_every_bad_field_is_named_at_once(client: TestClient) -> None:
    answer = client.post("/v1/memories", json={"bank": "dialog", "importance": 2, "x": 1})
    assert sorted(fields_of(answer)) == ["importance", "text", "user_id", "x"]


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00+09:00", "2025-12-31T15:00:00Z"),
        (1767225600, "2026-01-01T00:00:00Z"),
        (1767225600000, "2026-01-01T00:00:00Z"),
        ("2026-01-01", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.25Z", "2026-01-01T00:00:00.250000Z"),
    ],
)
def test_times_in_any_form_are_one_instant_case_103(client: TestClient, given: object, instant: str) -> None:
    memory_id = add(client, "new year", created_at=given)
    assert client.get(f"/v1/memories/{memory_id}").json()["created_at"] == instant


def test_a_batch_answers_item_by_item_in_order(client: TestClient) -> None:
    items: list[Any] = [
        {"bank": "dialog", "text": "one", "user_id": "alice"},
        {"bank": "dialog", "text": "two", "user_id": "alice", "colour": "red"},
        3,
        {"bank": "nope", "text": "four", "user_id": "alice"},
        {"bank": "dialog", "text": "five", "user_id": "alice"},
    ]
    answer = client.post("/v1/memories/batch", json={"items": items})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert answer.json()["failed"] == 3
    assert ["id" in result for result in results] == [True, False, False, False, True]
    problems = [result["error"] for result in results if "error" in result]
    assert [problem["status"] for problem in problems] == [422, 422, 422]
    assert [problem["errors"][0]["field"] for problem in problems] == ["colour", "body", "bank"]
    assert [client.get(f"/v1/memories/{results[i]['id']}").json()["text"] for i in (0, 4)] == ["one", "five"]


def test_a_batch_is_not_empty_nor_endless(client: TestClient) -> None:
    assert fields_of(client.post("/v1/memories/batch", json={"items": []})) == ["items"]
    item = {"bank": "dialog", "text": "x", "user_id": "alice"}
    assert fields_of(client.post("/v1/memories/batch", json={"items": [item] * 1_001})) == ["items"]


class FailingEncoder(HashingEncoder):
    """Refuses any text that has the word «fourth» while ``failing``."""

    failing = True

    def encode_documents(self, texts: Any) -> Vectors:
        if self.failing and any("fourth" in text for text in texts):
            raise ModelError("the model gave nothing")
        return super().encode_documents(texts)


def test_one_failed_embedding_is_named_and_the_retry_completes_the_batch_case_21(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    dimension = open_encoder(EncoderSettings(kind="hashing")).identity.dimension
    encoder = FailingEncoder(dimension)
    words = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
    items = [{"bank": "dialog", "text": f"the {word} thing", "user_id": "alice"} for word in words]
    with open_service(settings, encoder=encoder) as service:
        client = client_of(create_app(service, settings, open_jobs(settings, service)), Tenants(0).key("a"))
        answer = client.post("/v1/memories/batch", json={"items": items}).json()
        assert answer["failed"] == 1
        assert answer["results"][3]["error"]["type"] == "urn:vimbank:problem:model-error"
        assert client.get("/v1/memories").json()["total"] == 9
        encoder.failing = False
        again = client.post("/v1/memories/batch", json={"items": items}).json()
        assert again["failed"] == 0
        assert [result["duplicate"] for result in again["results"]] == [True] * 3 + [False] + [True] * 6
        assert client.get("/v1/memories").json()["total"] == 10


def test_a_list_pages_through_everything_with_the_exact_total_case_79(client: TestClient) -> None:
    for start in range(0, 250, 50):
        items = [{"bank": "dialog", "text": f"note {i}", "user_id": "alice"} for i in range(start, start + 50)]
        assert client.post("/v1/memories/batch", json={"items": items}).json()["failed"] == 0
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"user_id": "alice", **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/memories", params=params).json()
        assert page["total"] == 250
        seen += [item["text"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"note {i}" for i in range(250)]


def test_counts_go_past_a_thousand_in_list_and_stats_case_138(client: TestClient) -> None:
    items = [{"bank": "dialog", "text": f"note {i}", "user_id": "alice"} for i in range(1_050)]
    for start in range(0, 1_050, 525):
        assert client.post("/v1/memories/batch", json={"items": items[start : start + 525]}).json()["failed"] == 0
    assert client.get("/v1/memories", params={"user_id": "alice", "limit": 1_000}).json()["total"] == 1_050
    stats = client.get("/v1/stats").json()
    assert (stats["memories"], stats["by_bank"]["dialog"], stats["users"]) == (1_050, 1_050, 1)
    assert client.get("/v1/stats", params={"user_id": "alice"}).json()["memories"] == 1_050


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"usr_id": "alice"}, "usr_id"),
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"state": "lost"}, "state"),
        ({"filter": "{"}, "filter"),
        ({"filter": '{"age": {"gtt": 5}}'}, "filter.age.gtt"),
        ({"cursor": "bogus"}, "cursor"),
    ],
)
def test_a_list_refuses_what_it_does_not_understand(client: TestClient, params: dict[str, Any], field: str) -> None:
    assert fields_of(client.get("/v1/memories", params=params)) == [field]


def test_a_list_filters_by_scope_and_metadata(client: TestClient) -> None:
    add(client, "one", session_id="s1", metadata={"a": 1})
    add(client, "two", session_id="s1", metadata={"a": 2})
    add(client, "three", session_id="s2", kind="fact", metadata={"a": 1})

    def texts(**params: str) -> list[str]:
        return [item["text"] for item in client.get("/v1/memories", params=params).json()["items"]]

    assert texts(session_id="s1") == ["one", "two"]
    assert texts(filter='{"a": 1}') == ["one", "three"]
    assert texts(filter='{"a": 1}', kind="fact") == ["three"]
    assert texts(state="any") == ["one", "two", "three"]
    assert texts(state="archived") == []


def test_an_update_of_the_text_keeps_metadata_and_creation_and_is_found_case_73(client: TestClient) -> None:
    memory_id = add(client, "Anna likes tea", metadata={"a": 1})
    before = client.get(f"/v1/memories/{memory_id}").json()
    after = client.patch(f"/v1/memories/{memory_id}", json={"text": "Anna likes coffee"}).json()
    assert after["text"] == "Anna likes coffee"
    assert (after["metadata"], after["created_at"]) == ({"a": 1}, before["created_at"])
    assert datetime.fromisoformat(after["updated_at"]) > datetime.fromisoformat(before["updated_at"])
    assert after["revision"] > before["revision"]
    assert [hit["text"] for hit in search(client, "coffee", fusion="sparse")] == ["Anna likes coffee"]
    assert search(client, "tea", fusion="sparse") == []


def test_an_update_merges_metadata_and_clears_what_is_null(client: TestClient) -> None:
    memory_id = add(client, "tea", title="drink", metadata={"a": 1, "b": 2}, importance=0.5)
    change = {"title": None, "importance": None, "metadata": {"a": None, "c": 3}}
    after = client.patch(f"/v1/memories/{memory_id}", json=change).json()
    assert (after["title"], after["importance"], after["metadata"]) == (None, None, {"b": 2, "c": 3})


def test_an_update_of_a_stale_revision_is_a_conflict(client: TestClient) -> None:
    memory_id = add(client, "tea")
    revision = client.get(f"/v1/memories/{memory_id}").json()["revision"]
    body = {"pinned": True, "expected_revision": revision}
    assert client.patch(f"/v1/memories/{memory_id}", json=body).status_code == 200
    assert client.patch(f"/v1/memories/{memory_id}", json=body).status_code == 409


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"text": " "}, "text"),
        ({"pinned": None}, "pinned"),
        ({"bank": "task"}, "bank"),
        ({"importance": -1}, "importance"),
    ],
)
def test_a_bad_update_changes_nothing(client: TestClient, change: dict[str, Any], field: str) -> None:
    memory_id = add(client, "tea")
    before = client.get(f"/v1/memories/{memory_id}").json()
    assert fields_of(client.patch(f"/v1/memories/{memory_id}", json=change)) == [field]
    assert client.get(f"/v1/memories/{memory_id}").json() == before


def test_history_tells_old_and_new_also_of_the_deleted_case_76(client: TestClient) -> None:
    memory_id = add(client, "v1")
    client.patch(f"/v1/memories/{memory_id}", json={"text": "v2"})
    assert client.delete(f"/v1/memories/{memory_id}").json() == {"deleted": 1}
    assert client.get(f"/v1/memories/{memory_id}").status_code == 404
    answer = client.get(f"/v1/memories/{memory_id}/history")
    assert answer.status_code == 200
    items = answer.json()["items"]
    assert [(item["event"], item["old_text"], item["new_text"]) for item in items] == [
        ("add", None, "v1"),
        ("update", "v1", "v2"),
        ("delete", "v2", None),
    ]
    assert {item["actor"] for item in items} == {"api:admin"}


def test_delete_all_takes_one_named_user_only_case_68(client: TestClient) -> None:
    for user in ("alice", "bob"):
        add(client, "tea", user_id=user, session_id="1")
        add(client, "coffee", user_id=user, session_id="2")
    assert fields_of(client.delete("/v1/memories")) == ["user_id"]
    assert fields_of(client.delete("/v1/memories", params={"user_id": ""})) == ["user_id"]
    assert fields_of(client.delete("/v1/memories", params={"user_id": "  "})) == ["user_id"]
    assert fields_of(client.delete("/v1/memories", params={"user_id": "*"})) == ["user_id"]
    assert fields_of(client.delete("/v1/memories", params={"user_id": "alice", "sesion_id": "1"})) == ["sesion_id"]
    assert fields_of(client.delete("/v1/memories?user_id=alice&user_id=bob")) == ["user_id"]
    assert client.get("/v1/memories").json()["total"] == 4
    assert client.delete("/v1/memories", params={"user_id": "alice", "session_id": "1"}).json() == {"deleted": 1}
    assert client.delete("/v1/memories", params={"user_id": "alice"}).json() == {"deleted": 1}
    assert [item["user_id"] for item in client.get("/v1/memories").json()["items"]] == ["bob", "bob"]
    assert search(client, "tea") == []
    assert len(search(client, "tea", user_id="bob", fusion="sparse")) == 1


@pytest.mark.parametrize(
    "path", ["nope", "../../etc", "..%2F..%2Fetc", "x" * 5_000, "%00", "%ff", "%F0%9F%90%88", "a%20b", "", "/", "%2F"]
)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE", "history"])
def test_a_bad_or_unknown_id_is_404_or_422_case_82(client: TestClient, path: str, method: str) -> None:
    url = f"/v1/memories/{path}"
    if method == "history":
        answer = client.get(f"{url}/history")
    else:
        answer = client.request(method, url, json={"pinned": True} if method == "PATCH" else None)
    assert answer.status_code in (404, 405, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("memory_id", ["a/b c?#", "a/b/", "ünï+:;@&=", "...", "日本/東京", "a" * 200])
def test_an_id_of_odd_characters_works_throughout_case_84(client: TestClient, memory_id: str) -> None:
    assert add(client, "odd", id=memory_id) == memory_id
    url = f"/v1/memories/{quote(memory_id, safe='')}"
    assert client.get(url).json()["id"] == memory_id
    assert client.patch(url, json={"text": "odder"}).json()["text"] == "odder"
    assert len(client.get(f"{url}/history").json()["items"]) == 2
    assert client.delete(url).json() == {"deleted": 1}
    assert client.get(url).status_code == 404


@pytest.mark.parametrize("memory_id", ["", "  ", "..", "a/../b", "a/history", "a\u0000b", "x" * 5_000])
def test_an_id_that_no_path_could_name_is_refused_by_name_case_84(client: TestClient, memory_id: str) -> None:
    body = {"bank": "dialog", "text": "odd", "user_id": "alice", "id": memory_id}
    assert fields_of(client.post("/v1/memories", json=body)) == ["id"]


def test_a_role_stands_above_those_below_it(client_for: ClientFor) -> None:
    reader, writer, admin = (client_for(key) for key in ("a-read", "a-write", "a"))
    body = {"bank": "dialog", "text": "tea", "user_id": "alice"}
    assert reader.post("/v1/memories", json=body).status_code == 403
    assert reader.post("/v1/memories", json={"x": 1}).status_code == 403
    memory_id = add(writer, "tea")
    url = f"/v1/memories/{memory_id}"
    assert reader.get(url).status_code == writer.get(url).status_code == 200
    assert reader.patch(url, json={"text": "x"}).status_code == reader.delete(url).status_code == 403
    assert reader.post("/v1/feedback", json={"id": memory_id, "signal": "used"}).status_code == 403
    assert [hit["id"] for hit in search(reader, "tea")] == [memory_id]
    scope = {"user_id": "alice"}
    assert reader.get("/v1/memories", params=scope).status_code == 200
    assert writer.get("/v1/memories").status_code == 403
    assert writer.get("/v1/stats").status_code == 403
    assert reader.get("/v1/stats", params=scope).json()["memories"] == 1
    everyone = {"query": "tea", "user_id": "*"}
    assert writer.post("/v1/search", json=everyone).status_code == 403
    assert [hit["id"] for hit in search(admin, "tea", user_id="*")] == [memory_id]
    assert writer.delete("/v1/memories", params=scope).status_code == 403
    assert admin.delete("/v1/memories", params=scope).json() == {"deleted": 1}


def test_an_id_of_another_tenant_is_as_unknown_as_one_that_never_was_case_61(client_for: ClientFor) -> None:
    ours, theirs = client_for("a"), client_for("b")
    memory_id = add(theirs, "their secret", id="m-1")
    before = theirs.get(f"/v1/memories/{memory_id}").json()
    requests: list[tuple[str, str, dict[str, Any] | None]] = [
        ("GET", "/v1/memories/{}", None),
        ("PATCH", "/v1/memories/{}", {"text": "ours now"}),
        ("DELETE", "/v1/memories/{}", None),
        ("GET", "/v1/memories/{}/history", None),
    ]
    for method, path, body in requests:
        foreign = ours.request(method, path.format("m-1"), json=body)
        unknown = ours.request(method, path.format("m-2"), json=body)
        assert foreign.status_code == 404
        assert foreign.content == unknown.content
        assert set(foreign.headers) == set(unknown.headers)
    feedback = [ours.post("/v1/feedback", json={"id": each, "signal": "wrong"}) for each in ("m-1", "m-2")]
    assert feedback[0].status_code == 404
    assert feedback[0].content == feedback[1].content
    assert theirs.get(f"/v1/memories/{memory_id}").json() == before


def test_no_read_path_shows_another_user_or_tenant_case_59(
    client_for: ClientFor, stored: MemoryService, tenants: Tenants
) -> None:
    ours, theirs = client_for("a"), client_for("b")
    add(ours, "secret launch date alpha", user_id="alice")
    add(ours, "secret launch date beta", user_id="bob")
    add(theirs, "secret launch date gamma", user_id="alice")
    for fusion in ("dense", "sparse", "convex", "rrf"):
        assert [hit["text"] for hit in search(ours, "secret launch date", fusion=fusion)] == [
            "secret launch date alpha"
        ]
    listed = ours.get("/v1/memories", params={"user_id": "alice"}).json()
    assert [item["text"] for item in listed["items"]] == ["secret launch date alpha"]
    assert ours.get("/v1/memories").json()["total"] == 2
    assert ours.get("/v1/stats", params={"user_id": "alice"}).json()["memories"] == 1
    assert ours.get("/v1/stats").json()["memories"] == 2
    assert stored.stats(tenants.b).memories == 1


def test_two_users_share_no_session_case_65(client: TestClient) -> None:
    add(client, "tea for alice", user_id="alice", session_id="1")
    add(client, "tea for bob", user_id="bob", session_id="1")
    assert [hit["text"] for hit in search(client, "tea", session_id="1")] == ["tea for alice"]
    assert client.delete("/v1/memories", params={"user_id": "alice", "session_id": "1"}).json() == {"deleted": 1}
    assert [hit["text"] for hit in search(client, "tea", user_id="bob", session_id="1")] == ["tea for bob"]


def test_the_same_query_of_two_tenants_has_two_answers_case_66(client_for: ClientFor) -> None:
    ours, theirs = client_for("a"), client_for("b")
    add(ours, "plans for the garden")
    add(theirs, "plans for the harbour")
    assert [hit["text"] for hit in search(ours, "plans")] == ["plans for the garden"]
    assert [hit["text"] for hit in search(theirs, "plans")] == ["plans for the harbour"]


def test_feedback_is_taken_for_a_known_memory(client: TestClient) -> None:
    memory_id = add(client, "tea")
    answer = client.post("/v1/feedback", json={"id": memory_id, "signal": "used"})
    assert (answer.status_code, answer.json()) == (200, {"id": memory_id, "signal": "used"})
    assert fields_of(client.post("/v1/feedback", json={"id": memory_id, "signal": "returned"})) == ["signal"]
