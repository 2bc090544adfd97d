"""A life of memories under fixed clocks, told as one JSON document: ``python -m tests.cases.zoned FOLDER``.

``test_zones`` runs it under several time zones; every answer is of instants, so the documents must be equal.
"""

import json
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from fastapi.testclient import TestClient

from tests.cases.doors import settings
from tests.conftest import SettableClock
from vimbank.api.app import create_app
from vimbank.cli.main import cli
from vimbank.domain.temporal import time_expressions
from vimbank.domain.times import format_time, parse_time
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

NOW = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)  # already 2 March in Tokyo and Kiritimati, 1 March in Los Angeles
TIMES = ["2026-01-01T00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+09:00", 1767225600, 1767225600000,
         "2026-01-01", "2026-03-08T02:30:00", "2026-11-01T01:30:00"]  # fmt: skip
"""Those of case 103, and two of hours that Los Angeles skips and repeats."""
PHRASES = ["yesterday", "today", "last week", "last month", "on Monday", "two days ago", "in January", "last night",
           "on 2026-02-28", "昨天", "上周"]  # fmt: skip


def life(folder: Path) -> dict[str, Any]:
    """What every door says of the same life."""
    clock, configured = SettableClock(NOW - timedelta(days=60)), settings(folder)
    told: dict[str, Any] = {"times": [format_time(parse_time(each, "t")) for each in TIMES]}
    told["spans"] = {phrase: [str(each) for each in time_expressions(phrase, now=NOW)] for phrase in PHRASES}
    with (
        open_service(configured, clock=clock) as service,
        closing(open_jobs(configured, service, clock=clock)) as jobs,
        closing(TestClient(create_app(service, configured, jobs))) as client,
    ):

        def add(text: str, **fields: Any) -> None:
            body = {"user_id": "ana", "bank": "dialog", "text": text, "session_id": "s", **fields}
            client.post("/v1/memories", json=body).raise_for_status()

        def search(text: str, **fields: Any) -> Any:
            body = {"user_id": "ana", "query": text, "reinforce": False, "explain": True, "top_k": 50, **fields}
            results = client.post("/v1/search", json=body).raise_for_status().json()["results"]
            return [(each["id"], each["score"], each["explain"]["factors"], each["created_at"]) for each in results]

        def run(name: str, **params: Any) -> Any:
            job = jobs.start(name, params)
            jobs.run(job.id)
            return jobs.get(job.id).result

        add("the old pier", id="old")
        clock.now = NOW
        for number, given in enumerate(TIMES):
            add(f"a new year {number}", id=f"y{number}", created_at=given)
        for hours in (-30, -24, -1, 0, 1, 24):
            moment = (NOW + timedelta(hours=hours)).isoformat()
            add(f"the ferry of hour {hours}", id=f"f{hours}", event_at=moment)
        for at in ("2026-03-01T23:29:59Z", "2026-03-01T23:30:01", "2026-03-02T08:30:01+09:00", "2026-03-02"):
            add(f"an offer until {at}", id=at, expires_at=at)
        told["search"] = [search(text) for text in ("ferry yesterday", "ferry", "new year", "offer", "pier")]
        told["as_of"] = search("pier", as_of="2026-01-15")
        told["filter"] = search("ferry", filter={"event_at": {"gte": "2026-03-01T23:30:00"}})
        told["forecast"] = client.get("/v1/forecast", params={"user_id": "ana", "days": 90}).json()
        told["jobs"] = [run(name, max_share=1) for name in ("forget", "expire")]
        told["states"] = {each: service.get("default", each).state.value for each in ("old", "2026-03-02", "f0")}
        run("summarise")
        run("portrait")
        derived = [
            *service.derived("default", "ana", "summary").items,
            *service.derived("default", "ana", "portrait").items,
        ]
        told["days"] = [(each.id, each.metadata["level"], each.metadata["period"], each.text) for each in derived]
        clock.advance(hours=-1)
        told["stepped back"] = search("ferry")
    for words in (["list", "--user=ana", "--state=any"], ["history", "old"], ["get", "old"]):
        result = CliRunner().invoke(cli, [words[0], f"--data={folder}", *words[1:]],
                                    env={"VIMBANK_ENCODER__KIND": "hashing"})  # fmt: skip
        assert result.exit_code == 0, result.output
        told[words[0]] = result.output
    return told


if __name__ == "__main__":
    told = life(Path(sys.argv[1]))
    json.dump({"zone": time.tzname[0], "offset": time.localtime(NOW.timestamp()).tm_gmtoff, "told": told}, sys.stdout)
