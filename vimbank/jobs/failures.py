"""What a run could not do: counted, the first ones told, and after too many in a row the run ends (case 89)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from vimbank.errors import ModelError
from vimbank.llm.writer import TokensSpent

__all__ = ["Failures", "Stopped"]

_MOST_IN_A_ROW: Final = 5
"""Failures one after the other that end a run: the model will not do better a hundred times."""
_MOST_TOLD: Final = 20


class Stopped(Exception):
    """The run ends here: its reason."""


@dataclass(slots=True)
class Failures:
    """The failures of one run. ``told``: the first twenty, each with its error and the ids that it is about."""

    count: int = 0
    told: list[Mapping[str, str]] = field(default_factory=list)
    stopped: str | None = None
    _in_a_row: int = 0

    def note(self, error: Exception, **ids: str) -> None:
        """Count one. Ends the run after five in a row."""
        self.count += 1
        self._in_a_row += 1
        if len(self.told) < _MOST_TOLD:
            self.told.append({**ids, "error": str(error)})
        if self._in_a_row >= _MOST_IN_A_ROW:
            raise Stopped(f"{self._in_a_row} failures in a row")

    def note_success(self) -> None:
        """What fails next is the first in a row."""
        self._in_a_row = 0

    @contextmanager
    def ending_the_run(self) -> Iterator[None]:
        """Around a run: too many failures, or spent tokens, end it here; ``stopped`` says why."""
        try:
            yield
        except (Stopped, TokensSpent) as reason:
            self.stopped = str(reason)

    def raise_unless(self, done: bool) -> None:
        """Raises ModelError where there were failures and nothing was done."""
        if self.count and not done:
            raise ModelError(f"{self.count} of {self.count} failed, nothing was changed: {self.told[0]['error']}")

    def record(self) -> Mapping[str, Any]:
        """JSON values for the report."""
        return {"failed": self.count, "failures": self.told, "stopped": self.stopped}
