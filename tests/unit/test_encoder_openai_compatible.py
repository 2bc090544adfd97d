"""The endpoint adapter against a real HTTP server that speaks the embeddings protocol."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
import pytest

from vimbank.encoders.openai_compatible import OpenAICompatibleEncoder
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, ModelError


class Endpoint(ThreadingHTTPServer):
    """Answers (length of the text, 1) a text, in reversed order; ``failures`` are answered first, one a request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.failures: list[tuple[int, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.authorizations.append(self.headers["Authorization"])
        if self.server.failures:
            status, text = self.server.failures.pop(0)
        elif self.path != "/v1/embeddings":
            status, text = 404, "{}"
        else:
            data = [
                {"object": "embedding", "index": index, "embedding": [float(len(sent)), 1.0]}
                for index, sent in enumerate(body["input"])
            ]
            status, text = 200, json.dumps({"object": "list", "model": body["model"], "data": data[::-1], "usage": {}})
        payload = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def encoder(endpoint: Endpoint) -> Iterator[OpenAICompatibleEncoder]:
    encoder = OpenAICompatibleEncoder.open("small", base_url=endpoint.url, api_key="k", max_retries=1, batch_size=2)
    yield encoder
    encoder.close()


def test_rows_are_normalised_and_in_order_over_batches(encoder: OpenAICompatibleEncoder, endpoint: Endpoint) -> None:
    vectors = encoder.encode_documents(["abcd", "ab", "abcdef"])
    lengths = np.array([4, 2, 6])
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], lengths, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors.dtype == np.float32
    assert [request["input"] for request in endpoint.requests] == [["dimension"], ["ab", "abcd"], ["abcdef"]]
    assert endpoint.authorizations == ["Bearer k"] * 3


def test_the_identity_is_the_model_and_its_dimension(encoder: OpenAICompatibleEncoder, endpoint: Endpoint) -> None:
    assert (encoder.identity.name, encoder.identity.dimension) == ("small", 2)
    assert encoder.identity == encoder.identity
    assert len(endpoint.requests) == 1


def test_the_identity_does_not_depend_on_the_host(encoder: OpenAICompatibleEncoder) -> None:
    with Endpoint() as other:
        thread = Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        moved = OpenAICompatibleEncoder.open("small", base_url=other.url)
        assert moved.identity == encoder.identity
        moved.close()
        other.shutdown()
        thread.join()


def test_a_dimension_is_asked_for_and_checked(endpoint: Endpoint) -> None:
    encoder = OpenAICompatibleEncoder.open("small", base_url=endpoint.url, dimension=3)
    assert encoder.identity.dimension == 3
    assert not endpoint.requests
    with pytest.raises(ModelError, match="2 dimensions, not 3"):
        encoder.encode_queries(["a"])
    assert endpoint.requests[0]["dimensions"] == 3
    encoder.close()


def test_prefixes_go_before_queries_and_documents_and_into_the_identity(endpoint: Endpoint) -> None:
    encoder = OpenAICompatibleEncoder.open(
        "e5", base_url=endpoint.url, query_prefix="query: ", document_prefix="passage: ", dimension=2
    )
    encoder.encode_queries(["a"])
    encoder.encode_documents(["a"])
    assert [request["input"] for request in endpoint.requests] == [["query: a"], ["passage: a"]]
    assert encoder.identity.prefix == "query: |passage: "
    encoder.close()


def test_blank_text_is_not_sent_and_surrogates_are_mended(encoder: OpenAICompatibleEncoder, endpoint: Endpoint) -> None:
    """Cases 15, 114."""
    vectors = encoder.encode_documents(["", "\u200b", "a\ud83d", "  "])
    assert vectors.any(axis=1).tolist() == [False, False, True, False]
    assert endpoint.requests[-1]["input"] == ["a\ufffd"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(encoder: OpenAICompatibleEncoder, endpoint: Endpoint, status: int) -> None:
    endpoint.failures = [(status, "{}")]
    assert encoder.identity.dimension == 2
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_does_not_pass_is_unavailable(encoder: OpenAICompatibleEncoder, endpoint: Endpoint, status: int) -> None:
    endpoint.failures = [(status, "{}")] * 2
    with pytest.raises(BackendUnavailable):
        encoder.encode_queries(["a"])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_repeated(encoder: OpenAICompatibleEncoder, endpoint: Endpoint, status: int) -> None:
    endpoint.failures = [(status, '{"error": {"message": "no such model"}}')]
    with pytest.raises(BackendRejected, match="no such model"):
        encoder.encode_queries(["a"])
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "not json",
        "[]",
        '{"data": []}',
        '{"data": null}',
        '{"data": [{"index": 0, "embedding": []}]}',
        '{"data": [{"index": 0, "embedding": null}]}',
        '{"data": [{"index": 0, "embedding": ["x"]}]}',
        '{"data": [{"index": 0, "embedding": [NaN]}]}',
        '{"data": [{"index": 1, "embedding": [1.0]}]}',
    ],
)
def test_an_answer_that_is_no_vectors_is_a_model_error(
    encoder: OpenAICompatibleEncoder, endpoint: Endpoint, body: str
) -> None:
    endpoint.failures = [(200, body)]
    with pytest.raises(ModelError):
        encoder.encode_queries(["a"])


def test_the_dimension_may_not_change_between_answers(encoder: OpenAICompatibleEncoder, endpoint: Endpoint) -> None:
    assert encoder.identity.dimension == 2
    endpoint.failures = [(200, '{"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]}')]
    with pytest.raises(ModelError, match="3 dimensions, not 2"):
        encoder.encode_queries(["a"])


def test_a_refused_connection_is_unavailable() -> None:
    with Endpoint() as server:
        url = server.url
    encoder = OpenAICompatibleEncoder.open("small", base_url=url, max_retries=0)
    with pytest.raises(BackendUnavailable):
        encoder.encode_queries(["a"])
    encoder.close()


def test_a_silent_server_is_unavailable_after_the_timeout() -> None:
    with Endpoint() as server:  # listens, and nobody accepts
        encoder = OpenAICompatibleEncoder.open("small", base_url=server.url, timeout_s=0.1, max_retries=0)
        with pytest.raises(BackendUnavailable):
            encoder.encode_queries(["a"])
        encoder.close()


@pytest.mark.parametrize(("model", "base_url"), [(None, "http://127.0.0.1"), ("small", None), ("", "")])
def test_a_model_and_an_address_must_be_named(model: str | None, base_url: str | None) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        OpenAICompatibleEncoder.open(model, base_url=base_url)


def test_tokens_are_estimated_from_above(encoder: OpenAICompatibleEncoder) -> None:
    assert encoder.tokenize("remember 你好!\u200b") == [(0, 4), (4, 8), (9, 10), (10, 11), (11, 12)]
