"""What all bodies, parameters and answers of the REST interface have in common."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["Answer", "Body", "Params", "example"]


def example(value: Mapping[str, Any]) -> dict[str, Any]:
    """``json_schema_extra`` of a model with this example."""
    return {"examples": [value]}


class Body(BaseModel):
    """A JSON body: exact types, no unknown field."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Params(BaseModel):
    """Query parameters: text, so numbers are read from it; no unknown one, as a mistyped scope would widen it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """An answer; describes what ``answers.py`` writes."""

    model_config = ConfigDict(extra="forbid")
