"""Cases of time that need a clock of their own: one service, asked in process and over HTTP."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from tests.cases.doors import settings
from tests.conftest import SettableClock
from vimbank.api.app import create_app
from vimbank.domain.jobs import JobState
from vimbank.domain.models import MemoryDraft, MemoryPatch, Query, Scope
from vimbank.errors import InvalidInput
from vimbank.portability.erase import erase
from vimbank.service import MemoryService
from vimbank.settings import BankSettings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_eraser

BY_HALF_LIFE = {
    "dialog": {"half_life_days": 7.0, "time_weight": 1.0, "retention_weight": 0.0},
    "knowledge": {"half_life_days": 365.0, "time_weight": 1.0, "retention_weight": 0.0},
}


class Place:
    """A service under a clock, its jobs, and a client of its REST API."""

    def __init__(self, service: MemoryService, clock: SettableClock, jobs: Any, client: TestClient) -> None:
        self.service, self.clock, self.jobs, self.client = service, clock, jobs, client

    def add(self, text: str, **fields: Any) -> str:
        body = {"user_id": "ana", "bank": "dialog", "text": text, **fields}
        answer = self.client.post("/v1/memories", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def found(self, text: str, **fields: Any) -> list[dict[str, Any]]:
        body = {"user_id": "ana", "query": text, "reinforce": False, "explain": True, **fields}
        answer = self.client.post("/v1/search", json=body)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])

    def run(self, name: str, **params: Any) -> dict[str, Any]:
        job = self.jobs.start(name, params)
        self.jobs.run(job.id)
        ended = self.jobs.get(job.id)
        assert ended.state is JobState.SUCCEEDED, ended.error
        return dict(ended.result)


@contextmanager
def opened(folder: Path, clock: SettableClock, **more: Any) -> Iterator[Place]:
    configured = settings(folder, **more)
    with (
        open_service(configured, clock=clock) as service,
        closing(open_jobs(configured, service, clock=clock)) as jobs,
        closing(TestClient(create_app(service, configured, jobs))) as client,
    ):
        yield Place(service, clock, jobs, client)


@pytest.fixture
def place(tmp_path: Path, clock: SettableClock) -> Iterator[Place]:
    with opened(tmp_path, clock) as one:
        yield one


def test_case_95_of_twins_the_recalled_one_ranks_first_thirty_days_later(place: Place) -> None:
    quiet, used = (place.add("the pier of Halvik", session_id=session) for session in ("a", "b"))
    for _ in range(5):
        place.clock.advance(hours=1)
        query = Query(tenant="default", user_id="ana", text="the pier of Halvik", session_id="b")
        assert [each.memory.id for each in place.service.search(query).results] == [used]
    place.service.fold_recalls()
    place.clock.advance(days=30)
    first, second = place.found("the pier of Halvik")
    assert (first["id"], second["id"]) == (used, quiet)
    assert first["score"] > second["score"]
    factors = first["explain"]["factors"], second["explain"]["factors"]
    assert all(factors[0][name] >= factors[1][name] for name in factors[0])
    assert factors[0] != factors[1]


def test_case_97_each_bank_has_its_own_half_life(tmp_path: Path, clock: SettableClock) -> None:
    """2^(-30/7) = 0.0513 and 2^(-30/365) = 0.9446."""
    with opened(tmp_path, clock, banks=BY_HALF_LIFE) as place:
        for bank in BY_HALF_LIFE:
            place.add("the pier of Halvik", bank=bank)
        place.clock.advance(days=30)
        factors = {each["bank"]: each["explain"]["factors"]["time"] for each in place.found("the pier of Halvik")}
    assert factors["dialog"] == pytest.approx(0.0513, abs=1e-4)
    assert factors["knowledge"] == pytest.approx(0.9446, abs=1e-4)


@pytest.mark.parametrize("half_life", [0, -7])
def test_case_98_a_half_life_that_is_none_is_refused_at_the_start(half_life: float) -> None:
    with pytest.raises(ValidationError, match="half_life_days"):
        BankSettings(half_life_days=half_life)


def _reimported(place: Place, **changes: Any) -> dict[str, Any]:
    """Export the one memory of a user with these fields changed, delete it, import it; the report."""
    head, line, _ = place.client.get("/v1/export", params={"user_id": "ana"}).text.splitlines()
    record = json.loads(line)
    record["memory"].update(changes)
    place.service.delete("default", record["id"])
    content = f"{head}\n{json.dumps(record)}\n".encode()
    answer = place.client.post("/v1/import", content=content, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize(("field", "value"), [("strength", 0), ("strength", -1), ("recall_count", -1)])
def test_case_98_what_no_memory_can_have_is_refused_by_an_import(place: Place, field: str, value: float) -> None:
    place.add("the pier")
    report = _reimported(place, **{field: value})
    assert (report["added"], report["failed"]) == (0, 1)
    assert field in json.dumps(report)


def test_case_98_a_thousand_million_recalls_are_no_score_above_1(place: Place) -> None:
    place.add("the pier", created_at="2026-02-01T12:00:00Z")
    assert _reimported(place, recall_count=10**9, strength=1e6)["added"] == 1
    (hit,) = place.found("the pier")
    assert place.service.get("default", hit["id"]).recall_count == 10**9
    assert 0 <= hit["score"] <= 1
    assert all(0 <= factor <= 1 for factor in hit["explain"]["factors"].values())


def test_case_100_over_its_budget_a_bank_keeps_what_is_pinned(tmp_path: Path, clock: SettableClock) -> None:
    """Ten years old, pinned, and five over a capacity of two: dry run, run, and the deletion after the grace."""
    with opened(tmp_path, clock, banks={"dialog": {"lifecycle": {"capacity": 2}}}) as place:
        pinned = [place.add(f"the pinned pier {n}", pinned=True) for n in range(5)]
        plain = [place.add(f"the pier {n}") for n in range(2)]
        place.clock.advance(days=3_650)
        dry = place.run("forget", dry_run=True, max_share=1)
        assert {each["id"] for each in dry["sample"]} == set(plain)
        assert {each["id"] for each in place.run("forget", max_share=1)["sample"]} == set(plain)
        for each in pinned:
            place.service.archive("default", each)
        place.clock.advance(days=3_650)
        assert place.run("prune", max_share=1)["moved"] == 2
        assert {place.service.get("default", each).state.value for each in pinned} == {"archived"}


def test_case_102_beyond_a_year_it_is_eligible_in_every_bank_that_forgets(place: Place) -> None:
    old = [place.add(f"a trifle of the {bank}", bank=bank, importance=0.1) for bank in ("dialog", "task")]
    place.clock.advance(days=400)
    due = {each["id"] for each in place.run("forget", dry_run=True, max_share=1)["sample"]}
    assert due == set(old)


def test_case_105_alive_before_its_instant_and_gone_from_it_on(place: Place) -> None:
    name = place.add("the offer", expires_at="2026-03-01T23:30:00Z")
    for moment, alive in (("2026-03-01T23:29:59", True), ("2026-03-01T23:30:00", False), ("2026-03-02", False)):
        place.clock.now = datetime.fromisoformat(moment).replace(tzinfo=UTC)
        assert [each["id"] for each in place.found("the offer")] == ([name] if alive else [])
        assert place.run("expire", dry_run=True, max_share=1)["due"] == (not alive)


def test_case_106_as_of_an_instant_what_stood_then(place: Place) -> None:
    """v1 on 1 Jan, v2 on 1 Feb, deleted on 1 Mar, an expiry on 1 Mar, and erased in the end."""
    place.clock.now = datetime(2026, 1, 1, tzinfo=UTC)
    name = place.add("the door code is 1111")
    other = place.add("the door code was an offer", expires_at="2026-03-01")
    place.clock.now = datetime(2026, 2, 1, tzinfo=UTC)
    place.service.update("default", name, MemoryPatch(text="the door code is 2222"))
    place.clock.now = datetime(2026, 3, 1, tzinfo=UTC)
    place.service.delete("default", name)
    place.clock.now = datetime(2026, 3, 10, tzinfo=UTC)

    def texts(as_of: str | None) -> set[str]:
        return {each["text"] for each in place.found("door code", as_of=as_of)}

    assert texts("2026-01-15") == {"the door code is 1111", "the door code was an offer"}
    assert texts("2026-02-15") == {"the door code is 2222", "the door code was an offer"}
    assert texts("2025-12-31") == texts("2026-03-05") == texts(None) == set()
    assert place.service.get("default", other).text == "the door code was an offer"
    erase(place.service, open_eraser(place.service), Scope("default", "ana"), actor="test")
    assert texts("2026-01-15") == texts("2026-02-15") == set()


def test_case_106_what_was_archived_or_superseded_since_stood_then(place: Place) -> None:
    name = place.add("the door code is 1111")
    place.clock.advance(days=60)
    place.run("forget", max_share=1)
    assert place.found("door code") == []
    then = (place.clock.now - timedelta(days=30)).isoformat()
    assert [each["id"] for each in place.found("door code", as_of=then)] == [name]


def test_case_108_the_clock_steps_back_an_hour(place: Place) -> None:
    """Between add and search, between recall and folding, and before every job."""
    name = place.add("the pier of Halvik")
    place.service.search(Query(tenant="default", user_id="ana", text="pier"))
    place.clock.advance(hours=-1)
    (hit,) = place.found("pier")
    assert hit["id"] == name
    assert 0 <= hit["score"] <= 1
    assert all(0 <= factor <= 1 for factor in hit["explain"]["factors"].values())
    assert all(value >= 0 for name, value in hit["explain"]["inputs"].items() if name.startswith("age"))
    place.service.fold_recalls()
    memory = place.service.get("default", name)
    assert memory.last_recalled_at is not None
    assert memory.last_recalled_at <= place.clock.now
    assert place.service.forecast("default", "ana", days=36_500).total == 1
    for job in ("forget", "expire", "prune", "summarise", "portrait"):
        place.run(job)
    place.service.update("default", name, MemoryPatch(text="the new pier of Halvik"))
    assert [each["id"] for each in place.found("new pier", top_k=1)] == [name]
    assert [each.revision for each in place.service.history("default", name)] == sorted(
        each.revision for each in place.service.history("default", name)
    )


def test_case_88_and_89_sources_stay_where_a_summary_cannot_be_written(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write of the merged text fails, once for the store's index and once for the model: nothing is lost."""
    texts = [f"the quagmire{n} lies behind the house" for n in range(6)]
    sources = [place.add(text, session_id="s") for text in texts]
    place.run("summarise")
    before = {each.id: each.text for each in place.service.derived("default", "ana", "summary").items}
    place.add("the meadow lies before the house", session_id="s")

    def refuse(*_: Any, **__: Any) -> Any:
        raise InvalidInput.of("text", "cannot be indexed")

    with monkeypatch.context() as broken:
        broken.setattr(place.service.preparer, "patch", refuse)
        broken.setattr(place.service.preparer, "drafts", refuse)
        job = place.jobs.start("summarise", {})
        place.jobs.run(job.id)
    assert place.jobs.get(job.id).state is JobState.FAILED
    assert [place.service.get("default", each).text for each in sources] == texts
    assert {each.id: each.text for each in place.service.derived("default", "ana", "summary").items} == before
    assert place.service.check().ok
    report = place.run("summarise")
    assert report["failed"] == 0
    assert report["refreshed"] > 0


def test_the_clock_of_a_draft_is_its_own(place: Place) -> None:
    """What is said of the past counts from then on, whatever the clock says: a case of 95 without waiting."""
    draft = MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="said long ago",
                        created_at=place.clock.now - timedelta(days=30))  # fmt: skip
    place.service.add(draft)
    (hit,) = place.found("said long ago")
    assert hit["explain"]["inputs"]["age_days"] == pytest.approx(30.0)
