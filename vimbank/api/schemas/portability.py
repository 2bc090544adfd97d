"""Parameters and answers of export, import and erasure."""

from typing import Any

from pydantic import ConfigDict, Field

from vimbank.api.schemas.base import Answer, Params, example
from vimbank.portability.import_ import FormatName

__all__ = ["EraseParams", "ExportParams", "ImportOut", "ImportParams", "ProblemOut", "ReceiptOut"]

EXPORT_EXAMPLE = (
    '{"vimbank":1,"store":"7d1b6a1c0e9f4a3b8c2d5e6f7a8b9c0d","at":"2026-01-31T12:00:00Z","user_id":"ana",'
    '"encoder":{"name":"m","revision":"1","dimension":2,"pooling":"mean","prefix":""},'
    '"counts":{"memories":1,"history":1},"revision":1}\n'
    '{"id":"m1","user_id":"ana","memory":{"bank":"dialog","kind":"note","text":"Ana plays the cello",'
    '"created_at":"2026-01-31T11:00:00Z","updated_at":"2026-01-31T11:00:00Z","token_count":5},'
    '"vector":"AACAPwAAAAA=","past":[{"bank":"dialog","at":"2026-01-31T11:00:00Z","event":"add","actor":"api:write",'
    '"new_text":"Ana plays the cello"}]}\n'
    '{"end":{"lines":1,"sha256":"5c2b…"}}\n'
)
"""Of ``GET /v1/export``; the vector has two numbers and the digest is shortened."""

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


class ExportParams(Params):
    """Whose memories."""

    user_id: str | None = Field(None, description="Unset: all users of the tenant, for which the role admin is needed.")


class ImportParams(Params):
    """How the body is read."""

    user_id: str | None = Field(None, description="Whose memories, where the file does not say.")
    bank: str | None = Field(None, description="Their bank, where the file does not say.")
    format: FormatName = Field("auto", description="`auto` looks at the beginning of the file.")
    dry_run: bool = Field(False, description="Tell what would happen, and write nothing.")


class ProblemOut(Answer):
    """What did not go in; `line` is the number of the line, or of the item in a dump, from 1."""

    line: int
    error: str
    id: str | None


class ImportOut(Answer):
    """What became of the file. `bad` and `conflicts` list the first 1,000 each; `failed` counts all.

    `complete`: an export was read to its end, unchanged; null where the format has no end.
    """

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "format": "vimbank",
                "dry_run": False,
                "added": 120,
                "duplicates": 3,
                "failed": 1,
                "embedded": 0,
                "complete": True,
                "bad": [{"line": 17, "error": "line: is not JSON: unexpected character", "id": None}],
                "conflicts": [],
                "notes": [],
            }
        )
    )

    format: str
    dry_run: bool
    added: int
    duplicates: int
    failed: int
    embedded: int
    complete: bool | None
    bad: list[ProblemOut]
    conflicts: list[ProblemOut]
    notes: list[str]
