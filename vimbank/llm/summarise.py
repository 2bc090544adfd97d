"""Summaries and portraits by a chat model: prompts, structured replies, token budgets."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from vimbank.domain.sentences import fitted
from vimbank.domain.summaries import Method
from vimbank.domain.times import format_time
from vimbank.domain.tokens import cut_at_tokens, estimated_tokens
from vimbank.errors import ModelError
from vimbank.llm.asking import Asker, object_schema, prompt
from vimbank.llm.writer import Passage, Task
from vimbank.ports import ChatModel, Encoder

__all__ = ["ChatWriter"]

_SUMMARY: Final = object_schema(summary={"type": "string"})
_UPDATE: Final = object_schema(overlap={"type": "string"}, summary={"type": "string"})
_NOTHING: Final = frozenset({"null", "none", "n/a", "undefined", "nothing", "无", "没有"})
_WORDS_A_TOKEN: Final = 0.6
_CONDENSED_BY: Final[Mapping[Task, Task]] = {"day_portrait": "global_portrait", "global_portrait": "global_portrait"}


class ChatWriter(Asker):
    """Asks a chat model, within its window and a budget of tokens.

    Prompt and passages are planned by an estimate that is above what usual models count; what was spent is what the
    server counted. Passages that do not fit are summarised in parts, and the parts condensed.

    Args:    encoder: what it writes fits into its window.  reply_tokens: of one reply, >= 32.
             run_tokens: what all requests of this writer may cost.  check: asked while waiting; what it raises ends
             the request.
    Raises:  ConfigError: the model's window leaves no room for passages.
    """

    method: Method = "llm"

    def __init__(
        self,
        chat: ChatModel,
        encoder: Encoder,
        *,
        reply_tokens: int,
        run_tokens: int,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(chat, reply_tokens=reply_tokens, run_tokens=run_tokens, check=check)
        self._encoder = encoder
        longest = max(estimated_tokens(_prompt(name, 9_999)) for name in (*get_args(Task), "update_summary"))
        self.room_or_raise(longest, least=3 * reply_tokens, purpose=f"to write replies of {reply_tokens}")

    def write(self, task: Task, passages: Sequence[Passage]) -> str | None:
        """See ``Writer.write``."""
        lines = [_line(passage) for passage in passages]
        while True:
            system = self._system(task)
            room = self.room(estimated_tokens(system))
            parts = _parts(lines, room)
            written = [self._asked(system, "\n".join(part), _SUMMARY) for part in parts]
            if len(written) == 1:
                return written[0]
            # Two of them fit at least, so there are fewer each time.
            lines = [cut_at_tokens(each, room // 2)[0] for each in written]
            task = _CONDENSED_BY.get(task, "global_summary")

    def merge(self, old: str, new: str) -> str:
        """See ``Writer.merge``; both were written by a writer, so they fit."""
        system = self._system("update_summary")
        both = json.dumps({"old summary": old, "new summary": new}, ensure_ascii=False, indent=1)
        return self._asked(system, both, _UPDATE)

    # -- inside --

    def _system(self, name: str) -> str:
        tokens = min(self.reply_tokens, self._encoder.window)
        return _prompt(name, max(20, int(tokens * _WORDS_A_TOKEN) // 10 * 10))

    def _asked(self, system: str, content: str, schema: Mapping[str, Any]) -> str:
        return fitted(_summary(self.ask(system, content, schema)), self._encoder.tokenize, limit=self._encoder.window)


def _summary(reply: Mapping[str, Any]) -> str:
    """The summary in a reply. Raises ModelError for one that is none (case 89)."""
    value = reply.get("summary")
    if not isinstance(value, str) or value.strip().strip(".").casefold() in _NOTHING | {""}:
        raise ModelError("the chat model gave no summary")
    return value.strip()


def _line(passage: Passage) -> str:
    who = f"{passage.speaker}: " if passage.speaker else ""
    return f"[{format_time(passage.at)}] {who}{passage.text}"


def _parts(lines: Sequence[str], room: int) -> list[list[str]]:
    """The lines in parts of at most ``room`` estimated tokens each; a longer line is cut."""
    parts: list[list[str]] = [[]]
    filled = 0
    for line in (piece for each in lines for piece in cut_at_tokens(each, room)):
        cost = estimated_tokens(line)
        if parts[-1] and filled + cost > room:
            parts.append([])
            filled = 0
        parts[-1].append(line)
        filled += cost
    return parts


def _prompt(name: str, words: int) -> str:
    return prompt(name).replace("{words}", str(words))
