"""Every door in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.doors import DOORS, Door


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """One entry point on an empty data folder."""
    opened = DOORS[request.param](tmp_path)
    yield opened
    opened.close()
