"""What every adapter does with a model's text."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from vimbank.domain import tokens
from vimbank.errors import ModelError
from vimbank.ports import ChatMessage

__all__ = ["estimated_tokens", "json_object", "said"]

_FENCED: Final = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_MESSAGE_TOKENS: Final = 4
"""What a message costs beside its text, roughly."""


def said(text: object) -> str:
    """The text of a reply. Raises ModelError where there is none, or a blank one (case 89)."""
    if not isinstance(text, str) or not text.strip():
        raise ModelError("the chat model answered nothing")
    return text.strip()


def json_object(text: str) -> str:
    """The JSON object in a reply as compact JSON; a Markdown fence around it is taken off.

    Raises ModelError for anything else: it is not guessed what broken JSON may have meant (case 89).
    """
    fenced = _FENCED.match(text)
    try:
        value: Any = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as exc:
        raise ModelError(f"the chat model answered something else than JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise ModelError("the chat model answered something else than a JSON object")
    return json.dumps(value, ensure_ascii=False)


def estimated_tokens(messages: Sequence[ChatMessage]) -> int:
    """Tokens of messages where the server counts none; for usual models more than they are."""
    return sum(_MESSAGE_TOKENS + tokens.estimated_tokens(message.content) for message in messages)
