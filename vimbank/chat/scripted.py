"""A chat model that says what it was told to: for tests, and for trying a prompt without a model."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from vimbank.chat.replies import estimated_tokens, json_object, said
from vimbank.errors import ModelError
from vimbank.ports import ChatMessage, ChatReply, ChatUsage

__all__ = ["Asked", "Line", "ScriptedChat"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the model was sent."""

    messages: Sequence[ChatMessage]
    schema: Mapping[str, Any] | None
    max_tokens: int | None


Line: TypeAlias = str | Mapping[str, Any] | Exception | Callable[[Asked], str]
"""A reply: text, an object as JSON, an error to raise, or a function of the request."""


class ScriptedChat:
    """Gives its lines one after the other, the last one for ever; with none it raises ModelError. Thread-safe.

    ``asked`` holds what it was sent, in order. What a reply must hold to is held to here as by a real adapter.
    """

    def __init__(self, lines: Iterable[Line] = (), *, name: str = "scripted", window: int = 4_096) -> None:
        self.asked: list[Asked] = []
        self._lines = list(lines)
        self._name = name
        self._window = window
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def window(self) -> int:
        return self._window

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        timeout_s: float | None = None,
        check: Callable[[], None] | None = None,
    ) -> ChatReply:
        """See ``ChatModel.complete``."""
        del temperature, timeout_s
        if check is not None:
            check()
        request = Asked(tuple(messages), schema, max_tokens)
        text = said(_text(self._next(request), request))
        if schema is not None:
            text = json_object(text)
        spent = estimated_tokens([ChatMessage("assistant", text)])
        return ChatReply(text, self._name, ChatUsage(estimated_tokens(messages), spent, counted=False))

    def _next(self, request: Asked) -> Line:
        with self._lock:
            self.asked.append(request)
            if not self._lines:
                raise ModelError("the script has no line")
            return self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]


def _text(line: Line, request: Asked) -> str:
    if isinstance(line, Exception):
        raise line
    if isinstance(line, str):
        return line
    return json.dumps(line, ensure_ascii=False) if isinstance(line, Mapping) else line(request)
