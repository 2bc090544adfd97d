"""Time cases under time zones: 97, 98, 103, 105, 106, 108, dates in queries, days of summaries, expiry, forgetting."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cases.zoned import life

ROOT = Path(__file__).parents[2]
ZONES = {"Asia/Tokyo": 9, "America/Los_Angeles": -8, "Pacific/Kiritimati": 14}
"""Hours ahead of UTC on 1 March 2026."""


def test_a_life_is_the_same_in_every_zone(tmp_path: Path) -> None:
    """A process of each zone, side by side, tells what this one tells; and that is right."""
    running = {}
    for zone in ZONES:
        command = [sys.executable, "-m", "tests.cases.zoned", str(tmp_path / zone.replace("/", "-"))]
        running[zone] = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "TZ": zone}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    expected = json.loads(json.dumps(life(tmp_path / "here")))
    for zone, process in running.items():
        out, err = process.communicate()
        assert process.returncode == 0, f"{zone}: {err}"
        answer = json.loads(out)
        assert answer["offset"] == ZONES[zone] * 3_600
        for name, value in expected.items():
            assert answer["told"][name] == value, f"{name} in {zone}"
    _check(expected)


def _check(told: dict[str, Any]) -> None:
    # Case 103; and hours that a zone skips or repeats are hours of UTC.
    assert told["times"] == ["2026-01-01T00:00:00Z"] * 2 + ["2025-12-31T15:00:00Z"] + ["2026-01-01T00:00:00Z"] * 3 + [
        "2026-03-08T02:30:00Z", "2026-11-01T01:30:00Z"]  # fmt: skip
    # Case 105: at 23:30 UTC one offer is over, the next two go a second later, the last at midnight UTC.
    assert {each[0] for each in told["search"][3]} >= {"2026-03-01T23:30:01", "2026-03-02T08:30:01+09:00", "2026-03-02"}
    assert "2026-03-01T23:29:59Z" not in {each[0] for each in told["search"][3]}
    assert told["states"] == {"old": "archived", "2026-03-02": "active", "f0": "active"}
    # Case 106: what stood on 15 January, by the time that it was given.
    assert {each[0] for each in told["as_of"]} == {"old", *(f"y{number}" for number in range(6))}
    # Days of summaries are those of UTC (M-3): 1 March holds the ferries of hours -1 and 0.
    days = {period: text for _, level, period, text in told["days"] if level == "day" and "ferry" in text}
    assert "hour -24" in days["2026-02-28"]
    assert "hour 0" in days["2026-03-01"]
    assert "hour 1" in days["2026-03-02"]
    # Cases 98 and 108: no score leaves [0, 1], also of what is ahead, also after the clock stepped back.
    hits = [hit for results in [*told["search"], told["stepped back"], told["filter"]] for hit in results]
    assert hits
    assert all(
        0 <= score <= 1 and all(0 <= factor <= 1 for factor in factors.values()) for _, score, factors, _ in hits
    )
    assert {each[0] for each in told["filter"]} == {"f0", "f1", "f24"}
