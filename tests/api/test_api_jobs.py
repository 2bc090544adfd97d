"""The job routes, over jobs that run in threads as in a server."""

import asyncio
import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import ClientFor, fields_of
from tests.jobs_kit import GATES, new_gate, until
from vimbank.api.events import event_of, job_events
from vimbank.domain.jobs import Job, JobState, Progress
from vimbank.errors import BackendUnavailable, NotFound
from vimbank.jobs.runner import Jobs

UNKNOWN = "0" * 32


@pytest.fixture
def client(client_for: ClientFor) -> TestClient:
    """An operator of the server."""
    return client_for("operator")


def start(client: TestClient, name: str, params: dict[str, Any] | None = None, key: str | None = None) -> str:
    """Start a job; its id."""
    answer = client.post("/v1/jobs", json={"name": name, "params": params or {}, "key": key})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def get(client: TestClient, job_id: str) -> dict[str, Any]:
    """The job as it is told."""
    answer = client.get(f"/v1/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    return job


def ended(client: TestClient, job_id: str) -> dict[str, Any]:
    """The job, once it has ended."""
    until(lambda: get(client, job_id)["finished_at"] is not None)
    return get(client, job_id)


def key() -> str:
    return uuid.uuid4().hex


# --- start, read, list ------------------------------------------------------------------------------------------


def test_a_job_is_queued_at_its_location_and_has_a_result_in_the_end(client: TestClient) -> None:
    answer = client.post("/v1/jobs", json={"name": "check", "params": {"tenant": "nobody"}})
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    assert answer.json()["params"] == {"tenant": "nobody"}
    job = ended(client, answer.json()["id"])
    assert (job["state"], job["error"], job["attempts"], job["queue"]) == ("succeeded", None, 1, "index")
    assert job["result"]["ok"] is True
    told = client.get(f"{answer.headers['location']}/result")
    assert (told.status_code, told.json()["result"]) == (200, job["result"])


def test_a_running_job_tells_its_progress_and_has_no_result_yet(client: TestClient) -> None:
    gate = new_gate()
    job_id = start(client, "held", {"gate": gate})
    until(lambda: get(client, job_id)["progress"]["done"] > 0)
    job = get(client, job_id)
    assert (job["state"], job["result"], job["progress"]["message"]) == ("running", None, "steps")
    refused = client.get(f"/v1/jobs/{job_id}/result")
    assert refused.status_code == 409
    assert "running" in refused.json()["detail"]
    GATES[gate].set()
    assert ended(client, job_id)["result"]["steps"] > 0


def test_a_job_that_fails_says_what_stopped_it(client: TestClient) -> None:
    job = ended(client, start(client, "failing"))
    assert (job["state"], job["result"], job["error"]) == ("failed", None, "it broke")
    refused = client.get(f"/v1/jobs/{job['id']}/result")
    assert (refused.status_code, "failed: it broke" in refused.json()["detail"]) == (409, True)


def test_the_list_is_newest_first_and_can_be_narrowed(client: TestClient) -> None:
    mine = [start(client, "failing") for _ in range(3)]
    for job_id in mine:
        ended(client, job_id)
    listed = client.get("/v1/jobs", params={"name": "failing", "state": "failed", "limit": 2}).json()["items"]
    assert [job["id"] for job in listed] == mine[:0:-1]
    assert client.get("/v1/jobs", params={"name": "failing", "state": "running"}).json() == {"items": []}
    assert fields_of(client.get("/v1/jobs", params={"state": "gone"})) == ["state"]
    assert fields_of(client.get("/v1/jobs", params={"name": "\x00"})) == ["name"]
    assert fields_of(client.get("/v1/jobs", params={"limit": 0})) == ["limit"]
    assert fields_of(client.get("/v1/jobs", params={"colour": "red"})) == ["colour"]


def test_what_can_be_started_is_listed_with_its_parameters(client: TestClient) -> None:
    kinds = {kind["name"]: kind for kind in client.get("/v1/jobs/names").json()["items"]}
    assert {"check", "reindex", "snapshot", "compact", "held"} <= set(kinds)
    assert set(kinds["check"]["params"]) == {"tenant", "repair"}
    assert kinds["check"]["every_s"] == 86_400
    assert kinds["held"]["every_s"] is None


def test_every_parameter_that_is_listed_is_one_that_the_job_knows(client: TestClient) -> None:
    """A name that the job refuses would be told as unknown."""
    for kind in client.get("/v1/jobs/names").json()["items"]:
        refused = client.post("/v1/jobs", json={"name": kind["name"], "params": {"colour": 1}})
        (error,) = [each for each in refused.json()["errors"] if each["field"] == "params.colour"]
        for name in kind["params"]:
            assert name in error["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "nonsense"}, "name"),
        ({"name": 7}, "name"),
        ({"name": "check", "colour": "red"}, "colour"),
        ({"name": "check", "params": []}, "params"),
        ({"name": "check", "params": {"colour": "red"}}, "params.colour"),
        ({"name": "check", "params": {"tenant": " "}}, "params.tenant"),
        ({"name": "compact", "params": {"keep_days": -1}}, "params.keep_days"),
        ({"name": "compact", "params": {"keep_days": 1e300}}, "params.keep_days"),
        ({"name": "held", "params": {"gate": 7}}, "params.gate"),
        ({"name": "check", "key": " "}, "key"),
    ],
)
def test_what_is_wrong_is_named(client: TestClient, body: dict[str, Any], field: str) -> None:
    assert fields_of(client.post("/v1/jobs", json=body)) == [field]


