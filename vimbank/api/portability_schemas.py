"""Parameters and answers of export, import and erasure."""

from typing import Any

from pydantic import ConfigDict, Field

from vimbank.api.models import Answer, Params, example

__all__ = ["EraseParams", "ReceiptOut"]

_HASH = "5f0c6b1b2f3d4e5a6b7c8d9e0f1a2b3c"
_RECEIPT: dict[str, Any] = {
    "receipt": 1,
    "id": "0f4b1c5e8d1e4b6f9a54c2c1a8f0d3b7",
    "store": "7d1b6a1c0e9f4a3b8c2d5e6f7a8b9c0d",
    "by": "api:admin",
    "at": "2026-01-31T12:00:00Z",
    "tenant": "default",
    "user": _HASH,
    "session": None,
    "agent": None,
    "revision": 2048,
    "last_number": 1000,
    "counts": {"memories": 1, "tombstones": 0, "vectors": 1, "history": 2, "recalls": 3, "jobs": 0},
    "remote": {"sparse": "holds none of it"},
    "salt": "00112233445566778899aabbccddeeff",
    "contents": [_HASH],
    "ids": [_HASH],
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}


class EraseParams(Params):
    """What of the user is erased; neither: everything."""

    session_id: str | None = Field(None, description="Only this session.")
    agent_id: str | None = Field(None, description="Only this agent's memories.")


class ReceiptOut(Answer):
    """What was erased, in numbers and salted digests; `vimbank check --receipt FILE` verifies it."""

    model_config = ConfigDict(json_schema_extra=example(_RECEIPT))

    receipt: int
    id: str
    store: str
    by: str
    at: str
    tenant: str
    user: str
    session: str | None
    agent: str | None
    revision: int
    last_number: int
    counts: dict[str, int]
    remote: dict[str, str]
    salt: str
    contents: list[str]
    ids: list[str]
    digest: str
