"""Asking a chat model within its window and a budget of tokens, counted over one run."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from vimbank.errors import ConfigError
from vimbank.llm.writer import Spent, TokensSpent
from vimbank.ports import ChatMessage, ChatModel

__all__ = ["Asker", "object_schema", "prompt"]

_PROMPTS: Final = Path(__file__).parent / "prompts"
_MARGIN_TOKENS: Final = 32
"""For what a server's template puts around the messages."""


class Asker:
    """One run's requests to a chat model.

    Args:    reply_tokens: of one reply.  run_tokens: what all requests may cost.  check: asked while waiting; what it
             raises ends the request.
    """

    def __init__(
        self, chat: ChatModel, *, reply_tokens: int, run_tokens: int, check: Callable[[], None] = lambda: None
    ) -> None:
        self._chat = chat
        self._run_tokens = run_tokens
        self._check = check
        self._spent = Spent()
        self.reply_tokens: Final = reply_tokens

    @property
    def model(self) -> str:
        """The model's name."""
        return self._chat.name

    @property
    def spent(self) -> Spent:
        """What was asked so far."""
        return self._spent

    def room(self, fixed_tokens: int) -> int:
        """Tokens of the window that are left beside so many and a reply; below 0 where the window is too small."""
        return self._chat.window - fixed_tokens - self.reply_tokens - _MARGIN_TOKENS

    def room_or_raise(self, fixed_tokens: int, *, least: int, purpose: str) -> int:
        """As ``room``. Raises ConfigError, which names the purpose («to judge»), where less than ``least`` are left."""
        room, window = self.room(fixed_tokens), self._chat.window
        if room < least:
            needed = window - room + least
            raise ConfigError(f"a chat model's window of {window} tokens is too small: {needed} are needed {purpose}")
        return room

    def ask(self, system: str, content: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The JSON object of a reply. Raises TokensSpent, and as ``ChatModel.complete``."""
        self._check()
        if self._spent.tokens >= self._run_tokens:
            raise TokensSpent(f"{self._spent.tokens} tokens are spent, {self._run_tokens} are allowed")
        reply = self._chat.complete(
            [ChatMessage("system", system), ChatMessage("user", content)],
            schema=schema,
            max_tokens=self.reply_tokens,
            check=self._check,
        )
        usage, before = reply.usage, self._spent
        self._spent = Spent(
            before.requests + 1,
            before.prompt_tokens + usage.prompt_tokens,
            before.completion_tokens + usage.completion_tokens,
        )
        value: Mapping[str, Any] = json.loads(reply.text)
        return value


def object_schema(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a JSON object with these properties, in this order, and no others.

    No bounds on texts: not every server knows them, and some refuse a schema for that. What is blank is refused by
    whoever asks.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@lru_cache
def prompt(name: str) -> str:
    """The text of ``prompts/<name>.md``."""
    return (_PROMPTS / f"{name}.md").read_text("utf-8").strip()
