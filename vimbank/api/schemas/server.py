"""The server itself: figures and health."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from vimbank.api.schemas.base import Answer, Params, example

__all__ = ["LiveOut", "ReadyOut", "RootOut", "StatsOut", "StatsParams"]


class StatsParams(Params):
    """Whose figures."""

    user_id: str | None = Field(None, description="Unset: the whole tenant, for which the role admin is needed.")


class StatsOut(Answer):
    """Figures of a tenant or of one user."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=example(
            {
                "memories": 3,
                "by_bank": {"dialog": 2, "knowledge": 1},
                "by_state": {"active": 3},
                "by_kind": {"note": 3},
                "users": 2,
                "revision": 17,
                "encoder": "all-MiniLM-L6-v2@onnx (384 dimensions)",
                "index": {"partitions": 2, "bytes": 8192},
                "disk_bytes": 40960,
            }
        ),
    )

    memories: int
    by_bank: dict[str, int]
    by_state: dict[str, int]
    by_kind: dict[str, int]
    users: int
    revision: int
    encoder: Any
    index: Any
    disk_bytes: int


class LiveOut(Answer):
    """The process answers."""

    model_config = ConfigDict(json_schema_extra=example({"status": "live"}))

    status: Literal["live"]


class ReadyOut(Answer):
    """Whether requests can be served, and the state of each part."""

    model_config = ConfigDict(json_schema_extra=example({"status": "ready", "components": {"store": "ok"}}))

    status: Literal["ready", "not ready"]
    components: dict[str, str]


class RootOut(Answer):
    """Where to go from here."""

    model_config = ConfigDict(
        json_schema_extra=example({"name": "vimbank", "version": "0.1.0", "docs": "/docs", "openapi": "/openapi.json"})
    )

    name: str
    version: str
    docs: str
    openapi: str
