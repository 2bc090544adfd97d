"""The chat adapter against a real HTTP server that speaks the protocol, and misbehaves when told to."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from vimbank.chat.openai_compatible import OpenAICompatibleChat
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, ModelError, VimbankError
from vimbank.ports import ChatMessage

SCHEMA = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
ASKED = [ChatMessage("system", "Be brief."), ChatMessage("user", "Hello?")]


class Endpoint(ThreadingHTTPServer):
    """Answers ``content``; ``failures`` first, one a request; ``refused`` response formats with 400."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.content: Any = "Hi."
        self.finish = "stop"
        self.usage: dict[str, int] | None = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        self.failures: list[tuple[int, str]] = []
        self.refused: set[str] = set()
        self.pause_s = 0.0
        self.drip_s = 0.0
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body | {"authorization": self.headers["Authorization"]})
        if self._left_while_waiting():
            return
        if self.server.failures:
            status, text = self.server.failures.pop(0)
        elif body.get("response_format", {}).get("type", "words") in self.server.refused:
            status, text = 400, json.dumps({"error": {"message": "response_format is unknown"}})
        else:
            choice = {
                "index": 0,
                "finish_reason": self.server.finish,
                "message": {"role": "assistant", "content": self.server.content},
            }
            answer: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 1, "model": "small-1"}
            answer |= {"choices": [choice]} | ({} if self.server.usage is None else {"usage": self.server.usage})
            status, text = 200, json.dumps(answer)
        payload = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        try:
            for start in range(0, len(payload), 1 if self.server.drip_s else len(payload)):
                self.wfile.write(payload[start : start + (1 if self.server.drip_s else len(payload))])
                time.sleep(self.server.drip_s)
        except OSError:
            self.server.hung_up.set()

    def _left_while_waiting(self) -> bool:
        """Waits ``pause_s``; whether the client closed the connection meanwhile."""
        if not self.server.pause_s:
            return False
        self.connection.settimeout(self.server.pause_s)
        try:
            left = self.connection.recv(1) == b""
        except TimeoutError:
            left = False
        if left:
            self.server.hung_up.set()
        self.connection.settimeout(None)
        return left

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def opened() -> Iterator[Callable[..., OpenAICompatibleChat]]:
    chats: list[OpenAICompatibleChat] = []

    def open_chat(endpoint: Endpoint, **given: Any) -> OpenAICompatibleChat:
        options: dict[str, Any] = {"api_key": "k", "max_retries": 1, "timeout_s": 5.0} | given
        chats.append(OpenAICompatibleChat.open("small", base_url=endpoint.url, **options))
        return chats[-1]

    yield open_chat
    for chat in chats:
        chat.close()


Opened = Callable[..., OpenAICompatibleChat]


def test_a_reply_has_text_model_and_what_it_cost(endpoint: Endpoint, opened: Opened) -> None:
    reply = opened(endpoint, max_tokens=99).complete(ASKED)
    assert (reply.text, reply.model) == ("Hi.", "small-1")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.counted) == (7, 3, True)
    (request,) = endpoint.requests
    assert request["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]
    assert (request["max_tokens"], request["temperature"], request["model"]) == (99, 0.0, "small")
    assert request["authorization"] == "Bearer k"
    assert "response_format" not in request


def test_a_server_that_counts_nothing_gets_an_estimate(endpoint: Endpoint, opened: Opened) -> None:
    """4 a message, and Be, brie, f, . and Hell, o, ?; for the reply 4, and Hi, the point."""
    endpoint.usage = None
    usage = opened(endpoint).complete(ASKED).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.counted) == (15, 6, False)


