"""Where tests find the services they need: URLs in the environment, or a skip that says what to set."""

import os
import shlex
from typing import Final

import pytest

__all__ = ["service_command", "service_url"]

PREFIX: Final = "VIMBANK_TEST_"
REQUIRED: Final = PREFIX + "SERVICES"
"""Where this is ``required``, as in CI, a missing service is a failure and no skip."""


def service_url(name: str) -> str:
    """The URL in ``VIMBANK_TEST_<name>``: POSTGRES_URL, REDIS_URL, ELASTICSEARCH_A or ELASTICSEARCH_B."""
    value = os.environ.get(PREFIX + name)
    if value:
        return value
    reason = f"{PREFIX}{name} is not set: README tells how to start the services that tests can use"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def service_command(name: str) -> list[str]:
    """The words of the command in ``VIMBANK_TEST_<name>``, for tests that start and kill a server of their own."""
    return shlex.split(service_url(name))
