"""An embeddings endpoint that speaks OpenAI's protocol, through the ``openai`` client. An optional extra."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from json import JSONDecodeError
from typing import Any, Final

import numpy as np

from vimbank.domain.models import Vectors
from vimbank.encoders.vectors import encode_by_length, has_signal, unit_rows, well_formed
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, ModelError
from vimbank.ports import EncoderIdentity

__all__ = ["OpenAICompatibleEncoder"]

_BACKEND: Final = "embeddings endpoint"
_TOKEN: Final = re.compile(r"[A-Za-z0-9]{1,4}|[^\sA-Za-z0-9]")


class OpenAICompatibleEncoder:
    """Vectors from ``POST {base_url}/embeddings``, at length 1. Blank texts are not sent.

    The identity is the model's name and dimension: the protocol tells no revision, and the same model served from
    another host must not force a reindex. Whoever replaces a model under one name reindexes by hand.
    The endpoint's tokenizer is out of reach: ``tokenize`` estimates, a piece of a word of at most four Latin letters
    or one other character a token, which for usual models is more than they count.

    Args:    client: an ``openai.OpenAI``.  model: its name there.  dimension: asked of the endpoint, and checked;
             None: what it gives, found by one request at the first use of ``identity``.
             window: tokens a text that the model reads whole.  query_prefix, document_prefix: put before each text.
    """

    def __init__(
        self,
        client: Any,
        model: str,
        *,
        batch_size: int = 64,
        dimension: int | None = None,
        window: int = 512,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        self._client = client
        self._model = model
        self._batch_size = batch_size
        self._asked_dimension = dimension
        self._window = window
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix

    @classmethod
    def open(
        cls,
        model: str | None,
        *,
        base_url: str | None,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        max_retries: int = 2,
        batch_size: int = 64,
        dimension: int | None = None,
        window: int = 512,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> "OpenAICompatibleEncoder":
        """A client of the endpoint; nothing is sent yet. Refused connections, 429 and 5xx are tried again.

        Raises:  ConfigError: the client library, the model's name or the address is missing.
        """
        if not model or not base_url:
            raise ConfigError("the openai encoder needs the model's name and the endpoint's base_url")
        try:
            import openai
        except ImportError as exc:
            raise ConfigError("the openai client is not installed: pip install 'vimbank[openai]'") from exc
        # A key is always given: the client would else look for one in the environment.
        client = openai.OpenAI(base_url=base_url, api_key=api_key or "none", timeout=timeout_s, max_retries=max_retries)
        return cls(
            client,
            model,
            batch_size=batch_size,
            dimension=dimension,
            window=window,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
        )

    @cached_property
    def identity(self) -> EncoderIdentity:
        dimension = self._asked_dimension or self._request(["dimension"]).shape[1]
        prefix = f"{self._query_prefix}|{self._document_prefix}" if self._query_prefix or self._document_prefix else ""
        return EncoderIdentity(self._model, "endpoint", dimension, "endpoint", prefix)

    @property
    def window(self) -> int:
        return self._window

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(self._query_prefix, texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(self._document_prefix, texts)

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _TOKEN.finditer(text) if has_signal(match[0])]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _encode(self, prefix: str, texts: Sequence[str]) -> Vectors:
        dimension = self.identity.dimension
        rows = np.zeros((len(texts), dimension), dtype=np.float32)
        sent = [position for position, text in enumerate(texts) if has_signal(text)]
        rows[sent] = encode_by_length(
            [prefix + well_formed(texts[position]) for position in sent],
            self._request,
            dimension=dimension,
            batch_size=self._batch_size,
        )
        return rows

    def _request(self, texts: list[str]) -> Vectors:
        sizes = {} if self._asked_dimension is None else {"dimensions": self._asked_dimension}
        with _translated():
            answer = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float", **sizes)
        rows = unit_rows(_rows(answer, len(texts)))
        expected = (
            self._asked_dimension or self.__dict__.get("identity", EncoderIdentity("", "", rows.shape[1])).dimension
        )
        if rows.shape[1] != expected:
            raise ModelError(f"{self._model} gave vectors of {rows.shape[1]} dimensions, not {expected}")
        return rows


def _rows(answer: Any, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The vectors of an answer in the order of the texts, (n, d). Raises ModelError unless there is one for each."""
    try:
        by_index = {item.index: item.embedding for item in answer.data}
        rows = np.array([by_index[position] for position in range(count)], dtype=np.float64)
    except (AttributeError, TypeError, KeyError, ValueError) as exc:
        raise ModelError(f"the {_BACKEND} answered something else than {count} vectors") from exc
    if rows.ndim != 2 or not rows.shape[1]:
        raise ModelError(f"the {_BACKEND} answered something else than vectors")
    return rows


@contextmanager
def _translated() -> Iterator[None]:
    import openai

    try:
        yield
    except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError) as exc:
        raise BackendUnavailable(_BACKEND, str(exc)) from exc  # APITimeoutError is an APIConnectionError
    except openai.APIStatusError as exc:
        raise BackendRejected(_BACKEND, str(exc)) from exc
    except (openai.OpenAIError, JSONDecodeError) as exc:
        raise ModelError(f"the {_BACKEND} gave nothing usable: {exc}") from exc
