"""Fixtures of every test: a clean environment, a settable clock, a dozen memories, a service in a folder of its own."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from vimbank.domain.models import MemoryDraft
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings
from vimbank.wiring import open_service

# Before any test is collected: a setting of the person who runs the tests must not decide them.
for _name in [name for name in os.environ if name.startswith("VIMBANK_") and not name.startswith("VIMBANK_TEST_")]:
    del os.environ[_name]


class SettableClock:
    """A clock that stands still until it is moved; called, it gives its time."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        """Move on (or back) by ``timedelta(**by)``."""
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(datetime(2026, 1, 31, 12, 0, tzinfo=UTC))


@pytest.fixture
def memories() -> list[MemoryDraft]:
    """A dozen: three banks, two users and the shared one, two sessions, metadata to filter by."""

    def draft(user_id: str, bank: str, text: str, **given: Any) -> MemoryDraft:
        return MemoryDraft(tenant="default", user_id=user_id, bank=bank, text=text, **given)

    day = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        draft("ana", "dialog", "Ana is allergic to peanuts", session_id="s1", metadata={"topic": "health"}),
        draft("ana", "dialog", "Ana moved to Lisbon in March", session_id="s1", metadata={"topic": "home"}),
        draft("ana", "dialog", "her cat is called Mochi", session_id="s2", metadata={"topic": "pets", "age": 3}),
        draft("ana", "dialog", "she plays the cello on Sundays", session_id="s2", importance=0.9),
        draft("ana", "knowledge", "error code ZX-4471 on the pump means a blocked valve", title="Pump manual"),
        draft("ana", "knowledge", "the pump runs at 50 Hz", title="Pump manual", metadata={"page": 7}),
        draft("ana", "task", "put a clean mug on the desk", kind="task", event_at=day),
        draft("ben", "dialog", "Ben is allergic to shellfish", session_id="s1", metadata={"topic": "health"}),
        draft("ben", "dialog", "the launch date is 4 July", session_id="s1", pinned=True),
        draft("ben", "knowledge", "the archive closes at noon on Fridays", metadata={"topic": "work"}),
        draft("shared", "knowledge", "quiet hours start at ten in the evening", title="House rules"),
        draft("shared", "knowledge", "guests sign in at the front desk", title="House rules"),
    ]


@pytest.fixture
def service(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    """A service on a new folder, with the test encoder and the settable clock."""
    settings = Settings(data_dir=tmp_path / "data", encoder=EncoderSettings(kind="hashing"))
    with open_service(settings, clock=clock) as opened:
        yield opened
