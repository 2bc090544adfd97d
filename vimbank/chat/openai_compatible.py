"""A chat model that speaks OpenAI's protocol, through the ``openai`` client. An optional extra."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

from vimbank.chat.replies import estimated_tokens, json_object, said
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, ModelError
from vimbank.ports import ChatMessage, ChatReply, ChatUsage

__all__ = ["OpenAICompatibleChat"]

_BACKEND: Final = "chat endpoint"
_POLL_S: Final = 0.05
_CLOSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 8.0
"""The client's longest pause between two tries, unless the server asks for another."""
_UNSUPPORTED: Final = frozenset({400, 404, 415, 422, 501})

_Form: TypeAlias = Literal["schema", "object", "words"]
_FORMS: Final[tuple[_Form, ...]] = ("schema", "object", "words")


class OpenAICompatibleChat:
    """Replies from ``POST {base_url}/chat/completions``.

    Structured output is asked for by ``response_format: json_schema``. Where the server refuses that, by
    ``json_object``, and where it refuses that, too, by words alone; in both the schema stands in the first message.
    The form that a server takes is remembered. However it was asked for, the reply is read as JSON and refused where
    it is none.

    Refused connections, time-outs, 408, 409, 429 and 5xx are tried again by the client, with growing pauses, or after
    the time that the server names. The requests run on a thread of their own, so that one that is no longer wanted
    is ended at once, and its connection closed: most servers stop writing then.

    Args:    client: an ``openai.AsyncOpenAI``.  model: its name there.  window: tokens of messages and reply together.
             max_tokens: of a reply.  timeout_s: patience of one try.  max_retries: tries after the first.
    """

    def __init__(
        self, client: Any, model: str, *, window: int, max_tokens: int, timeout_s: float, max_retries: int
    ) -> None:
        self._client = client
        self._model = model
        self._window = window
        self._max_tokens = max_tokens
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._first_form = 0
        self._loop = _LoopThread()

    @classmethod
    def open(
        cls,
        model: str | None,
        *,
        base_url: str | None,
        api_key: str | None = None,
        window: int = 4_096,
        max_tokens: int = 512,
        timeout_s: float = 60.0,
        max_retries: int = 2,
    ) -> "OpenAICompatibleChat":
        """A client of the endpoint; nothing is sent yet.

        Raises:  ConfigError: the client library, the model's name or the address is missing.
        """
        if not model or not base_url:
            raise ConfigError("a chat model needs the model's name and the endpoint's base_url")
        # A key is always given: the client would else look for one in the environment (case 132).
        client = _openai().AsyncOpenAI(
            base_url=base_url, api_key=api_key or "none", timeout=timeout_s, max_retries=max_retries
        )
        return cls(client, model, window=window, max_tokens=max_tokens, timeout_s=timeout_s, max_retries=max_retries)

    @property
    def name(self) -> str:
        return self._model

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
        options: dict[str, Any] = {
            "max_tokens": self._max_tokens if max_tokens is None else max_tokens,
            "temperature": temperature,
        }
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if schema is None:
            return self._reply(messages, self._ask(messages, options, timeout_s, check))
        answer = self._ask_for_json(messages, schema, options, timeout_s, check)
        reply = self._reply(messages, answer)
        if _finish(answer) == "length":
            raise ModelError(f"the reply was cut off after {reply.usage.completion_tokens} tokens")
        return ChatReply(json_object(reply.text), reply.model, reply.usage)

    def close(self) -> None:
        """End what still runs, and close the connections."""
        self._loop.close(self._client.close)

    # -- inside --

    def _ask_for_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        options: dict[str, Any],
        timeout_s: float,
        check: Callable[[], None] | None,
    ) -> Any:
        for place in range(self._first_form, len(_FORMS)):
            given, extra = _formed(_FORMS[place], messages, schema)
            try:
                answer = self._ask(given, options | extra, timeout_s, check)
            except BackendRejected as refusal:
                status = getattr(refusal.__cause__, "status_code", None)
                if status not in _UNSUPPORTED or place + 1 == len(_FORMS):
                    raise
                continue
            self._first_form = place  # only now: what was refused may have been this request for another reason
            return answer
        raise AssertionError("unreachable")  # the last form returns or raises

    def _ask(
        self,
        messages: Sequence[ChatMessage],
        options: Mapping[str, Any],
        timeout_s: float,
        check: Callable[[], None] | None,
    ) -> Any:
        sent = [{"role": message.role, "content": message.content} for message in messages]
        # The client's time-out begins anew with every byte; a server that drips must not hold a job for ever.
        patience_s = timeout_s * (self._max_retries + 1) + _LONGEST_PAUSE_S * self._max_retries

        async def request() -> Any:
            create = self._client.chat.completions.create
            try:
                async with asyncio.timeout(patience_s):
                    return await create(model=self._model, messages=sent, timeout=timeout_s, **options)
            except TimeoutError as exc:
                raise BackendUnavailable(_BACKEND, f"no reply in {patience_s:g} s") from exc

        with _translated():
            return self._loop.run(request(), check)

    def _reply(self, messages: Sequence[ChatMessage], answer: Any) -> ChatReply:
        try:
            text = said(answer.choices[0].message.content)
        except (AttributeError, IndexError, TypeError) as exc:
            raise ModelError(f"the {_BACKEND} answered something else than a reply") from exc
        usage = getattr(answer, "usage", None)
        sent, written = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        if isinstance(sent, int) and isinstance(written, int):
            spent = ChatUsage(sent, written)
        else:
            answered = [ChatMessage("assistant", text)]
            spent = ChatUsage(estimated_tokens(messages), estimated_tokens(answered), counted=False)
        return ChatReply(text, getattr(answer, "model", None) or self._model, spent)


