"""What went wrong."""

from pydantic import ConfigDict, Field

from vimbank.api.schemas.base import Answer, example

__all__ = ["PROBLEM_EXAMPLE", "Problem"]

PROBLEM_EXAMPLE = {
    "type": "urn:vimbank:problem:invalid-input",
    "title": "A value of the request is not acceptable",
    "status": 422,
    "detail": "top_k: Input should be greater than or equal to 1",
    "errors": [{"field": "top_k", "message": "Input should be greater than or equal to 1"}],
}


class FieldProblem(Answer):
    """One bad field."""

    field: str
    message: str


class Problem(Answer):
    """What went wrong, as RFC 9457 problem details."""

    model_config = ConfigDict(json_schema_extra=example(PROBLEM_EXAMPLE))

    type: str = Field(description="Stable name of the kind of problem.")
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[FieldProblem] | None = None
