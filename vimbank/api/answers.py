"""Answers as bytes: records of the domain to JSON in one step.

The response models in ``schemas`` describe these answers in the OpenAPI document; a test holds the two
together. Serialising twice would cost more than the search of a small partition.
"""

from typing import Any

import orjson
from starlette.responses import Response

__all__ = ["json_bytes", "json_response"]

# Aware times become ISO 8601 with Z, microseconds only where there are any: what `format_time` writes.
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY


def json_bytes(value: Any) -> bytes:
    """``value`` (dicts, lists, numbers, strings, aware times) as UTF-8 JSON on one line."""
    return orjson.dumps(value, option=_OPTIONS)


def json_response(value: Any, status: int = 200) -> Response:
    """``value`` as ``application/json``."""
    return Response(json_bytes(value), status, media_type="application/json")