def test_a_schema_is_asked_for_and_the_reply_is_json(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.content = '```json\n{"summary": "短い"}\n```'
    reply = opened(endpoint).complete(ASKED, schema=SCHEMA)
    assert reply.text == '{"summary": "短い"}'
    assert endpoint.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA


def test_a_server_without_schemas_is_asked_otherwise_and_only_once(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.content = '{"summary": "x"}'
    endpoint.refused = {"json_schema", "json_object"}
    chat = opened(endpoint)
    for _ in range(2):
        assert chat.complete(ASKED, schema=SCHEMA).text == '{"summary": "x"}'
    forms = [request.get("response_format", {}).get("type") for request in endpoint.requests]
    assert forms == ["json_schema", "json_object", None, None]
    assert json.dumps(SCHEMA) in endpoint.requests[-1]["messages"][0]["content"]
    assert endpoint.requests[-1]["messages"][1:] == [{"role": "user", "content": "Hello?"}]


def test_a_refusal_for_another_reason_is_told_and_not_remembered(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.content = '{"summary": "x"}'
    endpoint.failures = [(400, "{}")] * 3
    chat = opened(endpoint)
    with pytest.raises(BackendRejected):
        chat.complete(ASKED, schema=SCHEMA)
    chat.complete(ASKED, schema=SCHEMA)
    assert endpoint.requests[-1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("content", ["", "  ", None, "null", '{"summary": ', "[1]", "no JSON at all"])
def test_case_89_no_usable_reply_is_an_error_of_the_model(endpoint: Endpoint, opened: Opened, content: Any) -> None:
    endpoint.content = content
    with pytest.raises(ModelError):
        opened(endpoint).complete(ASKED, schema=SCHEMA)


def test_a_reply_cut_off_is_no_json(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.content, endpoint.finish = '{"summary": "x"}', "length"
    with pytest.raises(ModelError, match="cut off after 3 tokens"):
        opened(endpoint).complete(ASKED, schema=SCHEMA)
    assert opened(endpoint).complete(ASKED).text == '{"summary": "x"}'


def test_something_else_than_a_reply(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.failures = [(200, '{"choices": []}'), (200, "<html>")]
    chat = opened(endpoint)
    for _ in range(2):
        with pytest.raises(ModelError):
            chat.complete(ASKED)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(endpoint: Endpoint, opened: Opened, status: int) -> None:
    endpoint.failures = [(status, "{}")]
    assert opened(endpoint).complete(ASKED).text == "Hi."
    assert len(endpoint.requests) == 2
    endpoint.failures = [(status, "{}")] * 2
    with pytest.raises(BackendUnavailable):
        opened(endpoint).complete(ASKED)
    assert len(endpoint.requests) == 4


def test_a_wrong_key_is_not_tried_again(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.failures = [(401, "{}")]
    with pytest.raises(BackendRejected):
        opened(endpoint).complete(ASKED, schema=SCHEMA)
    assert len(endpoint.requests) == 1


def test_a_silent_server_ends_in_time(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.pause_s = 5.0
    started = time.monotonic()
    with pytest.raises(BackendUnavailable):
        opened(endpoint, timeout_s=0.2, max_retries=0).complete(ASKED)
    assert time.monotonic() - started < 3


def test_a_server_that_drips_ends_in_time(endpoint: Endpoint, opened: Opened) -> None:
    """Each byte comes in time; the whole does not."""
    endpoint.drip_s = 0.05
    started = time.monotonic()
    with pytest.raises(BackendUnavailable, match=r"no reply in 0\.3 s"):
        opened(endpoint, timeout_s=0.3, max_retries=0).complete(ASKED)
    assert time.monotonic() - started < 3
    assert endpoint.hung_up.wait(5)


def test_a_request_that_is_no_longer_wanted_ends_at_once_and_hangs_up(endpoint: Endpoint, opened: Opened) -> None:
    class Cancelled(Exception):
        pass

    def check() -> None:
        if endpoint.requests:
            raise Cancelled

    endpoint.pause_s = 30.0
    started = time.monotonic()
    with pytest.raises(Cancelled):
        opened(endpoint, timeout_s=60.0).complete(ASKED, check=check)
    assert time.monotonic() - started < 5
    assert endpoint.hung_up.wait(5)
    assert len(endpoint.requests) == 1


def test_no_server_at_all() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}/v1"
    chat = OpenAICompatibleChat.open("small", base_url=url, max_retries=0)
    with pytest.raises(BackendUnavailable):
        chat.complete(ASKED)
    chat.close()


def test_several_threads_ask_at_once_and_closing_ends_the_rest(endpoint: Endpoint, opened: Opened) -> None:
    endpoint.pause_s = 30.0
    chat = opened(endpoint, timeout_s=60.0)
    errors: list[VimbankError] = []

    def ask() -> None:
        try:
            chat.complete(ASKED)
        except VimbankError as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(endpoint.requests) < 3:
        time.sleep(0.01)
    chat.close()
    for thread in threads:
        thread.join(5)
    assert [type(error) for error in errors] == [BackendUnavailable] * 3


def test_name_and_address_are_needed() -> None:
    for model, url in ((None, "http://x"), ("m", None)):
        with pytest.raises(ConfigError):
            OpenAICompatibleChat.open(model, base_url=url)
