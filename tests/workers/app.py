"""``celery -A tests.workers.app``: the workers' application with the tests' jobs."""

import os

from tests.workers.jobs import SPECS
from vimbank.settings import load_settings
from workers.application import create_app

app = create_app(load_settings(), SPECS)

if (visibility_s := os.environ.get("VIMBANK_TEST_VISIBILITY_S")) is not None:
    app.conf.broker_transport_options |= {
        "visibility_timeout": float(visibility_s),
        "unacked_restore_interval": 0.5,
        "unacked_restore_throttle": 1,
    }
