"""``celery -A tests.workers.app``: the workers' application with the tests' jobs, on a clock that tests can move."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

_CLOCK = os.environ.get("VIMBANK_TEST_CLOCK")
"""A file with the seconds by which this process's clock is ahead."""
_true_time = time.time


def _moved_time() -> float:
    return _true_time() + (float(Path(_CLOCK).read_text() or 0) if _CLOCK else 0.0)


time.time = _moved_time  # before Celery and its libraries take hold of it

from tests.workers.jobs import SPECS  # noqa: E402
from vimbank.settings import load_settings  # noqa: E402
from workers.application import create_app  # noqa: E402

app = create_app(load_settings(), SPECS, clock=lambda: datetime.fromtimestamp(time.time(), UTC))

if (visibility_s := os.environ.get("VIMBANK_TEST_VISIBILITY_S")) is not None:
    app.conf.broker_transport_options |= {
        "visibility_timeout": float(visibility_s),
        "unacked_restore_interval": 0.5,
        "unacked_restore_throttle": 1,
    }
