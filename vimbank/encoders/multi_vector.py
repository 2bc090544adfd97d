"""ColBERT checkpoints through sentence-transformers: one vector a token, and one pooled for the index (V-13, B15)."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from vimbank.domain.maxsim import pool_tokens
from vimbank.domain.models import Vectors
from vimbank.encoders.sentence_transformer import load_model, loaded_revision, model_prompts, text_tokens
from vimbank.encoders.vectors import unit_rows, well_formed
from vimbank.errors import ConfigError, ModelError
from vimbank.ports import EncoderIdentity

__all__ = ["QUERY_TOKENS", "MultiVectorEncoder"]

QUERY_TOKENS: Final = 32
"""A query is cut here: late interaction gains nothing from longer ones, and collapses on whole paragraphs."""


class MultiVectorEncoder:
    """An Encoder (the mean of a text's token vectors, at length 1) and a TokenEncoder.

    The checkpoint decides markers, query expansion and which tokens (punctuation) are left out. A text of which
    the model knows no token has no token vectors and a zero pooled vector.

    Args:    model: a ``sentence_transformers.MultiVectorEncoder``.  name: of the identity.  batch_size: texts a batch.
    """

    def __init__(self, model: Any, *, name: str, batch_size: int = 16) -> None:
        self._model = model
        self._batch_size = batch_size
        self._lock = Lock()
        self._tokens = text_tokens(model)
        query_prefix, document_prefix = model_prompts(model, None, None)
        self._window = _document_length(model) - len(self._tokens.offsets(document_prefix))
        dimension = self._run("document", ["dimension"])[0].shape[1]
        self._identity = EncoderIdentity(
            name, loaded_revision(model), dimension, "token mean", f"{query_prefix}|{document_prefix}"
        )

    @classmethod
    def open(cls, model: str | None, *, threads: int = 2, batch_size: int = 16) -> "MultiVectorEncoder":
        """The checkpoint of a folder or of a name that the library can resolve. There is no default one.

        Raises:  ConfigError: no model is named, or the library or the model is missing.
        """
        if model is None:
            raise ConfigError("the multi-vector encoder needs the name or folder of a ColBERT checkpoint")
        loaded = load_model("MultiVectorEncoder", model, threads=threads)
        return cls(loaded, name=Path(model).name, batch_size=batch_size)

    @property
    def identity(self) -> EncoderIdentity:
        return self._identity

    @property
    def window(self) -> int:
        return self._window

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """As the port says; a query is cut to ``QUERY_TOKENS`` as for its token vectors."""
        return pool_tokens(self._encode("query", [self._cut(text) for text in texts]), self._identity.dimension)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return pool_tokens(self.encode_document_tokens(texts), self._identity.dimension)

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        return self._tokens.offsets(text)

    def encode_query_tokens(self, text: str) -> Vectors:
        return self._encode("query", [self._cut(text)])[0]

    def encode_document_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """As the port says; ``domain.maxsim.pool_tokens`` makes of it what ``encode_documents`` gives."""
        return self._encode("document", texts)

    def _cut(self, text: str) -> str:
        tokens = self._tokens.offsets(text)
        return text[: tokens[QUERY_TOKENS - 1][1]] if len(tokens) > QUERY_TOKENS else text

    def _encode(self, task: str, texts: Sequence[str]) -> list[Vectors]:
        """Token vectors of each text, in order; the library sorts by length and batches."""
        answers: list[Vectors] = [np.zeros((0, self._identity.dimension), dtype=np.float32) for _ in texts]
        known = [position for position, text in enumerate(texts) if self._tokens.known(text)]
        if known:
            encoded = self._run(task, [well_formed(texts[position]) for position in known])
            for position, tokens in zip(known, encoded, strict=True):
                answers[position] = tokens
        return answers

    def _run(self, task: str, texts: list[str]) -> list[Vectors]:
        encode = self._model.encode_query if task == "query" else self._model.encode_document
        try:
            with self._lock:  # the library's tokenizer is not safe to share between threads
                encoded = encode(texts, batch_size=self._batch_size, convert_to_numpy=True, show_progress_bar=False)
        except RuntimeError as exc:
            raise ModelError(f"the multi-vector model could not encode: {exc}") from exc
        return [unit_rows(np.asarray(tokens)) for tokens in encoded]


def _document_length(model: Any) -> int:
    """Tokens of the longest document that is read whole, without the special ones."""
    length = getattr(model[0], "document_length", None) or model.max_seq_length or model.tokenizer.model_max_length
    return int(length) - int(model.tokenizer.num_special_tokens_to_add())
