"""What a failed command says, and its exit code: one table over the error tree."""

import json
from collections.abc import Mapping
from typing import Any, Final

import click

from vimbank.errors import (
    BackendRejected,
    BackendUnavailable,
    ConfigError,
    Conflict,
    IndexCorrupt,
    InvalidInput,
    ModelError,
    NotFound,
    VimbankError,
)

__all__ = ["EXIT_CODES", "JSON_REQUESTED", "describe", "exit_code", "report"]

EXIT_CODES: Final[Mapping[type[VimbankError], int]] = {
    NotFound: 1,
    Conflict: 1,
    BackendRejected: 1,
    ModelError: 1,
    ConfigError: 2,
    InvalidInput: 2,
    BackendUnavailable: 3,
    IndexCorrupt: 3,
}

JSON_REQUESTED: Final = "vimbank.json"
"""Key in click's shared context under which a command notes that --json was given."""


def exit_code(error: VimbankError) -> int:
    """The exit code of an error: that of its nearest class in the table, else 1."""
    return next((EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES), 1)


def describe(error: VimbankError) -> dict[str, Any]:
    """The error as JSON: its class, message and, where the input was bad, each field."""
    document: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, InvalidInput):
        document["errors"] = [{"field": each.field, "message": each.message} for each in error.errors]
    return document


def report(error: VimbankError) -> None:
    """Print the error on standard error and, where JSON was asked for, as the one document on standard output."""
    click.echo(f"vimbank: {error}", err=True)
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(JSON_REQUESTED):
        click.echo(json.dumps({"error": describe(error)}, indent=2))
