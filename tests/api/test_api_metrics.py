"""What a server tells Prometheus: of checks, from the records of their jobs."""

import re
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import ClientFor, client_of, keys_of, settings_in
from tests.conftest import SettableClock
from tests.repair_kit import fill
from tests.runner_kit import until
from vimbank.api.app import create_app
from vimbank.observability.metrics import METRICS
from vimbank.service import MemoryService
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs


def values(client: TestClient) -> dict[str, float]:
    """Each sample with its labels, and its value."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def ended(client: TestClient, **body: object) -> dict[str, object]:
    """The result of a job, once it has ended."""
    job = client.post("/v1/jobs", json=body).json()["id"]
    until(lambda: client.get(f"/v1/jobs/{job}").json()["state"] == "succeeded")
    result: dict[str, object] = client.get(f"/v1/jobs/{job}/result").json()["result"]
    return result


def lose(service: MemoryService, number: int) -> None:
    """Lose the embedding of a memory behind the store's back."""
    with service.store._connections.writing() as cursor:  # type: ignore[attr-defined]
        cursor.execute(f"DELETE FROM embeddings WHERE number = {number}")


def test_a_check_is_told_of_by_component_and_repairs_add_up(tmp_path: Path, clock: SettableClock) -> None:
    settings = settings_in(tmp_path, jobs={"schedule": False})
    operator = keys_of(0)[-1]["key"]
    with (
        open_service(settings, clock=clock) as service,
        closing(open_jobs(settings, service, clock=clock, serve=True)) as jobs,
    ):
        client = client_of(create_app(service, settings, jobs), operator)
        fill(service, ["red kite", "blue heron", "grey owl"])
        none = values(client)
        counters = ("vimbank_check_repaired_total", "vimbank_index_check_repaired_total")
        assert set(none) == {name for name in none if name.startswith(counters)}
        assert set(none.values()) == {0.0}

        for rounds in (1, 2):
            lose(service, 1)
            lose(service, 2)
            told = ended(client, name="check")
            assert (told["ok"], told["repair"]) == (False, False)
            assert values(client)['vimbank_check_problems{component="embeddings"}'] == 2
            assert values(client)['vimbank_check_remaining{component="embeddings"}'] == 2

            clock.advance(hours=1)
            mended = ended(client, name="check", params={"repair": True})
            assert mended["ok"] is True
            after = values(client)
            assert after['vimbank_check_problems{component="embeddings"}'] == 2
            assert after['vimbank_check_remaining{component="embeddings"}'] == 0
            assert after['vimbank_check_repaired_total{component="embeddings"}'] == 2 * rounds
            assert after['vimbank_check_problems{component="snapshots"}'] == 0
            assert after["vimbank_check_last_timestamp_seconds"] == clock().timestamp()

        before = values(client)
        clock.advance(hours=1)
        ended(client, name="check", params={"tenant": "default"})
        assert values(client) == before, "a check of one tenant says nothing of the others"
        families = {re.sub(r"\{.*", "", name) for name in before}
        assert families == set(METRICS)


def test_metrics_are_the_operators(client_for: ClientFor) -> None:
    assert client_for("operator").get("/metrics").status_code == 200
    assert client_for("a").get("/metrics").status_code == 403
    assert client_for("").get("/metrics").status_code == 401


@pytest.mark.parametrize("repair", ["yes please", 1, [True]])
def test_repair_is_a_flag(client_for: ClientFor, repair: object) -> None:
    refused = client_for("operator").post("/v1/jobs", json={"name": "check", "params": {"repair": repair}})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["params.repair"]
    mine = client_for("a").post("/v1/jobs", json={"name": "check", "params": {"repair": True}})
    assert mine.status_code == 403, "an administrator of one tenant repairs nothing"
