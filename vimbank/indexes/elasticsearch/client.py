"""Elasticsearch's official client, made from plain values, with its exceptions translated in one table."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import elasticsearch
import orjson
from elastic_transport import TlsError, TransportError

from vimbank.errors import BackendError, BackendRejected, BackendUnavailable, ConfigError

__all__ = ["BACKEND", "MISSING_INDEX", "PASSING", "ElasticsearchClient", "Overloaded", "Patience", "ndjson"]

BACKEND: Final = "elasticsearch"
"""What errors call it."""

Patience: TypeAlias = Literal["search", "request"]
"""Which of the two time-outs a request has: somebody waits for its answer, or it works in the background."""

PASSING: Final = frozenset({408, 429, 502, 503, 504})
"""Statuses that a later try may not meet."""
MISSING_INDEX: Final = "index_not_found_exception"

_REFUSED: Final = frozenset({401, 403})
_CONNECTIONS: Final = 32  # a node: as many searches at once keep theirs open
_JSON: Final = "application/json"
_NDJSON: Final = "application/x-ndjson"
_MOST_REASON: Final = 300  # characters
_SEARCHED: Final = ("timed_out", "_shards.failed", "hits.hits.sort", "hits.hits.fields")
_ONE: Final = ",".join(_SEARCHED)
_SEVERAL: Final = ",".join(f"responses.{path}" for path in (*_SEARCHED, "status", "error.type"))


class Overloaded(BackendUnavailable):
    """Answered, but has no room or no shard for this now."""


class ElasticsearchClient:
    """Asks one cluster. Thread-safe.

    The client's own retries are off, as who asks knows better whether to wait; where several nodes are named, a request
    that cannot connect goes to the next. Nodes are not looked for (no sniffing): the addresses given are the ones used.
    Error messages hold types and statuses, never a document, a query or a secret.
    """

    def __init__(
        self, client: elasticsearch.Elasticsearch, *, search_timeout_s: float, request_timeout_s: float
    ) -> None:
        self._client = client
        self._waiting: Mapping[Patience, elasticsearch.Elasticsearch] = {
            "search": client.options(request_timeout=search_timeout_s),
            "request": client.options(request_timeout=request_timeout_s),
        }
        self.search_timeout_s: Final = search_timeout_s
        self._version: tuple[int, ...] | None = None

    @classmethod
    def connect(
        cls,
        urls: Sequence[str],
        *,
        api_key: str | None = None,
        username: str | None = None,
        password: str | None = None,
        ca_certs: Path | None = None,
        verify_certs: bool = True,
        search_timeout_s: float = 0.2,
        request_timeout_s: float = 30.0,
    ) -> "ElasticsearchClient":
        """A client of the cluster at these addresses; nothing is asked yet.

        Args:    urls: with scheme and port, one a node.  api_key: as Elasticsearch encodes it.
                 username, password: in place of a key.  ca_certs: file of certificates to trust; None: the system's.
                 search_timeout_s, request_timeout_s: patience of one request, seconds.
        Raises:  ConfigError: no address or a bad one, a key beside a user name, one of name and password missing.
        """
        if not urls:
            raise ConfigError("Elasticsearch needs an address: set VIMBANK_ELASTICSEARCH__URL")
        options: dict[str, Any] = {
            "max_retries": len(urls) - 1,
            "retry_on_timeout": False,
            "retry_on_status": (),
            "connections_per_node": _CONNECTIONS,
            "meta_header": False,
            "serializers": {
                _JSON: elasticsearch.OrjsonSerializer(),
                "application/vnd.elasticsearch+json": elasticsearch.OrjsonSerializer(),
            },
            **_credentials(api_key, username, password),
            **_trust(urls, ca_certs, verify_certs),
        }
        try:
            client = elasticsearch.Elasticsearch(list(urls), **options)
        except (ValueError, OSError) as exc:
            raise ConfigError(f"the settings of Elasticsearch cannot be used: {exc}") from exc
        return cls(client, search_timeout_s=search_timeout_s, request_timeout_s=request_timeout_s)

    def check(self) -> str:
        """The version of the server, such as ``8.15.3``: whether it can be used at all.

        Raises:  ConfigError: another product, an untrusted certificate, credentials that are refused.
                 BackendUnavailable: out of reach.
        """
        try:
            with _translated():
                answer = self._waiting["request"].perform_request("GET", "/", headers={"accept": _JSON}).body
        except BackendRejected as exc:
            raise ConfigError(f"Elasticsearch cannot be used: {exc}") from exc
        try:
            number = str(answer["version"]["number"])
            self._version = tuple(int(part) for part in number.partition("-")[0].split("."))
        except (KeyError, TypeError, ValueError) as exc:
            raise ConfigError("what answers at Elasticsearch's address does not tell its version") from exc
        return number

    def version(self) -> tuple[int, ...]:
        """As ``check``, in numbers; asked once."""
        if self._version is None:
            self.check()
        return self._version or ()

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        patience: Patience = "request",
        private: bool = False,
    ) -> Any:
        """One request, its JSON answer.

        Args:    body: JSON, or lines of ``ndjson``.  private: what is sent tells of people, so that the reason which
                 the server gives for an error may as well, and is left out.
        Raises:  BackendUnavailable: refused, timed out, 408, 429, 502, 503, 504.  BackendRejected: everything else.
        """
        headers = {"accept": _JSON}
        if body is not None:
            headers["content-type"] = _NDJSON if isinstance(body, bytes) else _JSON
        data = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        with _translated(private=private):
            return self._waiting[patience].perform_request(method, path, params=params, headers=headers, body=data).body

    def search(self, index: str, body: Mapping[str, Any], *, routing: str) -> list[Mapping[str, Any]]:
        """The hits of a search, each with its ``sort`` and ``fields``: complete, or an error.

        Args:    routing: also chooses the copy that answers, so that equal queries meet equal statistics.
        Raises:  BackendUnavailable: as ``ask``; no such index yet; cut short by its time-out; a shard that failed.
        """
        params = {
            "routing": routing,
            "preference": routing,
            "allow_partial_search_results": "false",
            "filter_path": _ONE,
        }
        answer = self.ask(
            "POST", f"/{index}/_search", self._limited(body), params=params, patience="search", private=True
        )
        return _whole(answer)

    def searches(
        self, index: str, bodies: Sequence[Mapping[str, Any]], *, routing: str
    ) -> list[list[Mapping[str, Any]]]:
        """As ``search``, for several at once in one request; the server works on them side by side."""
        header = {"index": index, "routing": routing, "preference": routing, "allow_partial_search_results": False}
        lines = ndjson([line for body in bodies for line in (header, self._limited(body))])
        params = {"filter_path": _SEVERAL}
        answer = self.ask("POST", "/_msearch", lines, params=params, patience="search", private=True)
        for each in answer["responses"]:
            if "error" in each:
                raise _of_answer(each["status"], each, private=True)
        return [_whole(each) for each in answer["responses"]]

    def counts(self, index: str, body: Mapping[str, Any], *, routing: str) -> list[int]:
        """The counts of a search's one aggregation ``terms`` by filters, in their order. As ``search`` otherwise."""
        params = {
            "routing": routing,
            "preference": routing,
            "allow_partial_search_results": "false",
            "filter_path": "timed_out,_shards.failed,aggregations.terms.buckets.doc_count",
        }
        answer = self.ask(
            "POST", f"/{index}/_search", self._limited(body), params=params, patience="search", private=True
        )
        _whole(answer)
        return [bucket["doc_count"] for bucket in answer.get("aggregations", {}).get("terms", {}).get("buckets", ())]

    def _limited(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {**body, "timeout": f"{max(1, int(1_000 * self.search_timeout_s))}ms"}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def ndjson(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """JSON values, a line each, as bulk requests want them."""
    return b"".join([orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines])


def _credentials(api_key: str | None, username: str | None, password: str | None) -> dict[str, Any]:
    if api_key is not None and username is not None:
        raise ConfigError("Elasticsearch takes an API key or a user name, not both")
    if (username is None) != (password is None):
        raise ConfigError("Elasticsearch needs the user name and the password, or neither")
    if api_key is not None:
        return {"api_key": api_key}
    return {"basic_auth": (username, password)} if username is not None else {}


def _trust(urls: Sequence[str], ca_certs: Path | None, verify_certs: bool) -> dict[str, Any]:
    if not any(url.startswith("https:") for url in urls):
        if ca_certs is not None:
            raise ConfigError("certificates for Elasticsearch are named, but no address begins with https")
        return {}
    if ca_certs is not None and not ca_certs.is_file():
        raise ConfigError(f"the certificates of Elasticsearch cannot be read: {ca_certs}")
    trust: dict[str, Any] = {"verify_certs": verify_certs}
    if ca_certs is not None:
        trust["ca_certs"] = str(ca_certs)
    if not verify_certs:
        trust["ssl_show_warn"] = False  # the setting says so, once is enough
    return trust


@contextmanager
def _translated(*, private: bool = False) -> Iterator[None]:
    """The table of errors: what the client raises, in our words."""
    try:
        yield
    except elasticsearch.UnsupportedProductError as exc:
        raise BackendRejected(BACKEND, "what answers is no Elasticsearch") from exc
    except elasticsearch.ApiError as exc:
        raise _of_answer(exc.status_code, exc.body, private=private) from exc
    except TlsError as exc:
        raise BackendRejected(BACKEND, "the TLS connection failed: is the certificate trusted?") from exc
    except elasticsearch.SerializationError as exc:
        raise BackendRejected(BACKEND, "the answer cannot be read") from exc
    except TransportError as exc:  # no connection, or no answer in time
        raise BackendUnavailable(BACKEND, f"no answer ({type(exc).__name__})") from exc


def _whole(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        raise BackendUnavailable(BACKEND, "the search was cut short")
    hits: list[Mapping[str, Any]] = answer.get("hits", {}).get("hits", [])
    return hits


def _of_answer(status: int, body: Any, *, private: bool) -> BackendError:
    kind, reason = _kind_and_reason(body)
    message = f"status {status}" + (f", {kind}" if kind else "")
    if status in _REFUSED:
        return BackendRejected(BACKEND, f"{message}: the credentials are refused or lack a privilege")
    if reason and not private:
        message += f": {reason}"
    if status in PASSING:
        return Overloaded(BACKEND, message)
    if kind == MISSING_INDEX:  # who follows the feed next makes it
        return BackendUnavailable(BACKEND, message)
    return BackendRejected(BACKEND, message)


def _kind_and_reason(body: Any) -> tuple[str, str]:
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return "", ""
    return str(error.get("type", "")), str(error.get("reason", ""))[:_MOST_REASON]
