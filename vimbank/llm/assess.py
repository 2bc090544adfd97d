"""Whether something is worth remembering, by a chat model: a preset prompt teaches it the samples (V-6 to V-8)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from vimbank.domain.models import Sample
from vimbank.domain.tokens import cut_at_tokens, estimated_tokens
from vimbank.errors import ModelError
from vimbank.llm.asking import Asker, object_schema, prompt
from vimbank.ports import ChatModel

__all__ = ["BY_MODEL", "ChatJudge"]

BY_MODEL: Final = "llm"
"""The first reason of a judgement by a model."""

_REPLY_TOKENS: Final = 64  # two words of a fixed list each, and the braces
_FEWEST_TOKENS: Final = 64  # of what is to be judged
_ROUND: Final[Mapping[str, Sample]] = {
    "linked": Sample.POSITIVE,
    "tells_something": Sample.POSITIVE,
    "unrelated_history": Sample.NEGATIVE,
    "no_answer": Sample.NEGATIVE,
    "small_talk": Sample.NEGATIVE,
}
_ITEM: Final[Mapping[str, Sample]] = {
    "tells_something": Sample.POSITIVE,
    "not_text": Sample.NEGATIVE,
    "boilerplate": Sample.NEGATIVE,
    "repeats_itself": Sample.NEGATIVE,
    "only_questions": Sample.NEGATIVE,
    "too_short": Sample.NEGATIVE,
}
Judgement = tuple[Sample, tuple[str, ...]]


class ChatJudge(Asker):
    """Asks a chat model, one memory a request, within a budget of tokens.

    Args:    run_tokens: what all requests may cost.  check: asked while waiting; what it raises ends the request.
    Raises:  ConfigError: the model's window leaves no room for what is to be judged.
    """

    def __init__(self, chat: ChatModel, *, run_tokens: int, check: Callable[[], None] = lambda: None) -> None:
        super().__init__(chat, reply_tokens=_REPLY_TOKENS, run_tokens=run_tokens, check=check)
        fixed = max(estimated_tokens(prompt(name)) for name in ("assess_round", "assess_item"))
        self._room = self.room_or_raise(fixed, least=_FEWEST_TOKENS, purpose="to judge")

    def round(self, text: str, history: Sequence[str]) -> Judgement:
        """Of a round or turn with what was said before it, oldest first; what does not fit is left out, oldest first.

        Raises:  ModelError: the reply is no judgement, or its reason belongs to the other sample (case 89).
                 TokensSpent, BackendUnavailable, BackendRejected.
        """
        whole = cut_at_tokens(text, max(1, self._room // 2))[0]
        left = self._room - estimated_tokens(json.dumps(whole, ensure_ascii=False))
        kept: list[str] = []
        for each in reversed(history):
            part = cut_at_tokens(each, max(1, self._room // 4))[0]
            left -= estimated_tokens(json.dumps(part, ensure_ascii=False)) + 1
            if left < 0:
                break
            kept.insert(0, part)
        return self._asked("assess_round", {"history": kept, "round": whole}, _ROUND)

    def item(self, text: str) -> Judgement:
        """Of a piece of knowledge; of a long one its beginning is read. Raises as ``round``."""
        return self._asked("assess_item", {"item": cut_at_tokens(text, self._room // 2)[0]}, _ITEM)

    def _asked(self, name: str, content: Mapping[str, Any], known: Mapping[str, Sample]) -> Judgement:
        value = self.ask(prompt(name), json.dumps(content, ensure_ascii=False), _schema(known))
        reason, sample = value.get("reason"), value.get("sample")
        if not isinstance(reason, str) or reason not in known or sample != known[reason]:
            raise ModelError(f"the chat model gave no judgement: reason {reason!r}, sample {sample!r}")
        return known[reason], (BY_MODEL, reason)


def _schema(reasons: Iterable[str]) -> Mapping[str, Any]:
    return object_schema(
        reason={"type": "string", "enum": list(reasons)},
        sample={"type": "string", "enum": [each.value for each in Sample]},
    )
