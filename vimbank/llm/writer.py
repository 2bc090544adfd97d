"""What writes a summary or a portrait, and what it is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from vimbank.domain.summaries import Method
from vimbank.errors import VimbankError

__all__ = ["Passage", "Spent", "Task", "TokensSpent", "Writer"]

Task: TypeAlias = Literal["group_summary", "day_summary", "global_summary", "day_portrait", "global_portrait"]


class TokensSpent(VimbankError):
    """A run has spent the tokens that it may."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of what is to be summarised: a memory's text, when it happened, who speaks (None: not known).

    ``own_words`` is what of it the user said; "" where it is somebody else's.
    """

    text: str
    at: datetime
    speaker: str | None = None
    own_words: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a writer has asked of a model so far: requests, and tokens of both directions."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in all."""
        return self.prompt_tokens + self.completion_tokens

    def record(self) -> Mapping[str, int]:
        """JSON values for a report."""
        return {
            "requests": self.requests,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
        }


class Writer(Protocol):
    """Writes summaries and portraits; one a run. Raises ModelError, BackendUnavailable, BackendRejected, TokensSpent.

    What it gives fits into the encoder's window, so that a summary is one memory and no document.
    """

    @property
    def method(self) -> Method: ...

    @property
    def model(self) -> str | None:
        """The model's name; None: there is none."""
        ...

    @property
    def spent(self) -> Spent: ...

    def write(self, task: Task, passages: Sequence[Passage]) -> str | None:
        """The summary or portrait of these passages, in order of time; None: there is nothing to tell in them."""
        ...

    def merge(self, old: str, new: str) -> str:
        """An old summary brought up to date by a new one: what overlaps is the new one's, the rest is combined."""
        ...
