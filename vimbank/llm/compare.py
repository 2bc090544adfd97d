"""What the newer of two memories is to the older, by a chat model (V-9, V-10)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vimbank.domain.comparing import Relation
from vimbank.domain.times import format_time
from vimbank.domain.tokens import cut_at_tokens, estimated_tokens
from vimbank.errors import ModelError
from vimbank.llm.asking import Asker, object_schema, prompt
from vimbank.ports import ChatModel

__all__ = ["Answer", "ChatComparer", "Told"]

_PROMPT: Final = "compare_pair"
_REPLY_TOKENS: Final = 160  # a reason of ten words in any script, and room for a model that does not count
_FEWEST_TOKENS: Final = 128  # of both texts
_FRAME_TOKENS: Final = 64  # dates, names of fields
_NAME_TOKENS: Final = 16  # of a speaker, of a title
_REASON_CHARS: Final = 200

_SCHEMA: Final = object_schema(
    reason={"type": "string"}, relation={"type": "string", "enum": [each.value for each in Relation]}
)


@dataclass(frozen=True, slots=True)
class Told:
    """What the model reads of a memory: when it was said, aware UTC, what, by whom and in which text, where known."""

    at: datetime
    text: str
    speaker: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says of a pair; its reason is for people to read, at most 200 characters."""

    relation: Relation
    reason: str


class ChatComparer(Asker):
    """Asks a chat model, one pair a request, within a budget of tokens.

    Args:    run_tokens: what all requests may cost.  check: asked while waiting; what it raises ends the request.
    Raises:  ConfigError: the model's window leaves no room for two texts.
    """

    def __init__(self, chat: ChatModel, *, run_tokens: int, check: Callable[[], None] = lambda: None) -> None:
        super().__init__(chat, reply_tokens=_REPLY_TOKENS, run_tokens=run_tokens, check=check)
        fixed = estimated_tokens(prompt(_PROMPT)) + _FRAME_TOKENS + 4 * _NAME_TOKENS
        self._room = self.room_or_raise(fixed, least=_FEWEST_TOKENS, purpose="to compare")

    def compare(self, older: Told, newer: Told) -> Answer:
        """What the newer one is to the older; of long texts the beginnings are read.

        Raises:  ModelError: the reply names no relation (case 89).
                 TokensSpent, BackendUnavailable, BackendRejected.
        """
        content = {"older": self._record(older), "newer": self._record(newer)}
        value = self.ask(prompt(_PROMPT), json.dumps(content, ensure_ascii=False), _SCHEMA)
        relation, reason = value.get("relation"), value.get("reason")
        if not isinstance(reason, str) or not isinstance(relation, str) or relation not in set(Relation):
            raise ModelError(f"the chat model did not compare: relation {relation!r}, reason {reason!r}")
        return Answer(Relation(relation), reason.strip()[:_REASON_CHARS])

    def _record(self, told: Told) -> Mapping[str, str]:
        named = {"speaker": told.speaker, "title": told.title}
        names = {name: _cut(value, _NAME_TOKENS) for name, value in named.items() if value}
        return {"date": format_time(told.at), **names, "text": _cut(told.text, self._room // 2)}


def _cut(text: str, tokens: int) -> str:
    """The beginning of a text that takes no more than so many tokens as JSON."""
    size = tokens
    while True:
        kept = cut_at_tokens(text, size)[0]
        if size == 1 or estimated_tokens(json.dumps(kept, ensure_ascii=False)) <= tokens:
            return kept
        size = max(1, size * 3 // 4)