class _LoopThread:
    """One event loop on a thread of its own, begun at the first use: after a worker process has been forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, Any], check: Callable[[], None] | None) -> Any:
        """The result of ``work``. What ``check`` raises meanwhile ends it."""
        future: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            while not wait([future], _POLL_S).done:
                if check is not None:
                    check()
            return future.result()
        except CancelledError as exc:
            raise BackendUnavailable(_BACKEND, "it was closed") from exc
        finally:
            future.cancel()  # nothing, where it has ended

    def close(self, last: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """End what runs, then ``last``, then the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return

        async def end() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await last()
            loop.stop()

        asyncio.run_coroutine_threadsafe(end(), loop)
        thread.join(_CLOSE_S)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="vimbank-chat", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _formed(
    form: _Form, messages: Sequence[ChatMessage], schema: Mapping[str, Any]
) -> tuple[Sequence[ChatMessage], dict[str, Any]]:
    """The messages, and what goes beside them, that ask for an object of this schema."""
    if form == "schema":
        described = {"name": "reply", "schema": dict(schema), "strict": True}
        return messages, {"response_format": {"type": "json_schema", "json_schema": described}}
    wish = f"Answer with one JSON object of this schema and nothing else:\n{json.dumps(dict(schema))}"
    first = messages[0]
    if first.role == "system":
        asked = [ChatMessage("system", f"{first.content}\n\n{wish}"), *messages[1:]]
    else:
        asked = [ChatMessage("system", wish), *messages]
    return asked, {"response_format": {"type": "json_object"}} if form == "object" else {}


def _finish(answer: Any) -> str | None:
    found = getattr(answer.choices[0], "finish_reason", None)
    return found if isinstance(found, str) else None


def _openai() -> Any:
    try:
        import openai  # an extra, and slow to load
    except ImportError as exc:
        raise ConfigError("the openai client is not installed: pip install 'vimbank[openai]'") from exc
    return openai


@contextmanager
def _translated() -> Iterator[None]:
    openai = _openai()
    try:
        yield
    except (openai.APIConnectionError, openai.RateLimitError) as exc:
        raise BackendUnavailable(_BACKEND, str(exc)) from exc  # APITimeoutError is an APIConnectionError
    except openai.APIStatusError as exc:
        again = exc.status_code in (408, 409) or (exc.status_code >= 500 and exc.status_code != 501)
        raise (BackendUnavailable if again else BackendRejected)(_BACKEND, str(exc)) from exc
    except (openai.OpenAIError, json.JSONDecodeError) as exc:
        raise ModelError(f"the {_BACKEND} gave nothing usable: {exc}") from exc
