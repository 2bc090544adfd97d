"""Forgetting under FSRS goes by stability: from the use in the access log to the instant at which a memory goes."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import SettableClock
from vimbank.domain.models import PARENT_KIND, MemoryDraft, MemoryPatch, Partition, Signal, Source
from vimbank.lifecycle.planning import Leaving
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service

FACTOR = 0.9 ** (-1 / 0.1542) - 1
UNTIL_HALF = (2 ** (1 / 0.1542) - 1) / FACTOR  # stabilities until R is 0.5: 90.35


def settings(folder: Path, curve: str = "fsrs") -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder,
            "encoder": {"kind": "hashing"},
            "banks": {"dialog": {"lifecycle": {"curve": curve, "minimum_age_days": 0.0, "information_stretch": 1.0}}},
        }
    )


@pytest.fixture
def service(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with open_service(settings(tmp_path), clock=clock) as service:
        yield service


def add(service: MemoryService, text: str, **fields: object) -> str:
    given = {"tenant": "default", "user_id": "ana", "bank": "dialog", "text": text, **fields}
    return service.add(MemoryDraft(**given)).id  # type: ignore[arg-type]


def leaving(service: MemoryService) -> dict[str, Leaving]:
    return {each.id: each for each in service.forecast("default", "ana", days=36_500.0).items}


def test_a_used_memory_stays_by_its_stability(service: MemoryService, clock: SettableClock) -> None:
    """Unreviewed S = w2: 208.4 days after the creation. Used at day 40: S' days times 90.35 after the use."""
    quiet, used, wrong = (add(service, f"the pier {place}") for place in range(3))
    created = clock()
    clock.advance(days=40)
    service.feedback("default", used, Signal.USED)
    service.feedback("default", wrong, Signal.WRONG)
    service.fold_recalls()
    at = {name: each.at for name, each in leaving(service).items()}
    assert (at[quiet] - created) / timedelta(days=1) == pytest.approx(2.3065 * UNTIL_HALF, abs=1e-3)
    stability = {name: service.get("default", name).stability_days or 0.0 for name in (used, wrong)}
    assert stability[wrong] < 2.3065 < stability[used]
    assert (at[used] - clock()) / timedelta(days=1) == pytest.approx(stability[used] * UNTIL_HALF, rel=1e-6)
    # Wrong does not restart the clock.
    assert (at[wrong] - created) / timedelta(days=1) == pytest.approx(stability[wrong] * UNTIL_HALF, abs=1e-3)
    assert at[wrong] < at[quiet] < at[used]


def test_a_unit_stays_as_long_as_the_part_that_lasts_longest(service: MemoryService, clock: SettableClock) -> None:
    """A part that was wrong, and so was reviewed, does not speak for the one that nobody has asked for."""
    run = add(service, "the run", kind=PARENT_KIND)
    steps = [add(service, f"step {place}", source=Source(parent_id=run, position=place)) for place in range(2)]
    created = clock()
    clock.advance(days=1)
    service.feedback("default", steps[0], Signal.WRONG)
    service.fold_recalls()
    [unit] = leaving(service).values()
    assert unit.id == run
    assert (unit.at - created) / timedelta(days=1) == pytest.approx(2.3065 * UNTIL_HALF, abs=1e-3)


def test_an_update_keeps_what_is_known_of_the_recalls(service: MemoryService, clock: SettableClock) -> None:
    name = add(service, "the pier")
    clock.advance(days=5)
    service.feedback("default", name, Signal.USED)
    service.fold_recalls()
    before = service.get("default", name)
    service.update("default", name, MemoryPatch(text="the long pier"))
    after = service.get("default", name)
    assert (after.strength, after.stability_days, after.difficulty, after.recall_count, after.last_recalled_at) == (
        before.strength,
        before.stability_days,
        before.difficulty,
        before.recall_count,
        before.last_recalled_at,
    )


def test_a_bank_that_changes_its_curve_decides_by_the_new_one(tmp_path: Path, clock: SettableClock) -> None:
    """After a use under FSRS the strength is 3: 10 * 3 * ln 20 = 89.87 days from the use."""
    with open_service(settings(tmp_path), clock=clock) as service:
        name = add(service, "the pier")
        clock.advance(days=5)
        service.feedback("default", name, Signal.USED)
    with open_service(settings(tmp_path, "exponential"), clock=clock) as service:
        [only] = leaving(service).values()
        assert (only.at - clock()) / timedelta(days=1) == pytest.approx(89.872, abs=1e-3)
    with open_service(settings(tmp_path), clock=clock) as service:
        lives = service.store.lives(Partition("default", "ana", "dialog"))
        [again] = leaving(service).values()
        stability = float(lives.stability_days[0])
        assert (again.at - clock()) / timedelta(days=1) == pytest.approx(stability * UNTIL_HALF, rel=1e-6)