@pytest.mark.parametrize("path", ["", "/result", "/events"])
def test_an_unknown_job_is_404(client: TestClient, path: str) -> None:
    assert client.get(f"/v1/jobs/{UNKNOWN}{path}").status_code == 404


def test_an_unknown_job_cannot_be_cancelled_and_an_odd_id_is_refused(client: TestClient) -> None:
    assert client.post(f"/v1/jobs/{UNKNOWN}/cancel").status_code == 404
    assert fields_of(client.get("/v1/jobs/%00")) == ["id"]


# --- the key ----------------------------------------------------------------------------------------------------


def test_a_key_makes_asking_idempotent(client: TestClient) -> None:
    mine, gate = key(), new_gate()
    job_id = start(client, "held", {"gate": gate}, mine)
    again = client.post("/v1/jobs", json={"name": "held", "params": {"gate": gate}, "key": mine})
    assert (again.status_code, again.json()["id"]) == (200, job_id)
    assert again.headers["location"] == f"/v1/jobs/{job_id}"
    other = client.post("/v1/jobs", json={"name": "held", "params": {"gate": "another"}, "key": mine})
    assert (other.status_code, other.json()["type"]) == (409, "urn:vimbank:problem:conflict")
    GATES[gate].set()
    ended(client, job_id)
    assert client.post("/v1/jobs", json={"name": "held", "params": {"gate": gate}, "key": mine}).json()["id"] == job_id


def test_eight_at_once_with_one_key_start_one_job(client: TestClient) -> None:
    mine, gate = key(), new_gate()
    GATES[gate].set()
    barrier = threading.Barrier(8)

    def ask(_number: int) -> tuple[int, str]:
        barrier.wait()
        answer = client.post("/v1/jobs", json={"name": "held", "params": {"gate": gate}, "key": mine})
        return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert sorted(status for status, _ in answers) == [200] * 7 + [202]
    assert len({job_id for _, job_id in answers}) == 1
    assert ended(client, answers[0][1])["attempts"] == 1


