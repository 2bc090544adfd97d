"""Clients of a real application over a real service; every answer is held against the OpenAPI document."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.jobs_kit import SPECS
from vimbank.api.app import create_app
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

TENANTS = 600
"""How many tests there can be; each takes the next number."""

ClientFor = Callable[[str], TestClient]
Hook = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Tenants:
    """The tenants a and b of one test."""

    number: int

    @property
    def a(self) -> str:
        return f"a{self.number}"

    @property
    def b(self) -> str:
        return f"b{self.number}"

    def key(self, kind: str) -> str:
        """The key of a kind: a, a-write, a-read, b, operator."""
        return f"key-{kind}-{self.number}"


def keys_of(number: int) -> list[dict[str, str]]:
    """The keys of one test's tenants."""
    tenants = Tenants(number)
    return [
        {"key": tenants.key("a"), "tenant": tenants.a, "role": "admin"},
        {"key": tenants.key("a-write"), "tenant": tenants.a, "role": "write"},
        {"key": tenants.key("a-read"), "tenant": tenants.a, "role": "read"},
        {"key": tenants.key("b"), "tenant": tenants.b, "role": "admin"},
        {"key": tenants.key("operator"), "tenant": tenants.a, "role": "operator"},
    ]


def settings_in(folder: Path, **given: Any) -> Settings:
    """Settings of a test: a folder of its own, the hashing encoder, the keys of number 0."""
    api = {"keys": keys_of(0), "port": 0, **given.pop("api", {})}
    return Settings(data_dir=folder / "data", encoder={"kind": "hashing"}, api=api, **given)


def documented(app: FastAPI) -> Hook:
    """A hook that fails where an answer has a status, or a media type, that the OpenAPI document does not name."""
    document = app.openapi()
    # The longest first, as an id may hold slashes.
    paths = sorted(document["paths"].items(), key=lambda item: -len(item[0]))
    templates = {re.compile(re.sub(r"\{\w+\}", ".*", path)): routes for path, routes in paths}

    def check(response: Any) -> None:
        path = response.request.url.raw_path.decode().partition("?")[0]
        found = [routes for template, routes in templates.items() if template.fullmatch(path)]
        operation = found[0].get(response.request.method.lower()) if found else None
        if operation is None:
            return
        answers = operation["responses"]
        assert str(response.status_code) in answers, f"{response.status_code} of {path} is not documented"
        if response.status_code == 204:
            return
        media_type = response.headers["content-type"]
        assert media_type in answers[str(response.status_code)]["content"], f"{media_type} of {path} is not documented"

    return check


def client_of(app: FastAPI, key: str | None, hook: Hook | None = None) -> TestClient:
    """A client that sends ``key``, and whose answers are held against the document."""
    client = TestClient(app, headers={"Authorization": f"Bearer {key}"} if key else {})
    client.event_hooks = {"request": [], "response": [hook or documented(app)]}
    return client


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(
        tmp_path_factory.mktemp("api"),
        api={"keys": [key for n in range(TENANTS) for key in keys_of(n)]},
        jobs={"schedule": False},
    )


@pytest.fixture(scope="session")
def stored(settings: Settings) -> Iterator[MemoryService]:
    """The service behind the clients; opened once, as each test has tenants of its own."""
    with open_service(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def jobs(stored: MemoryService, settings: Settings) -> Iterator[Jobs]:
    """The jobs behind the clients, in threads as in a server, and those of the kit; nothing runs by itself."""
    with closing(open_jobs(settings, stored, serve=True, specs=SPECS)) as opened:
        yield opened


@pytest.fixture(scope="session")
def app(stored: MemoryService, settings: Settings, jobs: Jobs) -> FastAPI:
    return create_app(stored, settings, jobs)


@pytest.fixture(scope="session")
def hook(app: FastAPI) -> Hook:
    return documented(app)


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return iter(range(TENANTS))


@pytest.fixture
def tenants(numbers: Iterator[int]) -> Tenants:
    """Two tenants that no other test uses."""
    return Tenants(next(numbers))


@pytest.fixture
def client_for(app: FastAPI, hook: Hook, tenants: Tenants) -> ClientFor:
    """Clients by kind of key: a, a-write, a-read, b; none for an empty kind."""
    return lambda kind: client_of(app, tenants.key(kind) if kind else None, hook)


@pytest.fixture
def client(client_for: ClientFor) -> TestClient:
    """The administrator of tenant a."""
    return client_for("a")


def add(client: TestClient, text: str, user_id: str = "alice", bank: str = "dialog", **given: Any) -> str:
    """Add a memory; its id."""
    answer = client.post("/v1/memories", json={"text": text, "user_id": user_id, "bank": bank, **given})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def search(client: TestClient, query: str, user_id: str = "alice", **given: Any) -> list[dict[str, Any]]:
    """The results of a search."""
    answer = client.post("/v1/search", json={"query": query, "user_id": user_id, **given})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def fields_of(answer: Any) -> list[str]:
    """The fields that a 422 names."""
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return [error["field"] for error in answer.json()["errors"]]
