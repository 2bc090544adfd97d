"""SCM's long dialogues with an assistant, English and Chinese, without dates (Wang et al. 2023)."""

from typing import Final

from vimbank.ingestion.datasets.base import Loader
from vimbank.ingestion.datasets.rounds import RoundsLoader

__all__ = ["LOADER"]

LOADER: Final[Loader] = RoundsLoader(
    name="scm",
    summary="SCM's long dialogues, one user and session each, one memory a round (bank dialog).",
    languages=("en", "zh"),
    session_field="conv_id",
    time_field=None,
)