def test_a_queue_out_of_reach_is_503_names_it_and_keeps_the_job(
    client: TestClient, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Down:
        def send(self, _job: Job) -> None:
            raise BackendUnavailable("redis", "refused")

    mine = key()
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_queue", Down())
        answer = client.post("/v1/jobs", json={"name": "failing", "key": mine})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["detail"] == "redis: refused"
    again = client.post("/v1/jobs", json={"name": "failing", "key": mine})
    assert (again.status_code, again.json()["state"]) == (200, "queued")
    jobs.requeue(queued_s=0)
    assert ended(client, again.json()["id"])["state"] == "failed"


# --- who may ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["a-read", "a-write", "a"])
def test_jobs_are_for_operators(client_for: ClientFor, kind: str) -> None:
    client = client_for(kind)
    asked = [client.get(f"/v1/jobs{path}") for path in ("", "/names", f"/{UNKNOWN}", f"/{UNKNOWN}/result")]
    asked += [client.get(f"/v1/jobs/{UNKNOWN}/events"), client.post(f"/v1/jobs/{UNKNOWN}/cancel")]
    asked.append(client.post("/v1/jobs", json={"name": "check"}))
    assert {answer.status_code for answer in asked} == {403}
    assert client_for("").get("/v1/jobs").status_code == 401


# --- cancel -----------------------------------------------------------------------------------------------------


def test_a_running_job_is_cancelled_at_its_next_step(client: TestClient) -> None:
    job_id = start(client, "held", {"gate": new_gate()})
    until(lambda: get(client, job_id)["state"] == "running")
    answer = client.post(f"/v1/jobs/{job_id}/cancel")
    assert (answer.status_code, answer.json()["cancel_requested"]) == (200, True)
    job = ended(client, job_id)
    assert (job["state"], job["result"]) == ("cancelled", None)
    again = client.post(f"/v1/jobs/{job_id}/cancel")
    assert (again.status_code, again.json()) == (200, job)


def test_a_job_that_waits_is_cancelled_at_once(client: TestClient) -> None:
    """The threads are taken, so the third has to wait."""
    gate = new_gate()
    running = [start(client, "held", {"gate": gate}) for _ in range(2)]
    until(lambda: all(get(client, job_id)["state"] == "running" for job_id in running))
    waiting = start(client, "held", {"gate": gate})
    assert client.post(f"/v1/jobs/{waiting}/cancel").json()["state"] == "cancelled"
    GATES[gate].set()
    assert {ended(client, job_id)["state"] for job_id in running} == {"succeeded"}
    assert get(client, waiting)["attempts"] == 0


# --- events -----------------------------------------------------------------------------------------------------


def parsed(text: str) -> list[dict[str, Any]]:
    """The events of a stream, comments and the time to retry left out."""
    events = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            events.append({**fields, "data": json.loads(fields["data"])})
    return events


def test_events_tell_the_progress_and_end_with_the_job(client: TestClient) -> None:
    gate = new_gate()
    job_id = start(client, "held", {"gate": gate})
    until(lambda: get(client, job_id)["progress"]["done"] > 0)
    threading.Timer(0.6, GATES[gate].set).start()
    answer = client.get(f"/v1/jobs/{job_id}/events")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.startswith("retry: 2000\n\n")
    *progress, end = parsed(answer.text)
    assert progress
    assert {event["event"] for event in progress} == {"progress"}
    assert [event["data"]["progress"]["done"] for event in progress] == sorted(
        {event["data"]["progress"]["done"] for event in progress}
    )
    assert (end["event"], end["data"]) == ("end", get(client, job_id))
    assert end["data"]["state"] == "succeeded"


def test_a_client_goes_on_after_the_last_event_and_is_told_when_there_is_no_more(client: TestClient) -> None:
    job_id = start(client, "failing")
    ended(client, job_id)
    (end,) = parsed(client.get(f"/v1/jobs/{job_id}/events").text)
    (again,) = parsed(client.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": "elsewhere"}).text)
    assert again == end
    done = client.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": end["id"]})
    assert (done.status_code, done.content) == (204, b"")


class ScriptedJobs(Jobs):
    """Jobs of which one is looked at; the last look stays."""

    def __init__(self, *looks: Job | Exception) -> None:
        self.looks = list(looks)
        self.looked = 0

    def get(self, job_id: str) -> Job:
        del job_id
        look = self.looks[min(self.looked, len(self.looks) - 1)]
        self.looked += 1
        if isinstance(look, Exception):
            raise look
        return look


def job(done: int, state: JobState = JobState.RUNNING) -> Job:
    return Job(
        id="j", name="held", params={}, queue="index", state=state, created_at=datetime(2026, 1, 31, tzinfo=UTC),
        progress=Progress(done),
    )  # fmt: skip


def streamed(jobs: Jobs, closing: threading.Event | None = None, **given: Any) -> list[bytes]:
    """All that one stream sends."""

    async def collect() -> list[bytes]:
        events = job_events(jobs, "j", closing=closing or threading.Event(), poll_s=0.001, **given)
        return [chunk async for chunk in events]

    return asyncio.run(asyncio.wait_for(collect(), 5))[1:]


def test_a_look_without_news_sends_nothing_and_what_the_client_knows_is_not_repeated() -> None:
    looks = [job(1), job(1), job(2), job(2, JobState.SUCCEEDED)]
    assert streamed(ScriptedJobs(*looks)) == [event_of(each).encode() for each in (looks[0], *looks[2:])]
    assert streamed(ScriptedJobs(*looks), last_event_id=event_of(looks[0]).id) == [
        event_of(each).encode() for each in looks[2:]
    ]


def test_silence_is_broken_by_comments() -> None:
    sent = streamed(ScriptedJobs(*[job(1)] * 50, job(1, JobState.FAILED)), keep_alive_s=0.01)
    assert b": keep-alive\n\n" in sent[1:-1]
    assert set(sent[1:-1]) == {b": keep-alive\n\n"}


@pytest.mark.parametrize("gone", [NotFound("forgotten"), BackendUnavailable("store", "refused")])
def test_a_stream_whose_job_cannot_be_read_ends_without_an_end(gone: Exception) -> None:
    assert streamed(ScriptedJobs(job(1), gone)) == [event_of(job(1)).encode()]


def test_a_server_that_closes_ends_its_streams() -> None:
    closing = threading.Event()
    closing.set()
    assert streamed(ScriptedJobs(job(1)), closing) == [event_of(job(1)).encode()]
