"""Counting the tokens of text of any length with a model's own tokenizer."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from vimbank.encoders.vectors import well_formed
from vimbank.errors import ConfigError

__all__ = ["TextTokens", "read_tokenizer"]


class TextTokens:
    """A tokenizer that neither cuts nor pads nor adds special tokens. Thread-safe.

    Args:    tokenizer: copied, so that what its owner sets on it later changes nothing here.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        decoder = self._tokenizer.get_added_tokens_decoder()
        self.special_ids: Sequence[int] = [number for number, token in decoder.items() if token.special]
        self._special = frozenset(self.special_ids)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Character offsets (start, end) of each token, in order."""
        return list(self._tokenizer.encode(well_formed(text), add_special_tokens=False).offsets)

    def known(self, text: str) -> bool:
        """Whether the model knows any token of the text: false for blanks, and for scripts it has never seen."""
        ids = self._tokenizer.encode(well_formed(text), add_special_tokens=False).ids
        return not self._special.issuperset(ids)


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a ``tokenizer.json``.

    Raises:  ConfigError: the file is missing or not a tokenizer.
    """
    try:
        return Tokenizer.from_file(str(path))
    except Exception as exc:  # the library raises no narrower type
        raise ConfigError(f"the encoder's tokenizer cannot be read: {path}: {exc}") from exc
