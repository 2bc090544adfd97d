"""What every encoder does around its model: text made well-formed, batches of like length, unit rows."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vimbank.domain.models import Vectors
from vimbank.errors import ModelError

__all__ = ["encode_by_length", "has_signal", "unit_rows", "well_formed"]

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, which models can read (case 114).

    One character for one, so that character offsets stay those of the text given.
    """
    return _LONE_SURROGATE.sub("\ufffd", text)


def has_signal(text: str) -> bool:
    """Whether anything in the text can be seen: not only blanks, controls, zero-width and surrogates (case 15).

    For encoders whose tokenizer is out of reach.
    """
    return any(unicodedata.category(letter)[0] not in "CZ" for letter in text)


def unit_rows(rows: NDArray[Any]) -> Vectors:
    """The rows at length 1 (cases 10, 15).

    Args:    rows: (n, d), any floating type.
    Returns: (n, d) float32, contiguous, a new array; a zero row stays zero.
    Raises:  ModelError: a value is NaN or infinite.
    """
    if not np.isfinite(rows).all():
        raise ModelError("the encoder gave a vector that is not finite")
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.ascontiguousarray(np.divide(wide, norms, out=np.zeros_like(wide), where=norms > 0), dtype=np.float32)


def encode_by_length(
    texts: Sequence[str], encode: Callable[[list[str]], Vectors], *, dimension: int, batch_size: int
) -> Vectors:
    """Encode texts in batches of like length, so that little is spent on padding; rows in the order given.

    Args:    encode: makes (b, d) of b <= batch_size texts.  dimension: d, of the answer to no text.
    Returns: (n, d) float32.
    """
    rows = np.zeros((len(texts), dimension), dtype=np.float32)
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        rows[batch] = encode([texts[position] for position in batch])
    return rows
