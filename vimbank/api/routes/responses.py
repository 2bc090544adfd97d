"""Which statuses a route documents: a test holds every answer of the tests against this."""

from typing import Any, Final, TypeAlias

from vimbank.api.errors import PROBLEM_MEDIA_TYPE

__all__ = ["BODY", "ONE", "PLAIN", "Responses", "problems"]

Responses: TypeAlias = dict[int | str, dict[str, Any]]

_DESCRIPTIONS: Final = {
    400: "The form is malformed.",
    401: "No valid key.",
    403: "The key's role does not allow it.",
    404: "Unknown, or of another tenant.",
    409: "Contradicts what is stored.",
    413: "The body is too large.",
    422: "A value is not acceptable; `errors` names the fields.",
    500: "Unexpected; the request id leads to the log.",
    502: "An engine or model failed.",
    503: "An engine is out of reach; try again.",
}
# The model reaches the document through `BatchOut`.
_PROBLEM_CONTENT: Final = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def problems(*statuses: int) -> Responses:
    """Problem details under these statuses."""
    return {status: {"description": _DESCRIPTIONS[status], "content": _PROBLEM_CONTENT} for status in statuses}


PLAIN: Final = problems(401, 403, 422, 500, 502, 503)
"""Any route that needs a key."""
ONE: Final = PLAIN | problems(404)
"""Routes about one thing."""
BODY: Final = PLAIN | problems(400, 409, 413)
"""Routes that write what a body says."""
