"""JSON values as what they are said to be: a check that names the field."""

from vimbank.errors import InvalidInput

__all__ = ["flag_value", "text_value"]


def text_value(value: object, field: str) -> str:
    """The value, if it is text. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput.of(field, "must be text")
    return value


def flag_value(value: object, field: str) -> bool:
    """The value, if it is true or false. Raises InvalidInput."""
    if not isinstance(value, bool):
        raise InvalidInput.of(field, "must be true or false")
    return value
