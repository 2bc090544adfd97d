"""Clients of a real application over a real service; every answer is held against the OpenAPI document."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from vimbank.api.app import create_app
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service

KEYS = [
    {"key": "key-a", "tenant": "a", "role": "admin"},
    {"key": "key-a-write", "tenant": "a", "role": "write"},
    {"key": "key-a-read", "tenant": "a", "role": "read"},
    {"key": "key-b", "tenant": "b", "role": "admin"},
]

ClientFor = Callable[[str], TestClient]


def settings_in(folder: Path, **given: Any) -> Settings:
    """Settings of a test: a folder of its own, the hashing encoder, keys of two tenants."""
    api = {"keys": KEYS, "port": 0, **given.pop("api", {})}
    return Settings(data_dir=folder / "data", encoder={"kind": "hashing"}, api=api, **given)


def documented(app: FastAPI) -> Callable[[Any], None]:
    """A hook that fails where an answer has a status, or a media type, that the OpenAPI document does not name."""
    document = app.openapi()
    templates = {re.compile(re.sub(r"\{\w+\}", ".*", path)): routes for path, routes in document["paths"].items()}

    def check(response: Any) -> None:
        path = response.request.url.raw_path.decode().partition("?")[0]
        found = [routes for template, routes in templates.items() if template.fullmatch(path)]
        operation = found[0].get(response.request.method.lower()) if found else None
        if operation is None:
            return
        answers = operation["responses"]
        assert str(response.status_code) in answers, f"{response.status_code} of {path} is not documented"
        media_type = response.headers["content-type"]
        assert media_type in answers[str(response.status_code)]["content"], f"{media_type} of {path} is not documented"

    return check


def client_of(app: FastAPI, key: str | None) -> TestClient:
    """A client that sends ``key``."""
    client = TestClient(app, headers={"Authorization": f"Bearer {key}"} if key else {})
    client.event_hooks = {"request": [], "response": [documented(app)]}
    return client


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def stored(settings: Settings) -> Iterator[MemoryService]:
    """The service behind the clients."""
    with open_service(settings) as opened:
        yield opened


@pytest.fixture
def client_for(stored: MemoryService, settings: Settings) -> ClientFor:
    """Clients by key."""
    app = create_app(stored, settings)
    return lambda key: client_of(app, key)


@pytest.fixture
def client(client_for: ClientFor) -> TestClient:
    """The administrator of tenant a."""
    return client_for("key-a")


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
