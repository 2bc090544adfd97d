"""Asking a chat model within a budget of tokens, counted over one run."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from vimbank.llm.writer import Spent, TokensSpent
from vimbank.ports import ChatMessage, ChatModel

__all__ = ["MARGIN_TOKENS", "Asker"]

MARGIN_TOKENS: Final = 32
"""For what a server's template puts around the messages."""


class Asker:
    """One run's requests to a chat model.

    Args:    reply_tokens: of one reply.  run_tokens: what all requests may cost.  check: asked while waiting; what it
             raises ends the request.
    """

    def __init__(
        self, chat: ChatModel, *, reply_tokens: int, run_tokens: int, check: Callable[[], None] = lambda: None
    ) -> None:
        self.chat: Final = chat
        self.reply_tokens: Final = reply_tokens
        self._run_tokens = run_tokens
        self._check = check
        self.spent = Spent()

    def ask(self, system: str, content: str, schema: Mapping[str, Any]) -> str:
        """The JSON text of a reply. Raises TokensSpent, and as ``ChatModel.complete``."""
        self._check()
        if self.spent.tokens >= self._run_tokens:
            raise TokensSpent(f"{self.spent.tokens} tokens are spent, {self._run_tokens} are allowed")
        reply = self.chat.complete(
            [ChatMessage("system", system), ChatMessage("user", content)],
            schema=schema,
            max_tokens=self.reply_tokens,
            check=self._check,
        )
        usage, before = reply.usage, self.spent
        self.spent = Spent(
            before.requests + 1,
            before.prompt_tokens + usage.prompt_tokens,
            before.completion_tokens + usage.completion_tokens,
        )
        return reply.text
