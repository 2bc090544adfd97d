"""Whatever is sent, the answer is no 5xx and is documented."""

import json
from typing import Any, cast

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel
from starlette.testclient import TestClient

from vimbank.api.schemas.ingestion import DocumentIn, TaskIn, TurnsIn
from vimbank.api.schemas.jobs import JobIn
from vimbank.api.schemas.memories import BatchIn, MemoryIn, PatchIn
from vimbank.api.schemas.search import FeedbackIn, SearchIn

BODIES: dict[str, type[BaseModel]] = {
    "/v1/memories": MemoryIn,
    "/v1/memories/batch": BatchIn,
    "/v1/search": SearchIn,
    "/v1/documents": DocumentIn,
    "/v1/sessions/s1/turns": TurnsIn,
    "/v1/tasks": TaskIn,
    "/v1/feedback": FeedbackIn,
    "/v1/jobs": JobIn,
}
_TEXT = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["dialog", "knowledge", "*", "shared", "\u0000", "\u200b", "2026-02-30", "9999-12-31T23:59:59-23:59"]
    ),
)
_SCALAR = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), _TEXT)
_JSON = st.recursive(
    _SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(_TEXT, st.sampled_from(["AND", "OR", "NOT", "eq", "in", "id", "text"])), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
_quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _answers(client: TestClient, method: str, path: str, body: Any) -> None:
    answer = client.request(method, path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code < 500, (body, answer.text)
    listed = client.get("/v1/memories")
    assert listed.status_code == 200, (body, listed.text)


@pytest.mark.parametrize("path", BODIES)
@_quick
@given(data=st.data())
def test_no_body_is_answered_with_a_5xx(client: TestClient, path: str, data: st.DataObject) -> None:
    model = BODIES[path]
    example = cast(dict[str, Any], model.model_config["json_schema_extra"])["examples"][0]
    names = st.sampled_from(sorted(model.model_fields))
    changed = {**example, **data.draw(st.dictionaries(names, _JSON, max_size=3))}
    _answers(client, "POST", path, changed)


@_quick
@given(body=st.dictionaries(st.sampled_from(sorted(PatchIn.model_fields)), _JSON, max_size=3))
def test_no_patch_is_answered_with_a_5xx(client: TestClient, body: Any) -> None:
    client.post("/v1/memories", json={"bank": "dialog", "text": "tea", "user_id": "alice", "id": "m"})
    _answers(client, "PATCH", "/v1/memories/m", body)


@_quick
@given(filter=_JSON, query=_TEXT)
def test_no_filter_or_query_is_answered_with_a_5xx(client: TestClient, filter: Any, query: str) -> None:
    client.post("/v1/memories", json={"bank": "dialog", "text": "tea", "user_id": "alice", "metadata": {"a": [1, "x"]}})
    _answers(client, "POST", "/v1/search", {"query": query, "user_id": "alice", "filter": filter})
