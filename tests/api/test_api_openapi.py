"""The OpenAPI document: complete, with examples that hold."""

import importlib
import inspect
import json
import pkgutil
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from vimbank.api import schemas
from vimbank.api.routes import (
    documents,
    feedback,
    health,
    jobs,
    memories,
    portability,
    search,
    sessions,
    stats,
    summaries,
    tasks,
    users,
)
from vimbank.api.schemas.base import Answer

ROUTES = {
    ("GET", "/metrics"),
    ("POST", "/v1/memories"),
    ("POST", "/v1/memories/batch"),
    ("GET", "/v1/memories"),
    ("DELETE", "/v1/memories"),
    ("GET", "/v1/memories/{id}"),
    ("PATCH", "/v1/memories/{id}"),
    ("DELETE", "/v1/memories/{id}"),
    ("GET", "/v1/memories/{id}/history"),
    ("POST", "/v1/memories/{id}/archive"),
    ("POST", "/v1/memories/{id}/restore"),
    ("POST", "/v1/memories/{id}/suppress"),
    ("POST", "/v1/memories/{id}/unsuppress"),
    ("GET", "/v1/forecast"),
    ("POST", "/v1/search"),
    ("POST", "/v1/documents"),
    ("POST", "/v1/sessions/{session_id}/turns"),
    ("POST", "/v1/tasks"),
    ("POST", "/v1/feedback"),
    ("GET", "/v1/summaries"),
    ("GET", "/v1/portraits"),
    ("GET", "/v1/stats"),
    ("POST", "/v1/jobs"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/names"),
    ("GET", "/v1/jobs/{id}"),
    ("GET", "/v1/jobs/{id}/result"),
    ("POST", "/v1/jobs/{id}/cancel"),
    ("GET", "/v1/jobs/{id}/events"),
    ("DELETE", "/v1/users/{id}"),
    ("GET", "/v1/export"),
    ("POST", "/v1/import"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    ("GET", "/"),
}


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(method, path, operation) of each."""
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_route_is_there_and_no_other(app: FastAPI) -> None:
    assert {(method, path) for method, path, _ in operations(app.openapi())} == ROUTES


def test_every_body_and_every_answer_has_an_example(app: FastAPI) -> None:
    document = app.openapi()
    components = document["components"]["schemas"]

    def has_example(content: dict[str, Any]) -> bool:
        schema = content["schema"]
        named = components[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
        return "example" in content or bool(named.get("examples"))

    for method, path, operation in operations(document):
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            assert has_example(content), (method, path, media_type)
        for status, answer in operation["responses"].items():
            for media_type, content in answer.get("content", {}).items():
                assert has_example(content), (method, path, status, media_type)


def test_every_route_tells_what_it_does_and_which_key_it_needs(app: FastAPI) -> None:
    for method, path, operation in operations(app.openapi()):
        assert operation["summary"], (method, path)
        assert operation["description"], (method, path)
        assert ("security" in operation) is path.startswith(("/v1", "/metrics")), (method, path)
        if path.startswith("/v1"):
            assert {"401", "403", "422", "500", "503"} <= set(operation["responses"]), (method, path)


MODELS = [
    model
    for found in pkgutil.iter_modules(schemas.__path__, "vimbank.api.schemas.")
    for model in vars(importlib.import_module(found.name)).values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model.__module__ == found.name
]


def test_the_models_are_found() -> None:
    assert {"MemoryIn", "SearchOut", "ForecastParams", "JobOut", "ReceiptOut"} <= {model.__name__ for model in MODELS}


@pytest.mark.parametrize("model", MODELS)
def test_examples_are_valid(model: type[BaseModel]) -> None:
    for example in (model.model_config.get("json_schema_extra") or {}).get("examples", []):
        if issubclass(model, Answer):
            model.model_validate_json(json.dumps(example))
        else:
            model.model_validate(example)


def test_operation_ids_are_unique(app: FastAPI) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(app.openapi())]
    assert len(ids) == len(set(ids))


def test_routes_run_in_threads_but_for_those_that_ask_no_engine() -> None:
    modules = (
        documents, feedback, health, jobs, memories, portability, search, sessions, stats, summaries, tasks, users,
    )  # fmt: skip
    endpoints = {route.path: route.endpoint for module in modules for route in module.router.routes}
    assert len(endpoints) >= 12
    assert {path for path, endpoint in endpoints.items() if inspect.iscoroutinefunction(endpoint)} == {
        "/",
        "/health/live",
        "/v1/import",  # reads the body as it comes; what it does with it runs in threads
    }
