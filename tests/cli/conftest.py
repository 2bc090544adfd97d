"""The ``vimbank`` command on a folder of its own, with the test encoder."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vimbank.cli.main import cli

ENVIRONMENT = {"VIMBANK_ENCODER__KIND": "hashing", "VIMBANK_LOG__LEVEL": "WARNING", "COLUMNS": "120"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document it must be."""
        return json.loads(self.out)


Vimbank = Callable[..., Outcome]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def vimbank(data: Path) -> Vimbank:
    """Runs ``vimbank`` with these arguments in this process; an exception that is no exit code fails the test."""

    def run(*arguments: str, stdin: str | None = None, **environment: str) -> Outcome:
        variables = {**ENVIRONMENT, "VIMBANK_DATA_DIR": str(data), **environment}
        result = CliRunner().invoke(cli, arguments, input=stdin, env=variables, catch_exceptions=False)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run
